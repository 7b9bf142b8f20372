//! The host that a daemon runs on.

/// The longest name of a node or a controller.
const SIGNS_MAX: usize = 64;

/// The host's name as one token: other signs than letters, digits, `-` and `_` are replaced by `_`, and it is cut.
#[must_use]
pub fn host_name() -> String {
    let name = nix::unistd::gethostname()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    token(&name)
}

fn token(name: &str) -> String {
    let fine = |it: char| it.is_ascii_alphanumeric() || it == '-' || it == '_';
    name.chars()
        .map(|it| if fine(it) { it } else { '_' })
        .take(SIGNS_MAX)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_name_becomes_a_token() {
        assert_eq!(token("storage1.example.org"), "storage1_example_org");
        assert_eq!(token("ü*>"), "___");
        assert_eq!(token(&"x".repeat(300)).len(), SIGNS_MAX);
    }
}
