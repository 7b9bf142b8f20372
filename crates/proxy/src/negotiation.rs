//! The negotiation is passed through and watched: whether replies are structured, and that nothing is agreed on which
//! would hide the requests. Encryption and extended headers are refused in the server's place, by the answer that every
//! client understands; the server never hears of them.

use std::fmt;
use std::time::Duration;

use ascar_nbd::greeting::{ClientFlags, Greeting};
use ascar_nbd::numbers::{option_kind, option_reply};
use ascar_nbd::option::{OptionHeader, OptionReplyHeader, write_reply};
use ascar_nbd::{Malformed, Parsed};

use crate::connection::End;
use crate::socket::{Socket, Waited, wait_for};

/// How long either side may be silent before there are requests.
const SILENCE_MAX: Duration = Duration::from_secs(120);

/// The end of the answer to `NBD_OPT_EXPORT_NAME`, which may be left out.
const ZEROES_BYTES: usize = 124;

/// Size and flags in the answer to `NBD_OPT_EXPORT_NAME`.
const EXPORT_BYTES: usize = 10;

/// What requests and replies look like from now on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Negotiated {
    /// Whether replies to reads are structured.
    pub structured_replies: bool,
}

/// Passes a negotiation on until requests follow. A client that asks for TLS is told to `say`, once.
///
/// # Errors
/// When one side ends it, is silent, or says what the protocol does not have.
pub fn negotiate(client: &Socket, server: &Socket, say: &dyn Fn(&str)) -> Result<Negotiated, End> {
    Relay {
        client,
        server,
        message: Vec::new(),
        has_asked_for_tls: false,
    }
    .run(say)
}

/// The two sides, and the message that passes.
struct Relay<'a> {
    client: &'a Socket,
    server: &'a Socket,
    message: Vec<u8>,
    has_asked_for_tls: bool,
}

/// What came of an option.
enum Outcome {
    Transmission,
    Accepted,
    Refused,
}

impl Relay<'_> {
    fn run(&mut self, say: &dyn Fn(&str)) -> Result<Negotiated, End> {
        let mut negotiated = Negotiated::default();
        let no_zeroes = self.greet()?;
        loop {
            let option = self.option()?;
            if hides_requests(option.kind) {
                let is_tls = option.kind == option_kind::STARTTLS;
                if is_tls && !std::mem::replace(&mut self.has_asked_for_tls, true) {
                    say("TLS was refused: it would hide the requests");
                }
                self.refuse(option.kind)?;
                continue;
            }
            self.server.write_all(&self.message)?;
            let outcome = match option.kind {
                option_kind::EXPORT_NAME => self.export(no_zeroes)?,
                kind => self.answers(kind)?,
            };
            match (outcome, option.kind) {
                (Outcome::Transmission, _) => return Ok(negotiated),
                (_, option_kind::ABORT) => return Err(End::Closed),
                (Outcome::Accepted, option_kind::STRUCTURED_REPLY) => {
                    negotiated.structured_replies = true;
                }
                _ => {}
            }
        }
    }

    /// The greeting and the client's flags; whether the zeroes are left out.
    fn greet(&mut self) -> Result<bool, End> {
        self.message.clear();
        self.receive(Side::Server, Greeting::BYTES)?;
        let greeting = found(Greeting::parse(&self.message)?)?;
        self.client.write_all(&self.message)?;
        self.message.clear();
        self.receive(Side::Client, ClientFlags::BYTES)?;
        let flags = found(ClientFlags::parse(&self.message)?)?;
        self.server.write_all(&self.message)?;
        Ok(greeting.no_zeroes && flags.no_zeroes)
    }

    /// The next option, all of it.
    fn option(&mut self) -> Result<OptionHeader, End> {
        self.message.clear();
        self.receive(Side::Client, OptionHeader::BYTES)?;
        let option = found(OptionHeader::parse(&self.message)?)?;
        self.receive(Side::Client, option.data_bytes as usize)?;
        Ok(option)
    }

    /// The proxy's own answer to an option.
    fn refuse(&mut self, kind: u32) -> Result<(), End> {
        self.message.clear();
        let why = b"the proxy in between has to see the requests";
        write_reply(kind, option_reply::ERR_UNSUP, why, &mut self.message);
        Ok(self.client.write_all(&self.message)?)
    }

    /// The server's answer to `NBD_OPT_EXPORT_NAME`, which has no form for a refusal.
    fn export(&mut self, no_zeroes: bool) -> Result<Outcome, End> {
        self.message.clear();
        let zeroes = if no_zeroes { 0 } else { ZEROES_BYTES };
        self.receive(Side::Server, EXPORT_BYTES + zeroes)?;
        self.client.write_all(&self.message)?;
        Ok(Outcome::Transmission)
    }

    /// The server's answers to any other option, to the last one.
    fn answers(&mut self, kind: u32) -> Result<Outcome, End> {
        loop {
            self.message.clear();
            self.receive(Side::Server, OptionReplyHeader::BYTES)?;
            let reply = found(OptionReplyHeader::parse(&self.message)?)?;
            if reply.option != kind {
                return Err(End::Broken(format!(
                    "the server answers option {}: {kind} was asked for",
                    reply.option
                )));
            }
            self.receive(Side::Server, reply.data_bytes as usize)?;
            self.client.write_all(&self.message)?;
            if reply.is_refusal() {
                return Ok(Outcome::Refused);
            }
            if reply.kind == option_reply::ACK {
                return Ok(match kind {
                    option_kind::GO => Outcome::Transmission,
                    _ => Outcome::Accepted,
                });
            }
        }
    }

    /// So many bytes more of the message.
    fn receive(&mut self, side: Side, count: usize) -> Result<(), End> {
        let (from, other) = match side {
            Side::Client => (self.client, self.server),
            Side::Server => (self.server, self.client),
        };
        let mut at = self.message.len();
        self.message.resize(at + count, 0);
        while at < self.message.len() {
            match wait_for(from, other, SILENCE_MAX)? {
                Waited::Readable => {}
                Waited::OtherGone => return Err(End::Closed),
                Waited::Nothing => {
                    return Err(End::Broken(format!(
                        "negotiation: the {side} said nothing for {} s",
                        SILENCE_MAX.as_secs()
                    )));
                }
            }
            match from.read(&mut self.message[at..])? {
                0 => return Err(End::Closed),
                count => at += count,
            }
        }
        Ok(())
    }
}

#[derive(Clone, Copy, Debug)]
enum Side {
    Client,
    Server,
}

impl fmt::Display for Side {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Client => "client",
            Self::Server => "server",
        })
    }
}

/// Whether requests could not be seen or understood after an option.
fn hides_requests(kind: u32) -> bool {
    matches!(kind, option_kind::STARTTLS | option_kind::EXTENDED_HEADERS)
}

/// A value of which all bytes are there.
fn found<T>(parsed: Parsed<T>) -> Result<T, Malformed> {
    match parsed {
        Parsed::Found { value, .. } => Ok(value),
        Parsed::Needs { .. } => Err(Malformed("a message: ends too early".to_owned())),
    }
}
