//! The server's side of a negotiation.

use crate::export::Export;
use crate::greeting::{ClientFlags, Greeting};
use crate::numbers::{info_kind, option_kind, option_reply};
use crate::option::{Info, InfoRequest, OptionHeader, listed, text, write_reply};
use crate::parsed::{Malformed, Parsed, Step, no_more_before_tls};
use crate::{OPTION_BYTES_MAX, OPTIONS_MAX};

/// What follows the size and the flags of an export that was asked for by the old way.
const ZEROES: [u8; 124] = [0; 124];

/// How a negotiation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Negotiated {
    /// Requests follow.
    Transmission {
        /// The place of the export among those that were offered.
        export: usize,
        /// Whether replies to reads are structured.
        structured_replies: bool,
    },
    /// The client has ended it.
    Aborted,
    /// TLS follows at once; inside it, the same negotiation goes on.
    StartTls,
}

/// How the server stands to TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tls {
    Refused,
    /// It comes before anything else.
    Required,
    /// What comes now comes inside it.
    Started,
}

/// A negotiation with one client.
#[derive(Clone, Debug)]
pub struct ServerHandshake {
    client: Option<ClientFlags>,
    offers_structured_replies: bool,
    structured_replies: bool,
    tls: Tls,
    options: u32,
}

impl ServerHandshake {
    /// A negotiation of which nothing has been said.
    #[must_use]
    pub fn new() -> Self {
        Self {
            client: None,
            offers_structured_replies: true,
            structured_replies: false,
            tls: Tls::Refused,
            options: 0,
        }
    }

    /// The same, where TLS comes before anything else: `NBD_OPT_STARTTLS` alone is accepted, and nothing that was said
    /// before it counts inside it.
    #[must_use]
    pub fn requiring_tls(self) -> Self {
        Self {
            tls: Tls::Required,
            ..self
        }
    }

    /// What the client has said of itself; None before that.
    #[must_use]
    pub fn client_flags(&self) -> Option<ClientFlags> {
        self.client
    }

    /// The same, where structured replies are refused.
    #[must_use]
    pub fn without_structured_replies() -> Self {
        Self {
            offers_structured_replies: false,
            ..Self::new()
        }
    }

    /// What the server says first.
    #[must_use]
    pub fn greeting() -> [u8; Greeting::BYTES] {
        Greeting {
            fixed_newstyle: true,
            no_zeroes: true,
        }
        .encode()
    }

    /// Takes one message of the client out of the bytes at hand, and appends the answer to `out`.
    ///
    /// # Errors
    /// What ends the connection: bytes that are no option, an option that is too long, one option too many, an
    /// export that is not there, or not before TLS, asked for by the old way, which has no other answer, or bytes behind
    /// `NBD_OPT_STARTTLS`, which somebody on the way may have put there.
    pub fn take(
        &mut self,
        exports: &[Export],
        bytes: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Step<Negotiated>, Malformed> {
        let Some(client) = self.client else {
            return self.take_flags(bytes);
        };
        let header = match OptionHeader::parse(bytes)? {
            Parsed::Found { value, .. } => value,
            Parsed::Needs { more_bytes } => return Ok(Step::Needs { more_bytes }),
        };
        let consumed_bytes = OptionHeader::BYTES + header.data_bytes as usize;
        let Some(data) = bytes.get(OptionHeader::BYTES..consumed_bytes) else {
            return Ok(Step::Needs {
                more_bytes: consumed_bytes - bytes.len(),
            });
        };
        self.options += 1;
        if self.options > OPTIONS_MAX {
            return Err(Malformed(format!(
                "options: more than {OPTIONS_MAX}; the client must choose an export before"
            )));
        }
        if header.kind == option_kind::EXPORT_NAME {
            if self.tls == Tls::Required {
                return Err(Malformed(format!(
                    "option {}: asks for an export without TLS; NBD_OPT_STARTTLS must come first",
                    header.kind
                )));
            }
            let export = self.choose_by_name(exports, client, data, out)?;
            return Ok(self.done(consumed_bytes, export));
        }
        if !client.fixed_newstyle {
            return Err(Malformed(format!(
                "option {}: the client has not said that it understands an answer; only {} is allowed",
                header.kind,
                option_kind::EXPORT_NAME
            )));
        }
        let answered = match self.tls {
            Tls::Required => answer_before_tls(header.kind, data, out),
            Tls::Refused | Tls::Started => self.answer(exports, header.kind, data, out),
        };
        match answered {
            Answered::GoesOn => Ok(Step::Took { consumed_bytes }),
            Answered::Chosen(export) => Ok(self.done(consumed_bytes, export)),
            Answered::Aborted => Ok(Step::Done {
                consumed_bytes,
                outcome: Negotiated::Aborted,
            }),
            Answered::StartsTls => {
                no_more_before_tls(&bytes[consumed_bytes..])?;
                self.tls = Tls::Started;
                Ok(Step::Done {
                    consumed_bytes,
                    outcome: Negotiated::StartTls,
                })
            }
        }
    }

    fn take_flags(&mut self, bytes: &[u8]) -> Result<Step<Negotiated>, Malformed> {
        match ClientFlags::parse(bytes)? {
            Parsed::Found {
                value,
                consumed_bytes,
            } => {
                self.client = Some(value);
                Ok(Step::Took { consumed_bytes })
            }
            Parsed::Needs { more_bytes } => Ok(Step::Needs { more_bytes }),
        }
    }

    fn done(&self, consumed_bytes: usize, export: usize) -> Step<Negotiated> {
        Step::Done {
            consumed_bytes,
            outcome: Negotiated::Transmission {
                export,
                structured_replies: self.structured_replies,
            },
        }
    }

    /// `NBD_OPT_EXPORT_NAME`.
    fn choose_by_name(
        &self,
        exports: &[Export],
        client: ClientFlags,
        data: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<usize, Malformed> {
        let name = text("the export's name", data)?;
        let (place, export) = find(exports, &name).ok_or_else(|| unknown(&name))?;
        out.extend_from_slice(&export.size_bytes.to_be_bytes());
        out.extend_from_slice(&export.told_flags(self.structured_replies).to_be_bytes());
        if !client.no_zeroes {
            out.extend_from_slice(&ZEROES);
        }
        Ok(place)
    }

    /// Any other option.
    fn answer(
        &mut self,
        exports: &[Export],
        kind: u32,
        data: &[u8],
        out: &mut Vec<u8>,
    ) -> Answered {
        let mut reply = |reply_kind, data: &[u8]| write_reply(kind, reply_kind, data, out);
        let takes_none = matches!(
            kind,
            option_kind::LIST | option_kind::STARTTLS | option_kind::STRUCTURED_REPLY
        );
        if takes_none && !data.is_empty() {
            reply(option_reply::ERR_INVALID, b"this option takes no data");
            return Answered::GoesOn;
        }
        match kind {
            option_kind::ABORT => {
                reply(option_reply::ACK, b"");
                return Answered::Aborted;
            }
            option_kind::LIST => {
                for export in exports {
                    let data = listed(&export.name, &export.description);
                    reply(option_reply::SERVER, &data);
                }
                reply(option_reply::ACK, b"");
            }
            option_kind::STRUCTURED_REPLY if self.offers_structured_replies => {
                self.structured_replies = true;
                reply(option_reply::ACK, b"");
            }
            option_kind::INFO | option_kind::GO => {
                return self.inform(exports, kind, data, out);
            }
            option_kind::STARTTLS if self.tls == Tls::Started => {
                reply(option_reply::ERR_INVALID, b"TLS has been started already");
            }
            option_kind::STARTTLS => reply(
                option_reply::ERR_UNSUP,
                b"this server has no encryption of its own",
            ),
            _ => reply(option_reply::ERR_UNSUP, b"this option is not supported"),
        }
        Answered::GoesOn
    }

    /// `NBD_OPT_INFO` and `NBD_OPT_GO`.
    fn inform(&self, exports: &[Export], kind: u32, data: &[u8], out: &mut Vec<u8>) -> Answered {
        let mut reply = |reply_kind, data: &[u8]| write_reply(kind, reply_kind, data, out);
        let request = match InfoRequest::parse(data) {
            Ok(request) => request,
            Err(malformed) => {
                reply(option_reply::ERR_INVALID, malformed.0.as_bytes());
                return Answered::GoesOn;
            }
        };
        let Some((place, export)) = find(exports, &request.name) else {
            let message = unknown(&request.name).0;
            reply(option_reply::ERR_UNKNOWN, message.as_bytes());
            return Answered::GoesOn;
        };
        let mut tell = |info: Info| reply(option_reply::INFO, &info.encode());
        tell(Info::Export {
            size_bytes: export.size_bytes,
            flags: export.told_flags(self.structured_replies),
        });
        let asked = |info: u16| request.kinds.contains(&info);
        if asked(info_kind::NAME) {
            tell(Info::Name(export.name.clone()));
        }
        if asked(info_kind::DESCRIPTION) && !export.description.is_empty() {
            tell(Info::Description(export.description.clone()));
        }
        if asked(info_kind::BLOCK_SIZE) {
            tell(Info::BlockSize(export.block_sizes));
        }
        reply(option_reply::ACK, b"");
        if kind == option_kind::GO {
            Answered::Chosen(place)
        } else {
            Answered::GoesOn
        }
    }
}

impl Default for ServerHandshake {
    fn default() -> Self {
        Self::new()
    }
}

/// Any option but that by the old way, where TLS must come first.
fn answer_before_tls(kind: u32, data: &[u8], out: &mut Vec<u8>) -> Answered {
    let mut reply = |reply_kind, data: &[u8]| write_reply(kind, reply_kind, data, out);
    match kind {
        option_kind::STARTTLS if data.is_empty() => {
            reply(option_reply::ACK, b"");
            Answered::StartsTls
        }
        option_kind::STARTTLS => {
            reply(option_reply::ERR_INVALID, b"this option takes no data");
            Answered::GoesOn
        }
        option_kind::ABORT => {
            reply(option_reply::ACK, b"");
            Answered::Aborted
        }
        _ => {
            reply(option_reply::ERR_TLS_REQD, b"TLS must be started before");
            Answered::GoesOn
        }
    }
}

/// What an answered option leads to.
enum Answered {
    GoesOn,
    StartsTls,
    Chosen(usize),
    Aborted,
}

/// The export of a name; the first one for the empty name.
fn find<'a>(exports: &'a [Export], name: &str) -> Option<(usize, &'a Export)> {
    let mut numbered = exports.iter().enumerate();
    numbered
        .find(|(_, export)| export.name == name)
        .or_else(|| {
            exports
                .first()
                .filter(|_| name.is_empty())
                .map(|it| (0, it))
        })
}

/// The refusal of a name. It is cut, so that the message is within its limit.
fn unknown(name: &str) -> Malformed {
    let shown: String = name.chars().take(200).collect();
    let message = format!("export {shown:?}: there is none of this name");
    debug_assert!(message.len() < OPTION_BYTES_MAX as usize);
    Malformed(message)
}
