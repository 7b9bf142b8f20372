//! What can go wrong, and the exit status each kind gives.

use std::fmt;

/// Why a load could not be run, or did not finish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoadError {
    /// An option, or a word of the workload file, is wrong: nothing was touched. Exit status 2.
    Input(String),
    /// The work itself failed: disk full, directory gone, no permission. Exit status 1.
    Work(String),
}

impl LoadError {
    /// The process's exit status for this error.
    #[must_use]
    pub fn status(&self) -> u8 {
        match self {
            LoadError::Input(_) => 2,
            LoadError::Work(_) => 1,
        }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Input(text) | LoadError::Work(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for LoadError {}
