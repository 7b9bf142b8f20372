//! What can go wrong, as the client sees it.

use std::fmt::Display;

use serde::Serialize;

/// Who has to act on a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The request is wrong; nothing was touched.
    Input,
    /// A safety rule says no; nothing was touched.
    Refused,
    /// The work itself failed.
    Failed,
    /// The work did not end in its time.
    Timeout,
}

/// A failed operation: the body of an error reply.
#[derive(Clone, Debug, Serialize)]
pub struct Fault {
    /// Who has to act.
    pub kind: Kind,
    /// One line: the offending name, its value, what is allowed.
    pub message: String,
    /// The last output of the program that failed, or the kernel's words.
    pub stderr: String,
}

/// Shorthand of this crate.
pub type Result<T> = std::result::Result<T, Fault>;

impl Fault {
    fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            stderr: String::new(),
        }
    }

    /// The request is wrong.
    pub fn input(message: impl Into<String>) -> Self {
        Self::new(Kind::Input, message)
    }

    /// A safety rule says no.
    pub fn refused(message: impl Into<String>) -> Self {
        Self::new(Kind::Refused, message)
    }

    /// The work failed.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(Kind::Failed, message)
    }

    /// The time is over.
    pub fn timeout(message: impl Into<String>) -> Self {
        Self::new(Kind::Timeout, message)
    }

    /// The same fault with a program's or the kernel's words.
    pub fn with_stderr(mut self, stderr: impl Into<String>) -> Self {
        self.stderr = stderr.into();
        self
    }
}

/// Turns a system error into a fault that says what was being done.
pub trait Doing<T> {
    /// `doing` is a phrase such as "write /proc/sys/vm/swappiness".
    fn doing(self, doing: impl Display) -> Result<T>;
}

impl<T, E: Display> Doing<T> for std::result::Result<T, E> {
    fn doing(self, doing: impl Display) -> Result<T> {
        self.map_err(|error| Fault::failed(format!("cannot {doing}: {error}")))
    }
}
