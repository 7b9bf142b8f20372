//! What a restore did.

use serde::Serialize;

/// A knob that somebody else has changed meanwhile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeftAlone {
    /// The knob.
    pub target: String,
    /// What we had set.
    pub expected: String,
    /// What is there.
    pub found: String,
}

/// What was put back, what was not, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Put back.
    pub restored: Vec<String>,
    /// Changed by somebody else: reported, not overwritten.
    pub left_alone: Vec<LeftAlone>,
    /// Could not be put back.
    pub failed: Vec<String>,
}

impl Report {
    /// Takes another report's lines in.
    pub fn extend(&mut self, other: Self) {
        self.restored.extend(other.restored);
        self.left_alone.extend(other.left_alone);
        self.failed.extend(other.failed);
    }
}
