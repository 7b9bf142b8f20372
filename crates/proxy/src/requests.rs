//! From the client to the server: requests leave as the stream admits them, in their order, as many at once as have come.
//!
//! What waits stays in the one buffer; when that is full nothing more is read, and the client is held up.

use std::sync::{Arc, MutexGuard};
use std::time::Instant;

use ascar_nbd::{Command, Parsed, Request};
use ascar_plane::RecordedKind;

use crate::clock;
use crate::connection::{Connection, End, LINGER};
use crate::incoming::Incoming;
use crate::pending::{Pending, moved_bytes};
use crate::recorder::{Leaving, StreamRecord};
use crate::splicing::Splicing;
use crate::stream::{Admission, Member, State};

/// One direction of a connection.
#[derive(Debug)]
pub struct Requests<'a> {
    connection: &'a Connection,
    incoming: Incoming,
    /// Whether the first request has waited for its pace, and has its place.
    has_place: bool,
    /// Since when nothing moves although the client is gone.
    gone_since: Option<Instant>,
    /// When what is in the buffer was looked at first, after it was read.
    asked_us: Option<u64>,
    splicing: Splicing,
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
    record: &'a StreamRecord,
    asked_us: u64,
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
        let mut sent = self.state.on_send(request, self.now_us);
        if let Some(kind) = recorded_kind(request.command) {
            sent.record = self.record.on_send(&Leaving {
                connection: self.member.number,
                kind,
                offset_bytes: request.offset_bytes,
                size_bytes: bytes,
                asked_us: self.asked_us,
                now_us: self.now_us,
            });
        }
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

/// What is written down of a command; None for those that move nothing and say little of the load.
fn recorded_kind(command: Command) -> Option<RecordedKind> {
    match command {
        Command::Read => Some(RecordedKind::Read),
        Command::Write => Some(RecordedKind::Write),
        Command::Flush => Some(RecordedKind::Sync),
        _ => None,
    }
}

impl<'a> Requests<'a> {
    /// The direction of a connection.
    #[must_use]
    pub fn new(connection: &'a Connection) -> Self {
        Self {
            connection,
            incoming: Incoming::new(),
            has_place: false,
            gone_since: None,
            asked_us: None,
            splicing: Splicing::default(),
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
                let is_rest = self.incoming.payload_left() > 0;
                let (until, stop) = self.scan();
                if until > self.incoming.start() {
                    self.pass_on(until, is_rest)?;
                }
                match stop {
                    Stop::Empty if self.incoming.awaits_long_payload() => {
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

    /// Reads what has come; false at the end.
    fn fill(&mut self) -> Result<bool, End> {
        self.connection
            .set_partial(self.incoming.payload_left() > 0);
        let filled = self.incoming.fill(&self.connection.client)?;
        self.connection.set_partial(false);
        self.asked_us = None;
        Ok(filled)
    }

    /// Writes what may leave, which begins with the rest of a request's data where `is_rest`. A server may take its time,
    /// but not for a client that is gone.
    fn pass_on(&mut self, until: usize, is_rest: bool) -> Result<(), End> {
        while self.incoming.start() < until {
            let whole = self.incoming.until(until);
            let count = self.connection.server.write_some(whole)?;
            self.incoming.pass(count);
            if is_rest && count > 0 {
                self.connection.on_taken();
            }
            self.look(count > 0)?;
        }
        Ok(())
    }

    /// Passes the rest of a long payload on.
    fn splice(&mut self) -> Result<(), End> {
        let Connection { server, client, .. } = self.connection;
        let mut splicing = std::mem::take(&mut self.splicing);
        let left = self.incoming.payload_left();
        let connection = self.connection;
        connection.set_partial(true);
        let passed = splicing.pass(
            (client, server),
            left,
            |_| (),
            |left| {
                connection.on_taken();
                connection.set_partial(left > 0);
            },
            || {
                // The server is waited for, and not the client.
                connection.set_partial(false);
                self.look(false)
            },
        );
        connection.set_partial(false);
        self.splicing = splicing;
        if passed? {
            self.incoming.on_spliced();
        }
        Ok(())
    }

    /// Looks through what has come; up to where it may leave now, and why not further.
    fn scan(&mut self) -> (usize, Stop) {
        let at = self.incoming.skip_payload(self.incoming.start());
        if self.incoming.ends_at(at) {
            return (at, Stop::Empty);
        }
        let connection = self.connection;
        let (pending, state) = (connection.pending(), connection.stream.state());
        let now_us = clock::now_us();
        let mut shared = Shared {
            pending,
            state,
            member: &connection.member,
            record: connection.stream.record(),
            asked_us: *self.asked_us.get_or_insert(now_us),
            now_us,
        };
        let (at, stop) = self.scan_requests(at, &mut shared);
        let waits = matches!(stop, Stop::Full { .. });
        shared.state.end_turn(&connection.member, waits);
        (at, stop)
    }

    fn scan_requests(&mut self, mut at: usize, shared: &mut Shared<'_>) -> (usize, Stop) {
        loop {
            let request = match Request::parse(self.incoming.from(at)) {
                Ok(Parsed::Found { value, .. }) => value,
                Ok(Parsed::Needs { .. }) => return (at, Stop::Empty),
                Err(malformed) => return (at, Stop::Broken(malformed.into())),
            };
            let has_place = std::mem::take(&mut self.has_place);
            if let Some(stop) = shared.stops(&request, has_place) {
                return (at, stop);
            }
            self.incoming
                .expect_payload(request.payload_bytes() as usize);
            at = self.incoming.skip_payload(at + Request::BYTES);
            if self.incoming.ends_at(at) {
                return (at, Stop::Empty);
            }
        }
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
        if has_moved || !self.connection.client.socket().has_hung_up() {
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
