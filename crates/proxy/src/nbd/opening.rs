//! The first words of a connection, up to TLS where there is some. Before TLS nothing else is agreed on: a client hears
//! that it comes first, and a server that does not want it is left. What is read is what belongs to a message, so that
//! what somebody puts behind the last one before TLS is read as TLS, which it is not.

use std::time::{Duration, Instant};

use ascar_nbd::greeting::{ClientFlags, Greeting};
use ascar_nbd::numbers::option_reply;
use ascar_nbd::option::OptionReplyHeader;
use ascar_nbd::{Agreed, ClientHandshake, Negotiated, Parsed, ServerHandshake, Step};

use crate::connection::End;
use crate::side::Side;
use crate::socket::{Socket, Waited, wait_for};
use crate::terms::{ListenTls, ServerTls};
use crate::tls::Tls;

/// How long a client may take from its connection to its wish for TLS, and a server to its consent.
const LIMIT: Duration = Duration::from_secs(30);

/// A client, before its first option that counts.
#[derive(Debug)]
pub struct OpenedClient {
    /// The client.
    pub side: Side,
    /// What it has said of itself, where it was greeted.
    pub flags: Option<ClientFlags>,
}

/// A server, before the first option that counts.
#[derive(Debug)]
pub struct OpenedServer {
    /// The server.
    pub side: Side,
    /// What it has said of itself, where it was answered: both know zeroes to be left out, if it can.
    pub greeting: Option<Greeting>,
}

/// Greets a client and has it start TLS, where it has to. `say` is told of one that asks for something else.
///
/// # Errors
/// When it leaves, is silent, says what the protocol does not have, or is nobody whom TLS would let in.
pub fn open_client(
    socket: Socket,
    tls: Option<&ListenTls>,
    say: &dyn Fn(&str),
) -> Result<OpenedClient, End> {
    let Some(tls) = tls else {
        let side = Side::plain(socket);
        return Ok(OpenedClient { side, flags: None });
    };
    let mut handshake = ServerHandshake::new().requiring_tls();
    let mut talk = Talk::with(&socket, None);
    talk.socket.write_all(&ServerHandshake::greeting())?;
    let mut has_said = false;
    loop {
        let step = handshake.take(&[], &talk.come, &mut talk.out)?;
        if needs_tls(&talk.out) && !std::mem::replace(&mut has_said, true) {
            say("TLS is required here, and the client asks for something else before it");
        }
        match talk.next(step)? {
            None => {}
            Some(Negotiated::StartTls) => break,
            Some(_) => return Err(End::Closed),
        }
    }
    let tls = Tls::agree(&socket, tls.session()?, None).map_err(|end| end.with("the client"))?;
    Ok(OpenedClient {
        side: Side::inside(socket, tls),
        flags: handshake.client_flags(),
    })
}

/// Answers a server's greeting and starts TLS with it, where it has to accept that, unless the client leaves meanwhile.
///
/// # Errors
/// When it wants no TLS, is silent, is not whom it should be, or says what the protocol does not have.
pub fn open_server(
    socket: Socket,
    tls: Option<&ServerTls>,
    client: &Side,
) -> Result<OpenedServer, End> {
    let Some(tls) = tls else {
        let side = Side::plain(socket);
        return Ok(OpenedServer {
            side,
            greeting: None,
        });
    };
    let other = Some(client.socket());
    let mut handshake = ClientHandshake::new("", false)?.with_tls();
    let mut talk = Talk::with(&socket, other);
    loop {
        let step = handshake.take(&talk.come, &mut talk.out)?;
        match talk.next(step)? {
            None => {}
            Some(Agreed::StartTls) => break,
            Some(_) => return Err(End::Closed),
        }
    }
    let tls = Tls::agree(&socket, tls.session()?, other).map_err(|end| end.with("the server"))?;
    let greeting = Greeting {
        fixed_newstyle: true,
        no_zeroes: handshake.no_zeroes(),
    };
    Ok(OpenedServer {
        side: Side::inside(socket, tls),
        greeting: Some(greeting),
    })
}

/// Messages with one side, while the other may leave.
struct Talk<'a> {
    socket: &'a Socket,
    other: Option<&'a Socket>,
    until: Instant,
    come: Vec<u8>,
    out: Vec<u8>,
}

impl<'a> Talk<'a> {
    fn with(socket: &'a Socket, other: Option<&'a Socket>) -> Self {
        Self {
            socket,
            other,
            until: Instant::now() + LIMIT,
            come: Vec::new(),
            out: Vec::new(),
        }
    }

    /// Does what a step of a negotiation asks for; what came of it at its end.
    fn next<T>(&mut self, step: Step<T>) -> Result<Option<T>, End> {
        self.socket.write_all(&self.out)?;
        self.out.clear();
        match step {
            Step::Needs { more_bytes } => self.receive(more_bytes).map(|()| None),
            Step::Took { consumed_bytes } => {
                self.come.drain(..consumed_bytes);
                Ok(None)
            }
            Step::Done { outcome, .. } => Ok(Some(outcome)),
        }
    }

    /// At most so many bytes more, and at least one.
    fn receive(&mut self, count: usize) -> Result<(), End> {
        let left = self.until.saturating_duration_since(Instant::now());
        match wait_for(self.socket, self.other, left)? {
            Waited::Readable => {}
            Waited::OtherGone => return Err(End::Closed),
            Waited::Nothing => {
                let limit_s = LIMIT.as_secs();
                return Err(End::Broken(format!(
                    "TLS: not asked for and accepted within {limit_s} s"
                )));
            }
        }
        let at = self.come.len();
        self.come.resize(at + count, 0);
        let read = self.socket.read(&mut self.come[at..])?;
        self.come.truncate(at + read);
        if read == 0 { Err(End::Closed) } else { Ok(()) }
    }
}

/// Whether an answer says that TLS comes first.
fn needs_tls(answer: &[u8]) -> bool {
    let parsed = OptionReplyHeader::parse(answer);
    matches!(parsed, Ok(Parsed::Found { value, .. }) if value.kind == option_reply::ERR_TLS_REQD)
}
