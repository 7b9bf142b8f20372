//! Where a workload file is wrong.

use std::fmt;

/// A word of a workload file that is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WmlError {
    /// Line, counted from 1.
    pub line: usize,
    /// The word, as written (shortened when long); empty at the end of the file.
    pub word: String,
    /// What is wrong with it, and what is allowed.
    pub text: String,
}

const LONGEST_WORD: usize = 60;

impl WmlError {
    pub(crate) fn new(line: usize, word: &str, text: impl Into<String>) -> WmlError {
        let mut shown: String = word
            .chars()
            .filter(|c| !c.is_control())
            .take(LONGEST_WORD)
            .collect();
        if word.chars().count() > LONGEST_WORD {
            shown.push('…');
        }
        WmlError {
            line,
            word: shown,
            text: text.into(),
        }
    }
}

impl fmt::Display for WmlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.word.is_empty() {
            write!(f, "line {}: {}", self.line, self.text)
        } else {
            write!(f, "line {}: '{}': {}", self.line, self.word, self.text)
        }
    }
}

impl std::error::Error for WmlError {}
