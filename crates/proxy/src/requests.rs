//! From the client to the server: requests leave as the stream admits them, in their order, as many at once as have come.
//!
//! What waits stays in the one buffer; when that is full nothing more is read, and the client is held up.

use std::sync::{Arc, MutexGuard};
use std::time::Instant;

use ascar_nbd::{Command, Parsed, Request};

use crate::clock;
use crate::connection::{BUFFER_BYTES, Connection, End, LINGER};
use crate::pending::{Pending, moved_bytes};
use crate::splicing::{LENGTH_BYTES_MIN, SHORT_BYTES, Splicing};
use crate::stream::{Admission, Member, State};

/// One direction of a connection.
#[derive(Debug)]
pub struct Requests<'a> {
    connection: &'a Connection,
    buffer: Box<[u8]>,
    /// What has come and was not passed on.
    start: usize,
    end: usize,
    /// Data of the last request that is still to come.
    payload_left: usize,
    /// Whether the first request has waited for its pace, and has its place.
    has_place: bool,
    /// Since when nothing moves although the client is gone.
    gone_since: Option<Instant>,
    splicing: Splicing,
    /// Whether the last payload was long.
    reads_short: bool,
}

/// Why no more can be passed on at once.
enum Stop {
    /// More must come.
    Empty,
    /// The window is full; how much had moved then.
    Full { moves: u64 },
    /// More requests of this connection are in flight than are kept in mind; how much had moved then.
    TooMany { moves: u64 },
    /// Other streams to the server have their turns.
    Inactive,
    /// The first request leaves at this time.
    Paced { at_us: u64, bytes: u32 },
    /// What follows is wrong.
    Broken(End),
}

/// What both directions share, while a batch is looked through.
struct Shared<'a> {
    pending: MutexGuard<'a, Pending>,
    state: MutexGuard<'a, State>,
    member: &'a Arc<Member>,
    now_us: u64,
}

impl Shared<'_> {
    /// What keeps a request from leaving now; one that leaves is in flight from now on.
    fn stops(&mut self, request: &Request, has_place: bool) -> Option<Stop> {
        if request.command == Command::Disconnect {
            return None; // nobody answers it
        }
        let bytes = moved_bytes(request);
        if !has_place {
            if self.pending.is_full() {
                let moves = self.state.moves();
                return Some(Stop::TooMany { moves });
            }
            if !self.state.has_turn(self.now_us) {
                return Some(Stop::Inactive);
            }
            match self.state.admit(self.member, bytes, self.now_us) {
                Admission::Now => {}
                Admission::At(at_us) => return Some(Stop::Paced { at_us, bytes }),
                Admission::Full => return Some(self.full()),
            }
        }
        let sent = self.state.on_send(request, self.now_us);
        if self.pending.add(request.cookie, sent) {
            return None;
        }
        self.state.give_back(bytes);
        Some(Stop::Broken(End::Broken(format!(
            "a request: its cookie {:#x} is that of another in flight",
            request.cookie
        ))))
    }

    fn full(&self) -> Stop {
        Stop::Full {
            moves: self.state.moves(),
        }
    }
}

impl<'a> Requests<'a> {
    /// The direction of a connection.
    #[must_use]
    pub fn new(connection: &'a Connection) -> Self {
        Self {
            connection,
            buffer: vec![0; BUFFER_BYTES].into(),
            start: 0,
            end: 0,
            payload_left: 0,
            has_place: false,
            gone_since: None,
            splicing: Splicing::default(),
            reads_short: false,
        }
    }

    /// Passes requests on until the client ends its sending.
    ///
    /// # Errors
    /// When the connection is over.
    pub fn run(mut self) -> Result<(), End> {
        clock::be_precise();
        while self.fill()? {
            loop {
                let (until, stop) = self.scan();
                if until > self.start {
                    self.pass_on(until)?;
                }
                match stop {
                    Stop::Empty
                        if self.start == self.end && self.payload_left >= LENGTH_BYTES_MIN =>
                    {
                        self.splice()?;
                        break;
                    }
                    Stop::Empty => break,
                    Stop::Full { moves } => self.wait_for_room(moves)?,
                    Stop::TooMany { moves } => self.wait_for_answers(moves)?,
                    Stop::Inactive => self.wait_for_turn()?,
                    Stop::Paced { at_us, bytes } => self.wait_for_pace(at_us, bytes)?,
                    Stop::Broken(end) => return Err(end),
                }
            }
        }
        Ok(())
    }

    /// Writes what may leave. A server may take its time, but not for a client that is gone.
    fn pass_on(&mut self, until: usize) -> Result<(), End> {
        while self.start < until {
            let whole = &self.buffer[self.start..until];
            let count = self.connection.server.write_some(whole)?;
            self.start += count;
            self.look(count > 0)?;
        }
        Ok(())
    }

    /// Passes the rest of a long payload on.
    fn splice(&mut self) -> Result<(), End> {
        let Connection { server, client, .. } = self.connection;
        let (mut splicing, left) = (std::mem::take(&mut self.splicing), self.payload_left);
        let passed = splicing.pass(client, server, left, |_| (), || self.look(false));
        self.splicing = splicing;
        if passed? {
            self.payload_left = 0;
            self.reads_short = true;
        }
        Ok(())
    }

    /// Reads what has come; false at the end.
    fn fill(&mut self) -> Result<bool, End> {
        // A piece of a header is left over at most.
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
            .client
            .read(&mut self.buffer[self.end..room])?;
        self.end += count;
        Ok(count > 0)
    }

    /// Looks through what has come; up to where it may leave now, and why not further.
    fn scan(&mut self) -> (usize, Stop) {
        let at = self.skip_payload(self.start);
        if at == self.end {
            return (at, Stop::Empty);
        }
        let connection = self.connection;
        let mut shared = Shared {
            pending: connection.pending(),
            state: connection.stream.state(),
            member: &connection.member,
            now_us: clock::now_us(),
        };
        let (at, stop) = self.scan_requests(at, &mut shared);
        let waits = matches!(stop, Stop::Full { .. });
        shared.state.end_turn(&connection.member, waits);
        (at, stop)
    }

    fn scan_requests(&mut self, mut at: usize, shared: &mut Shared<'_>) -> (usize, Stop) {
        loop {
            let request = match Request::parse(&self.buffer[at..self.end]) {
                Ok(Parsed::Found { value, .. }) => value,
                Ok(Parsed::Needs { .. }) => return (at, Stop::Empty),
                Err(malformed) => return (at, Stop::Broken(malformed.into())),
            };
            let has_place = std::mem::take(&mut self.has_place);
            if let Some(stop) = shared.stops(&request, has_place) {
                return (at, stop);
            }
            self.payload_left = request.payload_bytes() as usize;
            at = self.skip_payload(at + Request::BYTES);
            if at == self.end {
                return (at, Stop::Empty);
            }
        }
    }

    /// Behind the data of the last request, as far as it has come.
    fn skip_payload(&mut self, at: usize) -> usize {
        let here = self.payload_left.min(self.end - at);
        self.payload_left -= here;
        at + here
    }

    fn wait_for_room(&mut self, moves: u64) -> Result<(), End> {
        let connection = self.connection;
        let has_moved = connection
            .stream
            .wait_for_room(&connection.member, moves, || connection.is_closed());
        self.look(has_moved)
    }

    fn wait_for_answers(&mut self, moves: u64) -> Result<(), End> {
        let connection = self.connection;
        let has_moved = connection
            .stream
            .wait_for_move(&connection.member, moves, || connection.is_closed());
        self.look(has_moved)
    }

    fn wait_for_turn(&mut self) -> Result<(), End> {
        let connection = self.connection;
        let has_turn = connection.stream.turn().wait(
            || connection.is_closed(),
            |has_moved| self.look(has_moved).is_err(),
        );
        if has_turn { Ok(()) } else { Err(End::Closed) }
    }

    fn wait_for_pace(&mut self, at_us: u64, bytes: u32) -> Result<(), End> {
        let connection = self.connection;
        self.has_place = connection
            .stream
            .wait_for_pace(&connection.member, at_us, bytes, || connection.is_closed());
        if !self.has_place {
            connection.stream.state().give_back(bytes);
            return Err(End::Closed);
        }
        Ok(())
    }

    /// Ends what nobody waits for any more: the server answers nothing, and the client is gone.
    fn look(&mut self, has_moved: bool) -> Result<(), End> {
        if self.connection.is_closed() {
            return Err(End::Closed);
        }
        if has_moved || !self.connection.client.has_hung_up() {
            self.gone_since = None;
            return Ok(());
        }
        match self.gone_since {
            Some(since) if since.elapsed() >= LINGER => Err(End::Closed),
            Some(_) => Ok(()),
            None => {
                self.gone_since = Some(Instant::now());
                Ok(())
            }
        }
    }
}
