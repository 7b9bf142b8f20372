//! The messages of a negotiation: options that a client sends, and the server's answers.

use crate::export::BlockSizes;
use crate::fields::{Fields, header};
use crate::numbers::{IHAVEOPT, OPTION_REPLY_MAGIC, info_kind, option_reply};
use crate::parsed::{Malformed, Parsed, expect_magic, limited};
use crate::{OPTION_BYTES_MAX, TEXT_BYTES_MAX};

/// What stands before an option's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionHeader {
    /// Which option; see [`crate::numbers::option_kind`].
    pub kind: u32,
    /// How much data follows.
    pub data_bytes: u32,
}

impl OptionHeader {
    /// Its length.
    pub const BYTES: usize = 16;

    /// Reads a header.
    ///
    /// # Errors
    /// Another magic number, or more data than [`OPTION_BYTES_MAX`].
    pub fn parse(bytes: &[u8]) -> Result<Parsed<Self>, Malformed> {
        header(bytes, Self::BYTES, |fields| {
            expect_magic("an option", fields.u64(), IHAVEOPT)?;
            let kind = fields.u32();
            let data_bytes = limited("data of an option", fields.u32(), OPTION_BYTES_MAX)?;
            Ok(Self { kind, data_bytes })
        })
    }
}

/// Appends an option with its data.
///
/// # Panics
/// Where the data is longer than [`OPTION_BYTES_MAX`].
pub fn write_option(kind: u32, data: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&IHAVEOPT.to_be_bytes());
    out.extend_from_slice(&kind.to_be_bytes());
    out.extend_from_slice(&length_of(data).to_be_bytes());
    out.extend_from_slice(data);
}

/// What stands before the data of an answer to an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionReplyHeader {
    /// The option that is answered.
    pub option: u32,
    /// What the answer is; see [`crate::numbers::option_reply`].
    pub kind: u32,
    /// How much data follows.
    pub data_bytes: u32,
}

impl OptionReplyHeader {
    /// Its length.
    pub const BYTES: usize = 20;

    /// Reads a header.
    ///
    /// # Errors
    /// Another magic number, or more data than [`OPTION_BYTES_MAX`].
    pub fn parse(bytes: &[u8]) -> Result<Parsed<Self>, Malformed> {
        header(bytes, Self::BYTES, |fields| {
            expect_magic("an answer to an option", fields.u64(), OPTION_REPLY_MAGIC)?;
            let (option, kind) = (fields.u32(), fields.u32());
            let data_bytes = limited(
                "data of an answer to an option",
                fields.u32(),
                OPTION_BYTES_MAX,
            )?;
            Ok(Self {
                option,
                kind,
                data_bytes,
            })
        })
    }

    /// Whether the option is refused.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        self.kind & option_reply::ERROR_BIT != 0
    }
}

/// Appends an answer to an option with its data.
///
/// # Panics
/// Where the data is longer than [`OPTION_BYTES_MAX`].
pub fn write_reply(option: u32, kind: u32, data: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&OPTION_REPLY_MAGIC.to_be_bytes());
    out.extend_from_slice(&option.to_be_bytes());
    out.extend_from_slice(&kind.to_be_bytes());
    out.extend_from_slice(&length_of(data).to_be_bytes());
    out.extend_from_slice(data);
}

fn length_of(data: &[u8]) -> u32 {
    let length = u32::try_from(data.len()).ok();
    length
        .filter(|length| *length <= OPTION_BYTES_MAX)
        .expect("data of an option is within its limit")
}

/// The data of `NBD_OPT_INFO` and `NBD_OPT_GO`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InfoRequest {
    /// The export.
    pub name: String,
    /// What is to be told besides size and flags; see [`info_kind`].
    pub kinds: Vec<u16>,
}

impl InfoRequest {
    /// Reads all of an option's data.
    ///
    /// # Errors
    /// Lengths that contradict each other, or a name too long or not UTF-8.
    pub fn parse(data: &[u8]) -> Result<Self, Malformed> {
        let mut fields = Fields::new(data);
        let length = fields.u32();
        let name = text("the export's name", fields.bytes(length as usize))?;
        let count = usize::from(fields.u16());
        if fields.left() != 2 * count {
            return Err(Malformed(format!(
                "the kinds of information asked for: {} bytes; their count {count} takes {}",
                fields.left(),
                2 * count
            )));
        }
        let kinds = (0..count).map(|_| fields.u16()).collect();
        if !fields.is_whole() {
            return Err(Malformed(
                "the request for information: ends too early".to_owned(),
            ));
        }
        Ok(Self { name, kinds })
    }

    /// Its bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(6 + self.name.len() + 2 * self.kinds.len());
        bytes.extend_from_slice(&(self.name.len() as u32).to_be_bytes());
        bytes.extend_from_slice(self.name.as_bytes());
        bytes.extend_from_slice(&(self.kinds.len() as u16).to_be_bytes());
        for kind in &self.kinds {
            bytes.extend_from_slice(&kind.to_be_bytes());
        }
        bytes
    }
}

/// The data of an answer `NBD_REP_INFO`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Info {
    /// Size and flags.
    Export {
        /// The size.
        size_bytes: u64,
        /// See [`crate::numbers::transmission_flag`].
        flags: u16,
    },
    /// The export's own name.
    Name(String),
    /// A text for people.
    Description(String),
    /// Lengths and alignments of requests.
    BlockSize(BlockSizes),
    /// Something that is not known here, which the protocol says to ignore.
    Other(u16),
}

impl Info {
    /// Reads all of an answer's data.
    ///
    /// # Errors
    /// Data that is too short or too long for its kind.
    pub fn parse(data: &[u8]) -> Result<Self, Malformed> {
        let mut fields = Fields::new(data);
        let kind = fields.u16();
        let info = match kind {
            info_kind::EXPORT => Self::Export {
                size_bytes: fields.u64(),
                flags: fields.u16(),
            },
            info_kind::NAME => Self::Name(text("the export's name", fields.rest())?),
            info_kind::DESCRIPTION => {
                Self::Description(text("the export's description", fields.rest())?)
            }
            info_kind::BLOCK_SIZE => Self::BlockSize(BlockSizes {
                least_bytes: fields.u32(),
                preferred_bytes: fields.u32(),
                most_bytes: fields.u32(),
            }),
            other => {
                fields.rest();
                Self::Other(other)
            }
        };
        if !fields.is_whole() {
            return Err(Malformed(format!(
                "information of kind {kind} on an export: {} bytes are not its length",
                data.len()
            )));
        }
        Ok(info)
    }

    /// Its bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut put = |part: &[u8]| bytes.extend_from_slice(part);
        match self {
            Self::Export { size_bytes, flags } => {
                put(&info_kind::EXPORT.to_be_bytes());
                put(&size_bytes.to_be_bytes());
                put(&flags.to_be_bytes());
            }
            Self::Name(name) => {
                put(&info_kind::NAME.to_be_bytes());
                put(name.as_bytes());
            }
            Self::Description(text) => {
                put(&info_kind::DESCRIPTION.to_be_bytes());
                put(text.as_bytes());
            }
            Self::BlockSize(sizes) => {
                put(&info_kind::BLOCK_SIZE.to_be_bytes());
                put(&sizes.least_bytes.to_be_bytes());
                put(&sizes.preferred_bytes.to_be_bytes());
                put(&sizes.most_bytes.to_be_bytes());
            }
            Self::Other(kind) => put(&kind.to_be_bytes()),
        }
        bytes
    }
}

/// The data of an answer `NBD_REP_SERVER`: the name of an export, and a text for people, which may be empty.
#[must_use]
pub fn listed(name: &str, description: &str) -> Vec<u8> {
    let mut bytes = (name.len() as u32).to_be_bytes().to_vec();
    bytes.extend_from_slice(name.as_bytes());
    bytes.extend_from_slice(description.as_bytes());
    bytes
}

/// Reads the name out of the data of an answer `NBD_REP_SERVER`.
///
/// # Errors
/// A length beyond the data, or a name too long or not UTF-8.
pub fn parse_listed(data: &[u8]) -> Result<String, Malformed> {
    let mut fields = Fields::new(data);
    let length = fields.u32();
    let name = text("the export's name", fields.bytes(length as usize))?;
    fields.rest();
    if !fields.is_whole() {
        return Err(Malformed(
            "a name in the list of exports: ends too early".to_owned(),
        ));
    }
    Ok(name)
}

/// A text of the protocol.
///
/// # Errors
/// One that is too long, or not UTF-8.
pub(crate) fn text(what: &str, bytes: &[u8]) -> Result<String, Malformed> {
    if bytes.len() > TEXT_BYTES_MAX {
        return Err(Malformed(format!(
            "{what}: {} bytes; at most {TEXT_BYTES_MAX} are allowed",
            bytes.len()
        )));
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.to_owned()),
        Err(_) => Err(Malformed(format!(
            "{what} = \"{}\": is not UTF-8 text",
            bytes.escape_ascii()
        ))),
    }
}
