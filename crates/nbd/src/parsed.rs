//! What comes of bytes.

use std::fmt;

/// What was found at the beginning of the bytes at hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parsed<T> {
    /// A whole value.
    Found {
        /// The value.
        value: T,
        /// The bytes that it took, from the first on.
        consumed_bytes: usize,
    },
    /// There is no telling yet.
    Needs {
        /// At least so many bytes must come after those at hand.
        more_bytes: usize,
    },
}

/// What a side of a negotiation made of the bytes at hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step<T> {
    /// There is no telling yet.
    Needs {
        /// At least so many bytes must come after those at hand.
        more_bytes: usize,
    },
    /// One message was taken, and the negotiation goes on.
    Took {
        /// The bytes of that message, from the first on.
        consumed_bytes: usize,
    },
    /// The negotiation is over; what follows these bytes belongs to what comes next.
    Done {
        /// The bytes of the last message, from the first on.
        consumed_bytes: usize,
        /// What came of it.
        outcome: T,
    },
}

/// What is wrong with what the other side says, in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed(pub String);

impl fmt::Display for Malformed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Malformed {}

/// A value within limits, or the refusal of it.
///
/// # Errors
/// Where it is above `most`.
pub(crate) fn limited(what: &str, value: u32, most: u32) -> Result<u32, Malformed> {
    if value > most {
        return Err(Malformed(format!(
            "{what}: {value} bytes; at most {most} are allowed"
        )));
    }
    Ok(value)
}

/// Refuses a number at the beginning of a message that is not the one which must be there.
///
/// # Errors
/// Where they differ.
pub(crate) fn expect_magic(what: &str, found: u64, expected: u64) -> Result<(), Malformed> {
    if found != expected {
        return Err(Malformed(format!(
            "{what}: begins with {found:#x}; must be {expected:#x}"
        )));
    }
    Ok(())
}

/// Refuses what comes behind the last message before TLS: it would be taken for something that was said inside it, and
/// anybody on the way can have put it there.
///
/// # Errors
/// Where there is something.
pub(crate) fn no_more_before_tls(behind: &[u8]) -> Result<(), Malformed> {
    if behind.is_empty() {
        return Ok(());
    }
    Err(Malformed(format!(
        "NBD_OPT_STARTTLS: {} bytes come behind it and before TLS; nothing may",
        behind.len()
    )))
}
