//! The client's side of a negotiation.

use crate::export::{BlockSizes, Export};
use crate::fields::header;
use crate::greeting::{ClientFlags, Greeting};
use crate::numbers::{info_kind, option_kind, option_reply};
use crate::option::{Info, InfoRequest, OptionReplyHeader, write_option};
use crate::parsed::{Malformed, Parsed, Step, no_more_before_tls};

/// Answers to one option: a server that goes on for longer never comes to an end.
const REPLIES_MAX: u32 = 256;

/// What was agreed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Agreed {
    /// Requests follow.
    Transmission {
        /// The export, as the server described it. Its flags are those told on this connection.
        export: Export,
        /// Whether replies to reads are structured.
        structured_replies: bool,
    },
    /// TLS follows at once; inside it, [`ClientHandshake::go_on`] has the next word.
    StartTls,
}

/// What the client waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaits {
    Greeting,
    StartTls,
    StructuredReplies,
    Go,
    /// Size and flags, and zeroes where the server does not leave them out.
    ExportName {
        zeroes: bool,
    },
}

/// A negotiation with one server, for one export.
#[derive(Clone, Debug)]
pub struct ClientHandshake {
    awaits: Awaits,
    wants_tls: bool,
    wants_structured_replies: bool,
    no_zeroes: bool,
    structured_replies: bool,
    replies: u32,
    has_size: bool,
    export: Export,
}

impl ClientHandshake {
    /// A negotiation for the export of a name; the empty one stands for the server's first. Structured replies are
    /// asked for where they are wanted, and not insisted upon.
    ///
    /// # Errors
    /// A name that is too long.
    pub fn new(name: &str, wants_structured_replies: bool) -> Result<Self, Malformed> {
        let name = crate::option::text("the export's name", name.as_bytes())?;
        Ok(Self {
            awaits: Awaits::Greeting,
            wants_tls: false,
            wants_structured_replies,
            no_zeroes: false,
            structured_replies: false,
            replies: 0,
            has_size: false,
            export: Export {
                name,
                description: String::new(),
                size_bytes: 0,
                flags: 0,
                block_sizes: BlockSizes::default(),
            },
        })
    }

    /// The same, where TLS comes before anything else.
    #[must_use]
    pub fn with_tls(self) -> Self {
        Self {
            wants_tls: true,
            ..self
        }
    }

    /// Whether zeroes are left out, as the greeting and the client's flags have it.
    #[must_use]
    pub fn no_zeroes(&self) -> bool {
        self.no_zeroes
    }

    /// Takes one message of the server out of the bytes at hand, and appends what is said next to `out`.
    ///
    /// # Errors
    /// What the protocol does not have, the server's refusal of TLS or the export, in its own words, or bytes between its
    /// consent to TLS and TLS, which somebody on the way may have put there.
    pub fn take(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<Step<Agreed>, Malformed> {
        match self.awaits {
            Awaits::Greeting => self.take_greeting(bytes, out),
            Awaits::StartTls | Awaits::StructuredReplies | Awaits::Go => {
                self.take_reply(bytes, out)
            }
            Awaits::ExportName { zeroes } => self.take_export(bytes, zeroes),
        }
    }

    fn take_greeting(
        &mut self,
        bytes: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Step<Agreed>, Malformed> {
        let (greeting, consumed_bytes) = match Greeting::parse(bytes)? {
            Parsed::Found {
                value,
                consumed_bytes,
            } => (value, consumed_bytes),
            Parsed::Needs { more_bytes } => return Ok(Step::Needs { more_bytes }),
        };
        if self.wants_tls && !greeting.fixed_newstyle {
            return Err(Malformed(
                "the server's greeting: answers no options (fixed newstyle), and so has no TLS"
                    .to_owned(),
            ));
        }
        self.no_zeroes = greeting.no_zeroes;
        let flags = ClientFlags {
            fixed_newstyle: greeting.fixed_newstyle,
            no_zeroes: greeting.no_zeroes,
        };
        out.extend_from_slice(&flags.encode());
        if !greeting.fixed_newstyle {
            self.ask_by_name(out);
        } else if self.wants_tls {
            self.awaits = Awaits::StartTls;
            write_option(option_kind::STARTTLS, b"", out);
        } else {
            self.go_on(out);
        }
        Ok(Step::Took { consumed_bytes })
    }

    /// Appends what is said once TLS is there.
    pub fn go_on(&mut self, out: &mut Vec<u8>) {
        if self.wants_structured_replies {
            self.awaits = Awaits::StructuredReplies;
            write_option(option_kind::STRUCTURED_REPLY, b"", out);
        } else {
            self.ask_to_go(out);
        }
    }

    fn ask_to_go(&mut self, out: &mut Vec<u8>) {
        self.awaits = Awaits::Go;
        let request = InfoRequest {
            name: self.export.name.clone(),
            kinds: vec![info_kind::BLOCK_SIZE],
        };
        write_option(option_kind::GO, &request.encode(), out);
    }

    fn ask_by_name(&mut self, out: &mut Vec<u8>) {
        self.awaits = Awaits::ExportName {
            zeroes: !self.no_zeroes,
        };
        write_option(option_kind::EXPORT_NAME, self.export.name.as_bytes(), out);
    }

    fn take_reply(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<Step<Agreed>, Malformed> {
        let header = match OptionReplyHeader::parse(bytes)? {
            Parsed::Found { value, .. } => value,
            Parsed::Needs { more_bytes } => return Ok(Step::Needs { more_bytes }),
        };
        let consumed_bytes = OptionReplyHeader::BYTES + header.data_bytes as usize;
        let Some(data) = bytes.get(OptionReplyHeader::BYTES..consumed_bytes) else {
            return Ok(Step::Needs {
                more_bytes: consumed_bytes - bytes.len(),
            });
        };
        let asked = match self.awaits {
            Awaits::StartTls => option_kind::STARTTLS,
            Awaits::StructuredReplies => option_kind::STRUCTURED_REPLY,
            _ => option_kind::GO,
        };
        if header.option != asked {
            return Err(Malformed(format!(
                "an answer to option {}: {asked} was asked for",
                header.option
            )));
        }
        self.replies += 1;
        if self.replies > REPLIES_MAX {
            return Err(Malformed(format!(
                "answers to options: more than {REPLIES_MAX}; the server comes to no end"
            )));
        }
        if asked == option_kind::STARTTLS {
            if header.kind != option_reply::ACK {
                return Err(refused("TLS", header.kind, data));
            }
            no_more_before_tls(&bytes[consumed_bytes..])?;
            return Ok(Step::Done {
                consumed_bytes,
                outcome: Agreed::StartTls,
            });
        }
        if asked == option_kind::STRUCTURED_REPLY {
            self.structured_replies = header.kind == option_reply::ACK;
            self.ask_to_go(out);
            return Ok(Step::Took { consumed_bytes });
        }
        match header.kind {
            option_reply::ACK if self.has_size => Ok(self.done(consumed_bytes)),
            option_reply::INFO => {
                self.learn(Info::parse(data)?);
                Ok(Step::Took { consumed_bytes })
            }
            option_reply::ERR_UNSUP => {
                self.ask_by_name(out);
                Ok(Step::Took { consumed_bytes })
            }
            _ if header.is_refusal() => {
                let what = format!("export {:?}", self.export.name);
                Err(refused(&what, header.kind, data))
            }
            kind => Err(Malformed(format!(
                "an answer of kind {kind} to option {asked}: size and flags of the export come first"
            ))),
        }
    }

    fn learn(&mut self, info: Info) {
        match info {
            Info::Export { size_bytes, flags } => {
                self.export.size_bytes = size_bytes;
                self.export.flags = flags;
                self.has_size = true;
            }
            Info::Name(name) => self.export.name = name,
            Info::Description(text) => self.export.description = text,
            Info::BlockSize(sizes) => self.export.block_sizes = sizes,
            Info::Other(_) => {}
        }
    }

    fn take_export(&mut self, bytes: &[u8], zeroes: bool) -> Result<Step<Agreed>, Malformed> {
        let length = if zeroes { 134 } else { 10 };
        match header(bytes, length, |fields| Ok((fields.u64(), fields.u16())))? {
            Parsed::Needs { more_bytes } => Ok(Step::Needs { more_bytes }),
            Parsed::Found {
                value: (size_bytes, flags),
                consumed_bytes,
            } => {
                self.learn(Info::Export { size_bytes, flags });
                Ok(self.done(consumed_bytes))
            }
        }
    }

    fn done(&self, consumed_bytes: usize) -> Step<Agreed> {
        Step::Done {
            consumed_bytes,
            outcome: Agreed::Transmission {
                export: self.export.clone(),
                structured_replies: self.structured_replies,
            },
        }
    }
}

fn refused(what: &str, kind: u32, data: &[u8]) -> Malformed {
    let why = String::from_utf8_lossy(data);
    Malformed(format!(
        "{what}: the server refuses it with {kind:#x}: {:?}",
        why.chars().take(200).collect::<String>()
    ))
}
