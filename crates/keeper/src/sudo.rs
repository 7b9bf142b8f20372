//! What is refused to a user who starts root's keeper through sudo, whatever sudoers allows by mistake.
//!
//! Who may replace the binary, or choose its user, its journal or whom it kills, needs no keeper to be root.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::fault::{Fault, Kind, Result};
use crate::place::check_roots_alone;

/// The file that this process runs.
const OWN_FILE: &str = "/proc/self/exe";

/// Refuses options that no line in sudoers should allow, and a binary that others than root may write.
///
/// # Errors
/// Refused, naming the option or the place.
pub fn check(given: &[(&str, bool)]) -> Result<()> {
    if let Some((option, _)) = given.iter().find(|(_, is_given)| *is_given) {
        return Err(Fault::refused(format!(
            "{option}: is not allowed through sudo: leave it out, or run this as yourself or as root"
        )));
    }
    check_binary(Path::new(OWN_FILE))
}

fn check_binary(file: &Path) -> Result<()> {
    check_roots_alone(file, |it| it.uid() == 0).map_err(|fault| match fault.kind {
        Kind::Refused => Fault::refused(format!(
            "{} may be written by others than root, who would be root through sudo: install a keeper of root's with \
             `sudo make install-keeper`",
            fault.message
        )),
        _ => fault,
    })
}
