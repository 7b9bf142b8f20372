//! The scenarios that come with the simulator, by their names.

macro_rules! preset {
    ($name:literal) => {
        ($name, include_str!(concat!("../presets/", $name, ".toml")))
    };
}

// The folder is a link to that of the Python package, so that a source distribution of this crate has its content.
const PRESETS: &[(&str, &str)] = &[
    preset!("btio-b"),
    preset!("btio-c"),
    preset!("capes-1-1"),
    preset!("capes-1-4"),
    preset!("capes-1-9"),
    preset!("capes-4-1"),
    preset!("capes-9-1"),
    preset!("capes-fileserver"),
    preset!("capes-sequential-write"),
    preset!("fileserver"),
    preset!("mdtest"),
    preset!("random-read"),
    preset!("random-shared"),
    preset!("random-write"),
    preset!("read-ahead-cliff"),
    preset!("sequential-read"),
    preset!("sequential-write"),
];

/// The text of a preset.
pub(crate) fn find(name: &str) -> Option<&'static str> {
    PRESETS.iter().find(|it| it.0 == name).map(|it| it.1)
}

/// The names of all, separated by commas.
pub(crate) fn names() -> String {
    let names: Vec<&str> = PRESETS.iter().map(|it| it.0).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_presets_of_the_simulator_are_there() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/presets");
        let mut found: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .filter_map(|entry| entry.unwrap().file_name().into_string().ok())
            .filter_map(|name| name.strip_suffix(".toml").map(str::to_owned))
            .collect();
        found.sort();
        assert_eq!(found.join(", "), names());
    }
}
