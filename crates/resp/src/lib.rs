//! The protocol of Redis (RESP2 and RESP3) as bytes: where commands and replies begin and end, and which commands change
//! what comes when.
//!
//! Source: "Redis serialization protocol specification", <https://redis.io/docs/latest/develop/reference/protocol-spec/>,
//! with inline commands, null arrays, attributes, pushes and streamed values. Pure: nothing is read, written or waited
//! for. Whoever moves the bytes hands over what has come; the answer is how many of those bytes pass together and how many
//! more follow that need not be looked at, that more must come, or one line that says what is wrong.
//!
//! [`commands`] reads what a client says, [`kind`] is what a command does to the order of replies, [`access`] what it does to
//! which key; [`replies`] reads what a server says. The values themselves never pass through here and are never copied.
//!
//! Parsers never trust their input: any bytes give a piece or an error, in bounded time and memory. Wherever
//! [`HEAD_BYTES_MAX`] bytes are at hand, one of the two is certain.

pub mod access;
pub mod commands;
pub mod kind;
mod lines;
pub mod replies;

use std::fmt;

pub use access::Access;
pub use commands::{Command, Commands, Part};
pub use kind::{Answers, Channels, Kind};
pub use replies::{Replies, Reply, Word};

/// The longest line: an inline command, a status, an error.
pub const LINE_BYTES_MAX: usize = 32 << 10;

/// As much as is ever needed to tell how a side goes on.
pub const HEAD_BYTES_MAX: usize = LINE_BYTES_MAX;

/// The longest value, which is also what Redis takes unless it is told otherwise.
pub const VALUE_BYTES_MAX: u64 = 512 << 20;

/// The most arguments of a command, and the most elements of a reply.
pub const ELEMENTS_MAX: u64 = i32::MAX as u64;

/// How deep a reply may be: elements of elements.
pub const DEPTH_MAX: usize = 128;

/// Bytes that pass together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// At least one, all of them at hand.
    pub head_bytes: usize,
    /// Those of a value that follow and are not at hand.
    pub body_bytes: usize,
}

/// What is wrong with what a side says, in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed(pub String);

impl fmt::Display for Malformed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Malformed {}
