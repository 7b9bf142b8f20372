//! What somebody wants of the switch, until the disk has it.

use crate::config::Mode;

/// What is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// Another mode.
    Mode(Mode),
    /// The end of the kill.
    Revive,
}

/// A deed that is not on disk yet.
#[derive(Clone, Debug)]
pub(super) struct Wish {
    pub ticket: u64,
    pub deed: Deed,
    /// Of the draft whose end is its own.
    pub number: u64,
    /// Why it will not be done.
    pub refused: Option<String>,
}

impl Wish {
    /// Ends with another draft, undone: what it might have left on disk is written over by then.
    pub fn refuse(&mut self, number: u64, why: &str) {
        self.number = number;
        self.refused.get_or_insert_with(|| why.to_owned());
    }
}

/// The end of a deed: now it may be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// What [`Switch::want`](super::Switch::want) has returned.
    pub ticket: u64,
    /// What was wanted.
    pub deed: Deed,
    /// Whether it is in force and on disk, or why not.
    pub done: Result<(), String>,
}
