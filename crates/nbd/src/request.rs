//! What a client asks of an export.

use crate::PAYLOAD_BYTES_MAX;
use crate::error_code::ErrorCode;
use crate::fields::header;
use crate::numbers::{REQUEST_MAGIC, command_flag, transmission_flag};
use crate::parsed::{Malformed, Parsed, expect_magic, limited};

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Read.
    Read,
    /// Write the data that follows.
    Write,
    /// End the connection, once all that was asked is done. It has no reply.
    Disconnect,
    /// Reply once everything that was replied to is on the medium.
    Flush,
    /// Data is no longer needed.
    Trim,
    /// Data is going to be read.
    Cache,
    /// Write zeroes.
    WriteZeroes,
    /// Tell which parts are holes.
    BlockStatus,
    /// Something that is not known here.
    Other(u16),
}

impl Command {
    /// The command of a number.
    #[must_use]
    pub fn of(number: u16) -> Self {
        match number {
            0 => Self::Read,
            1 => Self::Write,
            2 => Self::Disconnect,
            3 => Self::Flush,
            4 => Self::Trim,
            5 => Self::Cache,
            6 => Self::WriteZeroes,
            7 => Self::BlockStatus,
            other => Self::Other(other),
        }
    }

    /// Its number.
    #[must_use]
    pub fn number(self) -> u16 {
        match self {
            Self::Read => 0,
            Self::Write => 1,
            Self::Disconnect => 2,
            Self::Flush => 3,
            Self::Trim => 4,
            Self::Cache => 5,
            Self::WriteZeroes => 6,
            Self::BlockStatus => 7,
            Self::Other(number) => number,
        }
    }

    /// Whether it changes data.
    #[must_use]
    pub fn changes(self) -> bool {
        matches!(self, Self::Write | Self::Trim | Self::WriteZeroes)
    }
}

/// A request without its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// How; see [`command_flag`].
    pub flags: u16,
    /// What.
    pub command: Command,
    /// By which replies name it.
    pub cookie: u64,
    /// Where.
    pub offset_bytes: u64,
    /// How much.
    pub length_bytes: u32,
}

impl Request {
    /// The length of its header.
    pub const BYTES: usize = 28;

    /// Reads a header.
    ///
    /// # Errors
    /// Another magic number, or a payload above [`PAYLOAD_BYTES_MAX`], behind which nothing could be found again.
    pub fn parse(bytes: &[u8]) -> Result<Parsed<Self>, Malformed> {
        header(bytes, Self::BYTES, |fields| {
            expect_magic("a request", fields.u32().into(), REQUEST_MAGIC.into())?;
            let request = Self {
                flags: fields.u16(),
                command: Command::of(fields.u16()),
                cookie: fields.u64(),
                offset_bytes: fields.u64(),
                length_bytes: fields.u32(),
            };
            limited(
                "data of a request",
                request.payload_bytes(),
                PAYLOAD_BYTES_MAX,
            )?;
            Ok(request)
        })
    }

    /// Its bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..4].copy_from_slice(&REQUEST_MAGIC.to_be_bytes());
        bytes[4..6].copy_from_slice(&self.flags.to_be_bytes());
        bytes[6..8].copy_from_slice(&self.command.number().to_be_bytes());
        bytes[8..16].copy_from_slice(&self.cookie.to_be_bytes());
        bytes[16..24].copy_from_slice(&self.offset_bytes.to_be_bytes());
        bytes[24..].copy_from_slice(&self.length_bytes.to_be_bytes());
        bytes
    }

    /// How much data follows the header.
    #[must_use]
    pub fn payload_bytes(&self) -> u32 {
        match self.command {
            Command::Write => self.length_bytes,
            _ => 0,
        }
    }

    /// How much data follows the header of a simple reply without an error.
    #[must_use]
    pub fn reply_bytes(&self) -> u32 {
        match self.command {
            Command::Read => self.length_bytes,
            _ => 0,
        }
    }

    /// Whether a flag is set; see [`command_flag`].
    #[must_use]
    pub fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    /// Why an export of this size does not do it, with the flags that were told on this connection. None where it does.
    #[must_use]
    pub fn refusal(&self, size_bytes: u64, told_flags: u16) -> Option<ErrorCode> {
        let can = |flag: u16| told_flags & flag != 0;
        let known = match self.command {
            Command::Read => can(transmission_flag::SEND_DF).then_some(command_flag::DF),
            Command::WriteZeroes => Some(command_flag::NO_HOLE | command_flag::FAST_ZERO),
            _ => None,
        };
        let fua = can(transmission_flag::SEND_FUA).then_some(command_flag::FUA);
        if self.flags & !(known.unwrap_or(0) | fua.unwrap_or(0)) != 0 {
            return Some(ErrorCode::Invalid);
        }
        let is_offered = match self.command {
            Command::Read | Command::Write | Command::Disconnect => true,
            Command::Flush => can(transmission_flag::SEND_FLUSH),
            Command::Trim => can(transmission_flag::SEND_TRIM),
            Command::Cache => can(transmission_flag::SEND_CACHE),
            Command::WriteZeroes => can(transmission_flag::SEND_WRITE_ZEROES),
            Command::BlockStatus | Command::Other(_) => false,
        };
        if !is_offered {
            return Some(ErrorCode::Invalid);
        }
        if self.command.changes() && can(transmission_flag::READ_ONLY) {
            return Some(ErrorCode::Permission);
        }
        if self.has(command_flag::FAST_ZERO) && !can(transmission_flag::SEND_FAST_ZERO) {
            return Some(ErrorCode::Unsupported);
        }
        if matches!(self.command, Command::Flush | Command::Disconnect) {
            return None;
        }
        let end = self.offset_bytes.checked_add(self.length_bytes.into());
        if end.is_none_or(|end| end > size_bytes) {
            return Some(match self.command {
                Command::Write | Command::WriteZeroes => ErrorCode::NoSpace,
                _ => ErrorCode::Invalid,
            });
        }
        let is_of_data = matches!(self.command, Command::Read | Command::Cache);
        let too_long = is_of_data && self.length_bytes > PAYLOAD_BYTES_MAX;
        too_long.then_some(ErrorCode::Invalid)
    }
}
