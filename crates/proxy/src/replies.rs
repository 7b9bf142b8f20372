//! From the server to the client: replies are passed on as they come, and the last one of a request is told to the
//! stream.

use std::sync::MutexGuard;

use ascar_nbd::{Parsed, ReplyHeader};

use crate::clock;
use crate::connection::{BUFFER_BYTES, Connection, End};
use crate::pending::{Pending, Sent};
use crate::splicing::{LENGTH_BYTES_MIN, SHORT_BYTES, Splicing};
use crate::stream::State;

/// The other direction of a connection.
#[derive(Debug)]
pub struct Replies<'a> {
    connection: &'a Connection,
    buffer: Box<[u8]>,
    /// What has come and was not passed on.
    start: usize,
    end: usize,
    /// Data of the last reply that is still to come.
    payload_left: usize,
    /// The request that is answered once that data is there.
    answered: Option<u64>,
    splicing: Splicing,
    /// Whether the last payload was long.
    reads_short: bool,
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
            buffer: vec![0; BUFFER_BYTES].into(),
            start: 0,
            end: 0,
            payload_left: 0,
            answered: None,
            splicing: Splicing::default(),
            reads_short: false,
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
            self.connection
                .client
                .write_all(&self.buffer[self.start..until])?;
            self.start = until;
            self.connection.on_piece();
            looked?;
            if self.start == self.end && self.payload_left >= LENGTH_BYTES_MIN {
                let (connection, answered) = (self.connection, &mut self.answered);
                let Connection { server, client, .. } = connection;
                let on_piece = |left| {
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
                if self
                    .splicing
                    .pass(server, client, self.payload_left, on_piece, || Ok(()))?
                {
                    self.payload_left = 0;
                    self.reads_short = true;
                }
            }
        }
        Ok(())
    }

    /// Reads what has come; false at the end.
    fn fill(&mut self) -> Result<bool, End> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        // Where payloads are long, what is read here is copied in vain: the next header is enough.
        let room = if std::mem::take(&mut self.reads_short) {
            self.end + SHORT_BYTES
        } else {
            self.buffer.len()
        };
        let count = self
            .connection
            .server
            .read(&mut self.buffer[self.end..room])?;
        self.end += count;
        Ok(count > 0)
    }

    /// Looks through what has come; up to where it is whole, and what is wrong behind that.
    fn scan(&mut self) -> (usize, Result<(), End>) {
        let mut at = self.skip_payload(self.start);
        if at == self.end && (self.payload_left > 0 || self.answered.is_none()) {
            return (at, Ok(()));
        }
        let connection = self.connection;
        let mut shared = Shared::of(connection);
        let looked = loop {
            if self.payload_left == 0
                && let Some(cookie) = self.answered.take()
            {
                shared.on_answer(cookie, connection);
            }
            if at == self.end {
                break Ok(());
            }
            match self.header(at, &mut shared) {
                Ok(Some(length)) => at = self.skip_payload(at + length),
                Ok(None) => break Ok(()),
                Err(end) => break Err(end),
            }
        };
        shared.state.call_next();
        (at, looked)
    }

    /// The length of the header at a place; None where not all of it has come.
    fn header(&mut self, at: usize, shared: &mut Shared<'_>) -> Result<Option<usize>, End> {
        let parsed = ReplyHeader::parse(&self.buffer[at..self.end])?;
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
        self.payload_left = self.payload_bytes(&header, &sent)?;
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

    /// Behind the data of the last reply, as far as it has come.
    fn skip_payload(&mut self, at: usize) -> usize {
        let here = self.payload_left.min(self.end - at);
        self.payload_left -= here;
        at + here
    }
}

fn tells_error(header: &ReplyHeader) -> bool {
    match header {
        ReplyHeader::Simple(reply) => reply.error != 0,
        ReplyHeader::Chunk(chunk) => chunk.is_error(),
    }
}
