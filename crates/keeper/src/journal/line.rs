//! The lines of a journal's file: the header, and what follows it.

use serde::{Deserialize, Serialize};

use super::change::Change;
use super::standing::Unconfirmed;
use crate::kernel;

/// Version of the journal's format.
pub const SCHEMA: u64 = 5;
/// The oldest version that is read: it knew no content but text; the second knew nothing unconfirmed, the third no
/// machine, the fourth no standard input of a command.
const SCHEMA_MIN: u64 = 1;

/// Whose changes these are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// Format of the file.
    pub schema: u64,
    /// The boot the changes belong to.
    pub boot_id: String,
    /// The study's name.
    pub owner: String,
    /// The keeper.
    pub pid: u32,
    /// The invoking user.
    pub uid: u32,
    /// When the first change was made.
    pub started_unix_s: u64,
    /// The machine's id, in a journal of a user's: a home may be shared by several machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
}

impl Header {
    /// Whether the changes are another machine's, as far as both are known.
    pub fn is_elsewhere(&self) -> bool {
        let is_another = |it: &String| kernel::machine_id().is_some_and(|here| here != *it);
        self.machine.as_ref().is_some_and(is_another)
    }
}

/// One line after the header.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Line {
    /// Change number `n` is about to be made.
    Change { n: u64, change: Change },
    /// What a knob read after its write; None when it went away.
    Found { n: u64, value: Option<String> },
    /// These are undone.
    Undone { n: Vec<u64> },
    /// The session ended and its changes are to stay until they are asked back, or are confirmed now.
    Held,
    /// The session ended and its changes are put back unless they are confirmed.
    Unconfirmed(Unconfirmed),
}

/// Lines as they are written.
pub(super) fn text(lines: &[Line]) -> String {
    let line = |line| serde_json::to_string(line).expect("a journal line is plain data") + "\n";
    lines.iter().map(line).collect()
}

/// How much of the file was written to the end of a line. A torn last line announces a change never made.
pub(super) fn complete_length(text: &[u8]) -> usize {
    text.iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |position| position + 1)
}

/// The header in the first line, or what is wrong with it.
pub(super) fn parse_header(line: &[u8]) -> std::result::Result<Header, String> {
    #[derive(Deserialize)]
    struct Version {
        schema: u64,
    }
    let version: Version =
        serde_json::from_slice(line).map_err(|error| format!("header: {error}"))?;
    if !(SCHEMA_MIN..=SCHEMA).contains(&version.schema) {
        return Err(format!(
            "its schema is {}, this ascard knows {SCHEMA_MIN} to {SCHEMA}: restore with the ascard that wrote it, or a newer one",
            version.schema
        ));
    }
    serde_json::from_slice(line).map_err(|error| format!("header: {error}"))
}
