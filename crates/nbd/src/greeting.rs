//! The first words: the server's greeting, and the client's flags.

use crate::fields::header;
use crate::numbers::{CLISERV_MAGIC, IHAVEOPT, NBDMAGIC, handshake_flag};
use crate::parsed::{Malformed, Parsed, expect_magic};

/// A newstyle server's greeting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Greeting {
    /// Whether options are answered, so that a client may ask for more than an export.
    pub fixed_newstyle: bool,
    /// Whether the server can leave out zeroes.
    pub no_zeroes: bool,
}

impl Greeting {
    /// Its length.
    pub const BYTES: usize = 18;

    /// Reads a greeting.
    ///
    /// # Errors
    /// Anything but a newstyle server's.
    pub fn parse(bytes: &[u8]) -> Result<Parsed<Self>, Malformed> {
        header(bytes, Self::BYTES, |fields| {
            expect_magic("the server's greeting", fields.u64(), NBDMAGIC)?;
            let second = fields.u64();
            if second == CLISERV_MAGIC {
                return Err(Malformed(
                    "the server's greeting: is of oldstyle negotiation; only newstyle is known"
                        .to_owned(),
                ));
            }
            expect_magic("the greeting's second word", second, IHAVEOPT)?;
            let flags = fields.u16();
            Ok(Self {
                fixed_newstyle: flags & handshake_flag::FIXED_NEWSTYLE != 0,
                no_zeroes: flags & handshake_flag::NO_ZEROES != 0,
            })
        })
    }

    /// Its bytes.
    #[must_use]
    pub fn encode(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&NBDMAGIC.to_be_bytes());
        bytes[8..16].copy_from_slice(&IHAVEOPT.to_be_bytes());
        let flags = flags_of(self.fixed_newstyle, self.no_zeroes);
        bytes[16..].copy_from_slice(&flags.to_be_bytes());
        bytes
    }
}

/// A client's answer to the greeting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientFlags {
    /// Whether it understands answers to options.
    pub fixed_newstyle: bool,
    /// Whether zeroes are to be left out.
    pub no_zeroes: bool,
}

impl ClientFlags {
    /// Their length.
    pub const BYTES: usize = 4;

    /// Reads a client's flags.
    ///
    /// # Errors
    /// Flags that the protocol does not have.
    pub fn parse(bytes: &[u8]) -> Result<Parsed<Self>, Malformed> {
        header(bytes, Self::BYTES, |fields| {
            let flags = fields.u32();
            let known = u32::from(handshake_flag::FIXED_NEWSTYLE | handshake_flag::NO_ZEROES);
            if flags & !known != 0 {
                return Err(Malformed(format!(
                    "the client's flags: {flags:#x}; only the bits {known:#x} are allowed"
                )));
            }
            Ok(Self {
                fixed_newstyle: flags & u32::from(handshake_flag::FIXED_NEWSTYLE) != 0,
                no_zeroes: flags & u32::from(handshake_flag::NO_ZEROES) != 0,
            })
        })
    }

    /// Their bytes.
    #[must_use]
    pub fn encode(self) -> [u8; Self::BYTES] {
        u32::from(flags_of(self.fixed_newstyle, self.no_zeroes)).to_be_bytes()
    }
}

fn flags_of(fixed_newstyle: bool, no_zeroes: bool) -> u16 {
    let mut flags = 0;
    if fixed_newstyle {
        flags |= handshake_flag::FIXED_NEWSTYLE;
    }
    if no_zeroes {
        flags |= handshake_flag::NO_ZEROES;
    }
    flags
}
