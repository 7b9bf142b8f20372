//! The negotiation is passed through and watched: whether replies are structured, and that nothing is agreed on which
//! would hide the requests. Extended headers, and TLS that would reach from one end to the other, are refused in the
//! server's place, by the answer that every client understands; the server never hears of them.

use std::fmt;
use std::time::{Duration, Instant};

use ascar_nbd::greeting::{ClientFlags, Greeting};
use ascar_nbd::numbers::{option_kind, option_reply};
use ascar_nbd::option::{OptionHeader, OptionReplyHeader, write_reply};
use ascar_nbd::{Malformed, Parsed};

use super::opening::{OpenedClient, OpenedServer};
use crate::connection::End;
use crate::side::Side;
use crate::socket::{Waited, wait_for};

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

/// Passes a negotiation on until requests follow. A side that asks for TLS where there is none is told to `say`, once.
///
/// # Errors
/// When one side ends it, is silent, or says what the protocol does not have.
pub fn negotiate(
    client: &OpenedClient,
    server: &OpenedServer,
    say: &dyn Fn(&str),
) -> Result<Negotiated, End> {
    client.side.limit_writes(Some(SILENCE_MAX))?;
    server.side.limit_writes(Some(SILENCE_MAX))?;
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
    client: &'a OpenedClient,
    server: &'a OpenedServer,
    message: Vec<u8>,
    has_asked_for_tls: bool,
}

/// Whether the answer to `NBD_OPT_EXPORT_NAME` ends with zeroes.
#[derive(Clone, Copy)]
struct Zeroes {
    from_server: bool,
    to_client: bool,
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
        let zeroes = self.greet()?;
        loop {
            let option = self.option()?;
            if hides_requests(option.kind) {
                let is_tls = option.kind == option_kind::STARTTLS && self.client.flags.is_none();
                if is_tls && !std::mem::replace(&mut self.has_asked_for_tls, true) {
                    say("TLS was refused: the route has no listen_tls");
                }
                self.refuse(option.kind)?;
                continue;
            }
            self.server.side.write_all(&self.message)?;
            let outcome = match option.kind {
                option_kind::EXPORT_NAME => self.export(zeroes)?,
                kind => self.answers(kind, say)?,
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

    /// The greeting and the client's flags, for whom they are still to come.
    fn greet(&mut self) -> Result<Zeroes, End> {
        let greeting = match self.server.greeting {
            Some(greeting) => {
                self.message = greeting.encode().to_vec();
                greeting
            }
            None => {
                self.message.clear();
                self.receive(Speaker::Server, Greeting::BYTES)?;
                found(Greeting::parse(&self.message)?)?
            }
        };
        let flags = match self.client.flags {
            Some(_) if !greeting.fixed_newstyle => {
                return Err(End::Broken(
                    "the server answers no options (fixed newstyle), which the client was told"
                        .to_owned(),
                ));
            }
            Some(flags) => flags,
            None => {
                self.client.side.write_all(&self.message)?;
                self.message.clear();
                self.receive(Speaker::Client, ClientFlags::BYTES)?;
                found(ClientFlags::parse(&self.message)?)?
            }
        };
        let told = ClientFlags {
            no_zeroes: flags.no_zeroes && greeting.no_zeroes,
            ..flags
        };
        if self.server.greeting.is_none() {
            self.server.side.write_all(&told.encode())?;
        }
        Ok(Zeroes {
            from_server: match self.server.greeting {
                Some(greeting) => !greeting.no_zeroes,
                None => !told.no_zeroes,
            },
            // One that was greeted here was told that zeroes can be left out.
            to_client: match self.client.flags {
                Some(flags) => !flags.no_zeroes,
                None => !told.no_zeroes,
            },
        })
    }

    /// The next option, all of it.
    fn option(&mut self) -> Result<OptionHeader, End> {
        self.message.clear();
        self.receive(Speaker::Client, OptionHeader::BYTES)?;
        let option = found(OptionHeader::parse(&self.message)?)?;
        self.receive(Speaker::Client, option.data_bytes as usize)?;
        Ok(option)
    }

    /// The proxy's own answer to an option.
    fn refuse(&mut self, kind: u32) -> Result<(), End> {
        self.message.clear();
        let (answer, why) = match (kind, self.client.flags) {
            (option_kind::STARTTLS, Some(_)) => {
                (option_reply::ERR_INVALID, "TLS has been started already")
            }
            (option_kind::STARTTLS, None) => (
                option_reply::ERR_UNSUP,
                "the proxy in between has no certificate",
            ),
            _ => (
                option_reply::ERR_UNSUP,
                "the proxy in between has to see the requests",
            ),
        };
        write_reply(kind, answer, why.as_bytes(), &mut self.message);
        Ok(self.client.side.write_all(&self.message)?)
    }

    /// The server's answer to `NBD_OPT_EXPORT_NAME`, which has no form for a refusal.
    fn export(&mut self, zeroes: Zeroes) -> Result<Outcome, End> {
        self.message.clear();
        let behind = if zeroes.from_server { ZEROES_BYTES } else { 0 };
        self.receive(Speaker::Server, EXPORT_BYTES + behind)?;
        let behind = if zeroes.to_client { ZEROES_BYTES } else { 0 };
        self.message.resize(EXPORT_BYTES + behind, 0);
        self.client.side.write_all(&self.message)?;
        Ok(Outcome::Transmission)
    }

    /// The server's answers to any other option, to the last one.
    fn answers(&mut self, kind: u32, say: &dyn Fn(&str)) -> Result<Outcome, End> {
        loop {
            self.message.clear();
            self.receive(Speaker::Server, OptionReplyHeader::BYTES)?;
            let reply = found(OptionReplyHeader::parse(&self.message)?)?;
            if reply.option != kind {
                return Err(End::Broken(format!(
                    "the server answers option {}: {kind} was asked for",
                    reply.option
                )));
            }
            self.receive(Speaker::Server, reply.data_bytes as usize)?;
            self.client.side.write_all(&self.message)?;
            let wants_tls = reply.kind == option_reply::ERR_TLS_REQD;
            if wants_tls && !std::mem::replace(&mut self.has_asked_for_tls, true) {
                say("the server requires TLS, and the route has no server_tls");
            }
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
    fn receive(&mut self, whom: Speaker, count: usize) -> Result<(), End> {
        let (client, server) = (&self.client.side, &self.server.side);
        let (from, other) = match whom {
            Speaker::Client => (client, server),
            Speaker::Server => (server, client),
        };
        let mut at = self.message.len();
        self.message.resize(at + count, 0);
        while at < self.message.len() {
            at += match next(from, other, &mut self.message[at..])? {
                Some(0) => return Err(End::Closed),
                Some(count) => count,
                None => {
                    return Err(End::Broken(format!(
                        "negotiation: the {whom} said nothing for {} s",
                        SILENCE_MAX.as_secs()
                    )));
                }
            };
        }
        Ok(())
    }
}

/// What comes next from a side, 0 at its end; None where it is silent.
fn next(from: &Side, other: &Side, into: &mut [u8]) -> Result<Option<usize>, End> {
    if let Some(count) = from.take(into)? {
        return Ok(Some(count));
    }
    let until = Instant::now() + SILENCE_MAX;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        match wait_for(from.socket(), Some(other.socket()), left)? {
            Waited::Readable => {}
            Waited::OtherGone => return Err(End::Closed),
            Waited::Nothing => return Ok(None),
        }
        // Of TLS a piece may come that says nothing yet.
        if let Some(count) = from.read_once(into)? {
            return Ok(Some(count));
        }
    }
}

/// Who says something.
#[derive(Clone, Copy, Debug)]
enum Speaker {
    Client,
    Server,
}

impl fmt::Display for Speaker {
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
