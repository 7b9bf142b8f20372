//! Why something is refused or ends, in one line.

use std::fmt;

/// A refusal, or the end of a daemon's work: what, its value, what is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault(pub String);

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Fault {}
