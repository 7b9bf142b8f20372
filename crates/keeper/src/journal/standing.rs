//! Whether the changes of a journal are to stay, and who has changes in force that nobody has confirmed.

use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::deadline::Deadline;
use super::line::Header;
use super::stale::{paths, read};
use crate::kernel;

/// What is to become of a journal's changes once their keeper is gone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Standing {
    /// They are put back.
    #[default]
    Open,
    /// They are put back unless somebody confirms them in time.
    Unconfirmed(Unconfirmed),
    /// They stay until they are asked back.
    Held,
}

/// What waits for its confirmation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unconfirmed {
    /// Until when it stays.
    pub until: Deadline,
    /// The locks that the session had: nobody else gets them before this is decided.
    pub locks: Vec<String>,
}

impl Unconfirmed {
    /// The time that is left; None when it is over. It ends with the boot.
    pub fn left(&self, header: &Header) -> Option<Duration> {
        let left = self.until.left();
        (header.boot_id == kernel::boot_id() && !left.is_zero()).then_some(left)
    }
}

/// A session whose changes wait for their confirmation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Whose they are.
    pub header: Header,
    /// Until when they stay.
    pub unconfirmed: Unconfirmed,
    /// How many changes are in force.
    pub changes: usize,
}

impl Waiting {
    /// As people are told of it.
    pub fn described(&self) -> String {
        let owner = &self.header.owner;
        match self.unconfirmed.left(&self.header) {
            Some(left) => format!(
                "{owner:?} waits for its confirmation, {} s left",
                left.as_secs()
            ),
            None => format!("{owner:?} was not confirmed in time and is put back"),
        }
    }
}

/// The sessions whose changes wait, or are about to be put back because their time is over, newest first. Takes no
/// lock and changes nothing; a journal that cannot be understood is passed over: a restore names it.
pub fn waiting(directory: &Path) -> Vec<Waiting> {
    look(directory).0
}

/// The same, and whether every journal could be read.
pub fn look(directory: &Path) -> (Vec<Waiting>, bool) {
    let mut found = Vec::new();
    let paths = paths(directory);
    let mut is_whole = paths.is_ok() || !directory.exists();
    for path in paths.unwrap_or_default() {
        match read(&path) {
            Ok(Some((header, entries, Standing::Unconfirmed(unconfirmed)))) => {
                found.push(Waiting {
                    header,
                    unconfirmed,
                    changes: entries.list().len(),
                });
            }
            Ok(_) => {}
            Err(_) => is_whole = false,
        }
    }
    (found, is_whole)
}
