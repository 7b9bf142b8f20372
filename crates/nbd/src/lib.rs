//! The protocol of network block devices (NBD) as bytes: fixed newstyle negotiation, requests, replies.
//!
//! Source: "The NBD protocol", <https://github.com/NetworkBlockDevice/nbd/blob/master/doc/proto.md>. Numbers are
//! big-endian. Pure: nothing is read, written or waited for. Whoever moves the bytes hands over what has come; the
//! answer is what was found and how many bytes that took, how many more are needed, or one line that says what is
//! wrong, after which the connection is of no use.
//!
//! [`server`] and [`client`] are the two sides of a negotiation; [`option`] its single messages, for what passes them
//! on. [`request`] and [`reply`] read and write headers alone: payloads, whose lengths the headers tell, never pass
//! through here, so that a proxy hands them on as they come. Both sides know when TLS starts, and refuse what somebody
//! puts before it; TLS itself is the business of whoever moves the bytes. Of the extensions there are structured replies; block
//! status and extended headers are refused as the protocol has it, by an answer that every client understands.
//!
//! Parsers never trust their input: any bytes give a value or an error, in bounded time and memory.

pub mod client;
pub mod error_code;
pub mod export;
mod fields;
pub mod greeting;
pub mod numbers;
pub mod option;
pub mod parsed;
pub mod reply;
pub mod request;
pub mod server;

pub use client::{Agreed, ClientHandshake};
pub use error_code::ErrorCode;
pub use export::{BlockSizes, Export};
pub use parsed::{Malformed, Parsed, Step};
pub use reply::{Chunk, ReplyHeader, SimpleReply};
pub use request::{Command, Request};
pub use server::{Negotiated, ServerHandshake};

/// The most data that one request carries or asks for.
pub const PAYLOAD_BYTES_MAX: u32 = 32 << 20;

/// The most data that an option or the answer to one carries.
pub const OPTION_BYTES_MAX: u32 = 64 << 10;

/// The longest name of an export, and the longest description or message, as the protocol has it.
pub const TEXT_BYTES_MAX: usize = 4096;

/// Options in one negotiation: a client that goes on for longer wants nothing.
pub const OPTIONS_MAX: u32 = 64;
