//! Makes the table of knobs from the list of the kernel's settings, `python/ascar/catalogues/linux.toml`: what the
//! keeper allows is fixed when it is built.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

use serde::Deserialize;

// A link to the catalogue of the Python package, so that a source distribution of this crate has its content.
const CATALOGUE: &str = "linux.toml";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Catalogue {
    knob: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    path: String,
    range: Option<[i64; 2]>,
    powers_of_two: Option<[i64; 2]>,
    up_to: Option<(i64, String)>,
    listed: Option<bool>,
    limit: Option<i64>,
    zeroes: Option<String>,
    raises: Option<Vec<String>>,
    couples: Option<String>,
    // For people; the keeper does without.
    #[allow(dead_code)]
    unit: Option<String>,
    #[allow(dead_code)]
    what: String,
    #[allow(dead_code)]
    weaker: Option<toml::Table>,
    #[allow(dead_code)]
    expert: Option<bool>,
    #[allow(dead_code)]
    search: Option<[i64; 2]>,
    #[allow(dead_code)]
    log: Option<bool>,
    #[allow(dead_code)]
    step: Option<i64>,
    #[allow(dead_code)]
    new_mounts: Option<bool>,
}

impl Entry {
    /// What it may be set to, as Rust.
    fn values(&self) -> String {
        let mut found = Vec::new();
        if let Some([low, high]) = self.range {
            found.push(format!("Range({low}, {high})"));
        }
        if let Some([low, high]) = self.powers_of_two {
            found.push(format!("PowersOfTwo({low}, {high})"));
        }
        if let Some((low, file)) = &self.up_to {
            found.push(format!("UpTo({low}, {file:?})"));
        }
        if self.listed == Some(true) {
            found.push("Listed".to_owned());
        }
        if let Some(high) = self.limit {
            found.push(format!("Limit({high})"));
        }
        assert_eq!(
            found.len(),
            1,
            "{}: needs one of range, powers_of_two, up_to, listed, limit",
            self.name
        );
        found.remove(0)
    }

    /// What else a write changes, as Rust.
    fn coupling(&self) -> String {
        let couples = self.couples.as_deref().map(|word| match word {
            "scheduler" => "Scheduler",
            "scheduled" => "Scheduled",
            "depth" => "Depth",
            "limits" => "Limits",
            "limited" => "Limited",
            "raised" => "Raised",
            _ => panic!("{}: couples = {word:?}: unknown", self.name),
        });
        let mut found: Vec<String> = couples.into_iter().map(str::to_owned).collect();
        found.extend(self.zeroes.iter().map(|other| format!("Zeroes({other:?})")));
        found.extend(
            self.raises
                .iter()
                .map(|others| format!("Raises(&{others:?})")),
        );
        assert!(
            found.len() <= 1,
            "{}: has more than one of zeroes, raises, couples",
            self.name
        );
        found.pop().unwrap_or_else(|| "Alone".to_owned())
    }
}

fn main() {
    println!("cargo::rerun-if-changed={CATALOGUE}");
    let text = fs::read_to_string(CATALOGUE).unwrap_or_else(|error| panic!("{CATALOGUE}: {error}"));
    let catalogue: Catalogue =
        toml::from_str(&text).unwrap_or_else(|error| panic!("{CATALOGUE}: {error}"));
    let mut rust = String::from("&[\n");
    for entry in &catalogue.knob {
        let (name, path) = (&entry.name, &entry.path);
        let (values, coupling) = (entry.values(), entry.coupling());
        writeln!(rust, "    rule({name:?}, {path:?}, {values}, {coupling}),")
            .expect("a string takes it");
    }
    rust.push(']');
    let out = env::var("OUT_DIR").expect("cargo says where");
    fs::write(Path::new(&out).join("rules.rs"), rust).expect("the build directory can be written");
}
