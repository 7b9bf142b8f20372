//! From the server to the client: replies are passed on as they come, and the last one of a request is told to the
//! stream.

use std::cell::Cell;
use std::io;
use std::sync::MutexGuard;
use std::time::{Duration, Instant};

use ascar_nbd::{Parsed, ReplyHeader};

use crate::clock;
use crate::connection::{Connection, End};
use crate::incoming::Incoming;
use crate::pending::{Pending, Sent};
use crate::splicing::Splicing;
use crate::stream::State;

/// The other direction of a connection.
#[derive(Debug)]
pub struct Replies<'a> {
    connection: &'a Connection,
    incoming: Incoming,
    silence: Silence<'a>,
    /// The request that is answered once that data is there.
    answered: Option<u64>,
    splicing: Splicing,
}

/// A server that says nothing although it is asked.
#[derive(Debug)]
struct Silence<'a> {
    connection: &'a Connection,
    since: Cell<Option<Instant>>,
    /// How much of requests' data it had taken when it was looked at.
    taken: Cell<u64>,
}

impl Silence<'_> {
    /// The server has said something.
    fn end(&self) {
        self.since.set(None);
    }

    /// Nothing has come for as long as a read may wait.
    ///
    /// # Errors
    /// When the server owes an answer, and is given up.
    fn look(&self) -> Result<(), End> {
        let connection = self.connection;
        let Some(limit) = connection.answer_limit else {
            return Ok(());
        };
        let (taken, is_partial) = connection.data();
        // One that takes a long request in is not silent.
        let is_still = self.taken.replace(taken) == taken;
        let since = self.since.get().filter(|_| is_still);
        let since = since.unwrap_or_else(Instant::now);
        self.since.set(Some(since));
        let pending = connection.pending();
        let is_owed = pending
            .oldest_us(is_partial)
            .is_some_and(|at_us| clock::now() >= Duration::from_micros(at_us) + limit);
        if since.elapsed() < limit || !is_owed {
            return Ok(());
        }
        Err(End::Silent(format!(
            "the server has said nothing for {} s, and owes {} answers",
            limit.as_secs_f64(),
            pending.count()
        )))
    }
}

/// What both directions share, while a batch is looked through.
struct Shared<'a> {
    pending: MutexGuard<'a, Pending>,
    state: MutexGuard<'a, State>,
    now_us: u64,
}

impl<'a> Shared<'a> {
    fn of(connection: &'a Connection) -> Self {
        Self {
            pending: connection.pending(),
            state: connection.stream.state(),
            now_us: clock::now_us(),
        }
    }

    /// A request is in flight no more.
    fn on_answer(&mut self, cookie: u64, connection: &Connection) {
        let is_full = self.pending.is_full();
        if let Some(sent) = self.pending.take(cookie) {
            self.state.on_reply(&sent, self.now_us);
            let record = connection.stream.record();
            let moved_bytes = if sent.has_failed { 0 } else { sent.bytes };
            record.on_answer(sent.record, moved_bytes.into(), self.now_us);
            if is_full {
                connection.member.call();
            }
        }
    }
}

impl<'a> Replies<'a> {
    /// The direction of a connection.
    #[must_use]
    pub fn new(connection: &'a Connection) -> Self {
        Self {
            connection,
            incoming: Incoming::new(),
            silence: Silence {
                connection,
                since: Cell::default(),
                taken: Cell::default(),
            },
            answered: None,
            splicing: Splicing::default(),
        }
    }

    /// Passes replies on until the server ends.
    ///
    /// # Errors
    /// When the connection is over.
    pub fn run(mut self) -> Result<(), End> {
        while self.fill()? {
            let (until, looked) = self.scan();
            // What was right before a mistake is the client's.
            let whole = self.incoming.until(until);
            let count = whole.len();
            self.connection.client.write_all(whole)?;
            self.incoming.pass(count);
            self.connection.on_piece();
            looked?;
            if self.incoming.awaits_long_payload() {
                self.splice()?;
            }
        }
        Ok(())
    }

    /// Passes the rest of a long payload on.
    fn splice(&mut self) -> Result<(), End> {
        let (connection, answered, silence) = (self.connection, &mut self.answered, &self.silence);
        let Connection { server, client, .. } = connection;
        let on_piece = |left| {
            silence.end();
            connection.on_piece();
            // The client may use the cookie again as soon as it has the last byte.
            if left == 0
                && let Some(cookie) = answered.take()
            {
                let mut shared = Shared::of(connection);
                shared.on_answer(cookie, connection);
                shared.state.call_next();
            }
        };
        let left = self.incoming.payload_left();
        if self
            .splicing
            .pass((server, client), left, on_piece, |_| (), || silence.look())?
        {
            self.incoming.on_spliced();
        }
        Ok(())
    }

    /// Reads what has come; false at the end.
    fn fill(&mut self) -> Result<bool, End> {
        loop {
            match self.incoming.fill(&self.connection.server) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.silence.look()?,
                filled => {
                    self.silence.end();
                    return Ok(filled?);
                }
            }
        }
    }

    /// Looks through what has come; up to where it is whole, and what is wrong behind that.
    fn scan(&mut self) -> (usize, Result<(), End>) {
        let mut at = self.incoming.skip_payload(self.incoming.start());
        let payload_left = self.incoming.payload_left();
        if self.incoming.ends_at(at) && (payload_left > 0 || self.answered.is_none()) {
            return (at, Ok(()));
        }
        let connection = self.connection;
        let mut shared = Shared::of(connection);
        let looked = loop {
            if self.incoming.payload_left() == 0
                && let Some(cookie) = self.answered.take()
            {
                shared.on_answer(cookie, connection);
            }
            if self.incoming.ends_at(at) {
                break Ok(());
            }
            match self.header(at, &mut shared) {
                Ok(Some(length)) => at = self.incoming.skip_payload(at + length),
                Ok(None) => break Ok(()),
                Err(end) => break Err(end),
            }
        };
        shared.state.call_next();
        (at, looked)
    }

    /// The length of the header at a place; None where not all of it has come.
    fn header(&mut self, at: usize, shared: &mut Shared<'_>) -> Result<Option<usize>, End> {
        let parsed = ReplyHeader::parse(self.incoming.from(at))?;
        let Parsed::Found {
            value: header,
            consumed_bytes,
        } = parsed
        else {
            return Ok(None);
        };
        let cookie = header.cookie();
        let Some(sent) = shared.pending.get(cookie) else {
            return Err(End::Broken(format!(
                "a reply: its cookie {cookie:#x} is that of no request in flight"
            )));
        };
        let payload = self.payload_bytes(&header, &sent)?;
        self.incoming.expect_payload(payload);
        if tells_error(&header) {
            shared.pending.fail(cookie);
        }
        self.answered = header.is_last().then_some(cookie);
        Ok(Some(consumed_bytes))
    }

    /// How much data follows a header.
    fn payload_bytes(&self, header: &ReplyHeader, sent: &Sent) -> Result<usize, End> {
        let is_structured = self.connection.structured_replies;
        match header {
            ReplyHeader::Simple(reply) if reply.error != 0 || !sent.reads => Ok(0),
            ReplyHeader::Simple(_) if !is_structured => Ok(sent.bytes as usize),
            ReplyHeader::Chunk(chunk) if is_structured => Ok(chunk.payload_bytes as usize),
            ReplyHeader::Simple(_) => Err(End::Broken(
                "a reply to a read: is simple, where structured ones were agreed on".to_owned(),
            )),
            ReplyHeader::Chunk(_) => Err(End::Broken(
                "a reply: is structured, which was not agreed on".to_owned(),
            )),
        }
    }
}

fn tells_error(header: &ReplyHeader) -> bool {
    match header {
        ReplyHeader::Simple(reply) => reply.error != 0,
        ReplyHeader::Chunk(chunk) => chunk.is_error(),
    }
}
