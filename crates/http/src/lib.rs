//! The framing of HTTP/1.1 as bytes: where heads end, how long what follows them is, and what is of one hop alone.
//!
//! Source: RFC 9112 (messages) and RFC 9110 (semantics). Pure: nothing is read, written or waited for. Whoever moves the
//! bytes hands over what has come; the answer is what was found and how many bytes that took, that more must come, or a
//! [`Refusal`], after which the connection is of no use. Bodies never pass through here: a head or a chunk's line tells
//! how much follows, so that a proxy hands it on as it comes.
//!
//! [`request`] and [`response`] read heads, [`target`] what a request is to, [`chunks`] what stands between the data of a
//! chunked body; [`refusal`] is what a proxy answers itself. What two readers could understand in two ways is refused, and
//! never repaired: a length beside chunks, two lengths, lines that end without a carriage return or go on in the next one,
//! blanks before a colon.
//!
//! Parsers never trust their input: any bytes give a value or a refusal, in bounded time and memory.

pub mod body;
pub mod chunks;
mod fields;
pub mod refusal;
pub mod request;
pub mod response;
pub mod target;

pub use body::Body;
pub use chunks::{Chunks, Piece};
pub use refusal::{Refusal, Status};
pub use request::Request;
pub use response::Response;
pub use target::Target;

#[cfg(test)]
mod tests;

/// The longest head of a message, with its first line.
pub const HEAD_BYTES_MAX: usize = 32 << 10;

/// The most fields of a head.
pub const FIELDS_MAX: usize = 128;

/// The longest line of a chunk: its size, and extensions that nobody uses.
pub const CHUNK_LINE_BYTES_MAX: usize = 256;

/// The longest trailer behind the last chunk.
pub const TRAILER_BYTES_MAX: usize = 8 << 10;
