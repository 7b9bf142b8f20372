//! Patterns of names: `*` stands for any characters.

/// Whether a name fits a pattern.
pub fn fits(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else {
        return false;
    };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    true
}

/// Whether a name fits one of the patterns; all do where there is none.
pub fn fits_any(patterns: &[String], name: &str) -> bool {
    patterns.is_empty() || patterns.iter().any(|pattern| fits(pattern, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_anything() {
        for (pattern, name, expected) in [
            ("vm.dirty", "vm.dirty", true),
            ("vm.dirty", "vm.dirty2", false),
            ("vm.*", "vm.dirty", true),
            ("*", "", true),
            ("block.*.read_*", "block.vda.read_ops_per_s", true),
            ("block.*.read_*", "block.vda.write_ops_per_s", false),
            ("a*a", "a", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c-b", false),
        ] {
            assert_eq!(fits(pattern, name), expected, "{pattern} {name}");
        }
    }
}
