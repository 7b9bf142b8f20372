//! What a server replies: simple replies, and chunks of structured ones.

use crate::error_code::ErrorCode;
use crate::fields::{Fields, header};
use crate::numbers::{SIMPLE_REPLY_MAGIC, STRUCTURED_REPLY_MAGIC, chunk_flag, chunk_kind};
use crate::option::text;
use crate::parsed::{Malformed, Parsed, limited};
use crate::request::Request;
use crate::{PAYLOAD_BYTES_MAX, TEXT_BYTES_MAX};

/// An offset stands before the data of a chunk.
const OFFSET_BYTES: u32 = 8;

/// A simple reply without its payload: the data of a read that had no error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimpleReply {
    /// The error's number; 0 for none. See [`ErrorCode`].
    pub error: u32,
    /// Of the request.
    pub cookie: u64,
}

impl SimpleReply {
    /// The length of its header.
    pub const BYTES: usize = 16;

    /// Success, or a refusal.
    #[must_use]
    pub fn new(cookie: u64, refusal: Option<ErrorCode>) -> Self {
        Self {
            error: refusal.map_or(0, ErrorCode::number),
            cookie,
        }
    }

    /// Its bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..4].copy_from_slice(&SIMPLE_REPLY_MAGIC.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.error.to_be_bytes());
        bytes[8..].copy_from_slice(&self.cookie.to_be_bytes());
        bytes
    }
}

/// A chunk of a structured reply without its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// See [`chunk_flag`].
    pub flags: u16,
    /// What it holds; see [`chunk_kind`].
    pub kind: u16,
    /// Of the request.
    pub cookie: u64,
    /// How much data follows.
    pub payload_bytes: u32,
}

impl Chunk {
    /// The length of its header.
    pub const BYTES: usize = 20;

    /// The length of what stands before the data of a read.
    pub const DATA_BYTES: usize = Self::BYTES + OFFSET_BYTES as usize;

    /// Its bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..4].copy_from_slice(&STRUCTURED_REPLY_MAGIC.to_be_bytes());
        bytes[4..6].copy_from_slice(&self.flags.to_be_bytes());
        bytes[6..8].copy_from_slice(&self.kind.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.cookie.to_be_bytes());
        bytes[16..].copy_from_slice(&self.payload_bytes.to_be_bytes());
        bytes
    }

    /// The bytes of a last chunk without a payload.
    #[must_use]
    pub fn none(cookie: u64) -> [u8; Self::BYTES] {
        Self {
            flags: chunk_flag::DONE,
            kind: chunk_kind::NONE,
            cookie,
            payload_bytes: 0,
        }
        .encode()
    }

    /// What stands before the data of `request`, a read of at least one byte, where all of it is in this one chunk.
    #[must_use]
    pub fn data(request: &Request) -> [u8; Self::DATA_BYTES] {
        let header = Self {
            flags: chunk_flag::DONE,
            kind: chunk_kind::OFFSET_DATA,
            cookie: request.cookie,
            payload_bytes: request.length_bytes.saturating_add(OFFSET_BYTES),
        };
        let mut bytes = [0; Self::DATA_BYTES];
        bytes[..Self::BYTES].copy_from_slice(&header.encode());
        bytes[Self::BYTES..].copy_from_slice(&request.offset_bytes.to_be_bytes());
        bytes
    }

    /// The bytes of a last chunk that tells an error, with its payload. A message that is too long is cut.
    #[must_use]
    pub fn refusal(cookie: u64, code: ErrorCode, message: &str) -> Vec<u8> {
        let most = message.len().min(TEXT_BYTES_MAX);
        let is_end = |at: &usize| message.is_char_boundary(*at);
        let message = &message[..(0..=most).rev().find(is_end).unwrap_or(0)];
        let header = Self {
            flags: chunk_flag::DONE,
            kind: chunk_kind::ERROR,
            cookie,
            payload_bytes: 6 + message.len() as u32,
        };
        let mut bytes = header.encode().to_vec();
        bytes.extend_from_slice(&code.number().to_be_bytes());
        bytes.extend_from_slice(&(message.len() as u16).to_be_bytes());
        bytes.extend_from_slice(message.as_bytes());
        bytes
    }

    /// Whether it tells an error; [`ChunkError::parse`] reads its payload.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.kind & chunk_kind::ERROR_BIT != 0
    }

    /// Whether it is the last one of its request.
    #[must_use]
    pub fn is_last(&self) -> bool {
        self.flags & chunk_flag::DONE != 0
    }

    /// How many bytes of a read's data its payload holds: its rest is an offset.
    #[must_use]
    pub fn read_bytes(&self) -> u32 {
        match self.kind {
            chunk_kind::OFFSET_DATA => self.payload_bytes.saturating_sub(OFFSET_BYTES),
            _ => 0,
        }
    }

    fn check(self) -> Result<Self, Malformed> {
        limited(
            "data of a chunk",
            self.payload_bytes,
            PAYLOAD_BYTES_MAX + OFFSET_BYTES,
        )?;
        let fits = match self.kind {
            chunk_kind::NONE => self.payload_bytes == 0 && self.is_last(),
            chunk_kind::OFFSET_DATA => self.payload_bytes > OFFSET_BYTES,
            chunk_kind::OFFSET_HOLE => self.payload_bytes == 12,
            chunk_kind::BLOCK_STATUS => self.payload_bytes >= 12 && self.payload_bytes % 8 == 4,
            _ => !self.is_error() || self.payload_bytes >= 6,
        };
        if fits {
            Ok(self)
        } else {
            Err(Malformed(format!(
                "a chunk of kind {:#x}: {} bytes of data are not its length",
                self.kind, self.payload_bytes
            )))
        }
    }
}

/// The payload of a chunk that tells an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkError {
    /// Its number; see [`ErrorCode`].
    pub error: u32,
    /// A text for people; may be empty.
    pub message: String,
}

impl ChunkError {
    /// Reads all of a payload.
    ///
    /// # Errors
    /// Lengths that contradict each other, an error without a number, or a message that is not UTF-8.
    pub fn parse(payload: &[u8]) -> Result<Self, Malformed> {
        let mut fields = Fields::new(payload);
        let (error, length) = (fields.u32(), fields.u16());
        let message = text("the message of an error", fields.bytes(length.into()))?;
        // An error at an offset tells that too.
        fields.rest();
        if !fields.is_whole() || error == 0 {
            return Err(Malformed(
                "a chunk that tells an error: ends too early, or has the number 0".to_owned(),
            ));
        }
        Ok(Self { error, message })
    }
}

/// What a message of a server begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyHeader {
    /// A simple reply.
    Simple(SimpleReply),
    /// A chunk of a structured reply.
    Chunk(Chunk),
}

impl ReplyHeader {
    /// Reads a header. [`ReplyHeader::payload_bytes`] tells what follows it.
    ///
    /// # Errors
    /// Another magic number, or a chunk whose length does not go with its kind.
    pub fn parse(bytes: &[u8]) -> Result<Parsed<Self>, Malformed> {
        let magic = match header(bytes, 4, |fields| Ok(fields.u32()))? {
            Parsed::Found { value, .. } => value,
            Parsed::Needs { .. } => {
                return Ok(Parsed::Needs {
                    more_bytes: SimpleReply::BYTES - bytes.len(),
                });
            }
        };
        match magic {
            SIMPLE_REPLY_MAGIC => header(bytes, SimpleReply::BYTES, |fields| {
                fields.u32();
                Ok(Self::Simple(SimpleReply {
                    error: fields.u32(),
                    cookie: fields.u64(),
                }))
            }),
            STRUCTURED_REPLY_MAGIC => header(bytes, Chunk::BYTES, |fields| {
                fields.u32();
                let chunk = Chunk {
                    flags: fields.u16(),
                    kind: fields.u16(),
                    cookie: fields.u64(),
                    payload_bytes: fields.u32(),
                };
                chunk.check().map(Self::Chunk)
            }),
            other => Err(Malformed(format!(
                "a reply: begins with {other:#x}; must be {SIMPLE_REPLY_MAGIC:#x} or \
                 {STRUCTURED_REPLY_MAGIC:#x}"
            ))),
        }
    }

    /// Of the request that it belongs to.
    #[must_use]
    pub fn cookie(&self) -> u64 {
        match self {
            Self::Simple(reply) => reply.cookie,
            Self::Chunk(chunk) => chunk.cookie,
        }
    }

    /// How much data follows the header, as an answer to `request`.
    #[must_use]
    pub fn payload_bytes(&self, request: &Request) -> u32 {
        match self {
            Self::Simple(reply) if reply.error == 0 => request.reply_bytes(),
            Self::Simple(_) => 0,
            Self::Chunk(chunk) => chunk.payload_bytes,
        }
    }

    /// Whether nothing more comes for the request.
    #[must_use]
    pub fn is_last(&self) -> bool {
        match self {
            Self::Simple(_) => true,
            Self::Chunk(chunk) => chunk.is_last(),
        }
    }

    /// Whether it tells an error.
    #[must_use]
    pub fn is_error(&self) -> bool {
        match self {
            Self::Simple(reply) => reply.error != 0,
            Self::Chunk(chunk) => chunk.is_error(),
        }
    }
}
