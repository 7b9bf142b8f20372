//! The disk divided among exports: alike parts, one behind the other.

use ascar_log::Fault;
use ascar_nbd::numbers::transmission_flag as flag;
use ascar_nbd::{BlockSizes, Export, TEXT_BYTES_MAX};

use crate::model::Model;

/// As many names as one list may show.
const EXPORTS_MAX: usize = 256;

/// The names of `--exports`.
///
/// # Errors
/// A name that is empty where there are several, given twice, or too long.
pub(crate) fn names(text: &str) -> Result<Vec<String>, Fault> {
    let names: Vec<String> = text.split(',').map(str::to_owned).collect();
    let wrong = |why: &str| Fault(format!("--exports = {text:?}: {why}"));
    if names.len() > EXPORTS_MAX {
        return Err(wrong(&format!("at most {EXPORTS_MAX} names are allowed")));
    }
    for (place, name) in names.iter().enumerate() {
        if name.is_empty() || name.len() > TEXT_BYTES_MAX {
            return Err(wrong("each name has 1 to 4096 bytes, and a comma after it"));
        }
        if names[..place].contains(name) {
            return Err(wrong(&format!("{name:?} is there twice")));
        }
    }
    Ok(names)
}

/// What clients are told of each export.
pub(crate) fn describe(model: &Model, names: &[String], size_bytes: u64) -> Vec<Export> {
    let mut flags = flag::SEND_FLUSH
        | flag::SEND_FUA
        | flag::SEND_TRIM
        | flag::SEND_WRITE_ZEROES
        | flag::SEND_CACHE
        | flag::CAN_MULTI_CONN;
    if model.is_rotational() {
        flags |= flag::ROTATIONAL;
    }
    names
        .iter()
        .map(|name| Export {
            name: name.clone(),
            description: model.description(),
            size_bytes,
            flags,
            block_sizes: BlockSizes::default(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_separated_by_commas() {
        assert_eq!(names("a,b c").unwrap(), ["a", "b c"]);
        for text in ["", "a,", ",a", "a,b,a"] {
            assert!(names(text).is_err(), "{text:?}");
        }
        assert!(names(&"x".repeat(4097)).is_err());
        assert!(names(&vec!["x"; 300].join(",")).is_err());
    }
}
