//! What a restore did.

use serde::{Deserialize, Serialize};

use crate::journal::Waiting;

/// A knob that somebody else has changed meanwhile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftAlone {
    /// The knob.
    pub target: String,
    /// What we had set.
    pub expected: String,
    /// What is there.
    pub found: String,
}

/// Changes that stay in force only if they are confirmed in time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pending {
    /// Who made them.
    pub owner: String,
    /// The time that is left for that.
    pub left_s: u64,
    /// When it ends, as the clock of the machine was then.
    pub until_unix_s: u64,
    /// How many there are.
    pub changes: usize,
}

impl Pending {
    /// Those of a session; None when its time is over.
    pub fn of(waiting: &Waiting) -> Option<Self> {
        let left = waiting.unconfirmed.left(&waiting.header)?;
        Some(Self {
            owner: waiting.header.owner.clone(),
            left_s: left.as_secs(),
            until_unix_s: waiting.unconfirmed.until.unix_s,
            changes: waiting.changes,
        })
    }
}

/// What was put back, what was not, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Put back.
    pub restored: Vec<String>,
    /// Changed by somebody else: reported, not overwritten.
    pub left_alone: Vec<LeftAlone>,
    /// Could not be put back.
    pub failed: Vec<String>,
    /// Still in force, and not confirmed yet.
    #[serde(default)]
    pub unconfirmed: Vec<Pending>,
}

impl Report {
    /// Takes another report's lines in.
    pub fn extend(&mut self, other: Self) {
        self.restored.extend(other.restored);
        self.left_alone.extend(other.left_alone);
        self.failed.extend(other.failed);
        self.unconfirmed.extend(other.unconfirmed);
    }
}
