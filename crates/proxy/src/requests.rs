//! From the client to the server: requests leave as the stream admits them, in their order, as many at once as have come.
//!
//! What waits stays in the one buffer; when that is full nothing more is read, and the client is held up.

use std::io;
use std::sync::{Arc, MutexGuard};
use std::time::Instant;

use crate::clock;
use crate::connection::{Connection, End, LINGER};
use crate::incoming::Incoming;
use crate::protocol::{Ask, Dialogue, IN_FLIGHT_MAX, Next, Part, Sent};
use crate::recorder::{Leaving, StreamRecord};
use crate::splicing::{Passed, Splicing, Waits};
use crate::stream::{Admission, Member, State};

/// Why a connection passes unheld whose client only sends.
const CHOKED: &str = "the client reads no answers while it sends, and no more can be kept for it";

/// One direction of a connection.
#[derive(Debug)]
pub struct Requests<'a, D> {
    connection: &'a Connection<D>,
    incoming: Incoming,
    /// The bytes of the first request, where it has waited for its pace and has its place.
    place: Option<u32>,
    /// Whether more pieces of the last request are to come.
    is_within: bool,
    /// Since when nothing moves although the client is gone.
    gone_since: Option<Instant>,
    /// Since when there is the beginning of what is not whole yet.
    begun: Option<Instant>,
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
    /// From here on nothing can be told, for this reason.
    Passes(String),
    /// What follows is wrong.
    Broken(End),
}

/// What both directions share, while a batch is looked through.
struct Shared<'a, D> {
    dialogue: MutexGuard<'a, D>,
    state: MutexGuard<'a, State>,
    member: &'a Arc<Member>,
    record: &'a StreamRecord,
    asked_us: u64,
    now_us: u64,
}

impl<D: Dialogue> Shared<'_, D> {
    /// What keeps a part from leaving now; a request that leaves is in flight from now on.
    fn stops(&mut self, part: &Part<D::Request>, bytes: &[u8], has_place: bool) -> Option<Stop> {
        let Some(ask) = &part.ask else {
            return self.leaves(part, None);
        };
        if ask.is_answered && !has_place && self.dialogue.count() >= IN_FLIGHT_MAX {
            let moves = self.state.moves();
            return Some(Stop::TooMany { moves });
        }
        if ask.is_held && !has_place {
            let stop = self.waits(ask.bytes);
            if stop.is_some() {
                return stop;
            }
        }
        let sent = self.written_down(part, ask, bytes);
        self.leaves(part, Some((ask, sent)))
    }

    /// What a request has to wait for; one that has nothing to has its place from now on.
    fn waits(&mut self, bytes: u32) -> Option<Stop> {
        if !self.state.has_turn(self.now_us) {
            return Some(Stop::Inactive);
        }
        match self.state.admit(self.member, bytes, self.now_us) {
            Admission::Now => None,
            Admission::At(at_us) => Some(Stop::Paced { at_us, bytes }),
            Admission::Full => Some(self.full()),
        }
    }

    fn leaves(&mut self, part: &Part<D::Request>, asked: Option<(&Ask, Sent)>) -> Option<Stop> {
        let kept = self
            .dialogue
            .on_send(part.request, asked.map(|(_, sent)| sent));
        self.state.on_moved(self.dialogue.take_moved());
        if let Some((ask, _)) = asked
            && ask.is_held
            && (kept.is_err() || !ask.is_answered)
        {
            self.state.give_back(ask.bytes);
        }
        kept.err().map(Stop::Broken)
    }

    /// What is kept of a request that leaves.
    fn written_down(&mut self, part: &Part<D::Request>, ask: &Ask, bytes: &[u8]) -> Sent {
        let sent = self.state.on_send(ask, self.now_us);
        if !self.record.is_on() {
            return sent;
        }
        let access = self.dialogue.access(&part.request, bytes);
        let record = access.map(|access| {
            self.record.on_send(&Leaving {
                connection: self.member.number,
                access,
                size_bytes: ask.bytes,
                asked_us: self.asked_us,
                now_us: self.now_us,
            })
        });
        Sent {
            record: record.unwrap_or_default(),
            ..sent
        }
    }

    fn full(&self) -> Stop {
        Stop::Full {
            moves: self.state.moves(),
        }
    }
}

impl<'a, D: Dialogue> Requests<'a, D> {
    /// The direction of a connection.
    #[must_use]
    pub fn new(connection: &'a Connection<D>) -> Self {
        Self {
            connection,
            incoming: Incoming::new(),
            place: None,
            is_within: false,
            gone_since: None,
            begun: None,
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
        let ended = self.pass_requests();
        self.connection.set_partial(self.is_amid());
        ended
    }

    fn pass_requests(&mut self) -> Result<(), End> {
        while self.fill()? {
            loop {
                if self.connection.passes() {
                    self.pass_unheld()?;
                    break;
                }
                let is_rest = self.is_amid();
                let (until, stop) = self.scan();
                if until > self.incoming.start() {
                    self.pass_on(until, is_rest)?;
                }
                match stop {
                    Stop::Empty if self.incoming.awaits_long_payload() => {
                        self.splice()?;
                        break;
                    }
                    Stop::Empty => {
                        self.look_for_whole()?;
                        break;
                    }
                    // What it waits for cannot come before it has sent this.
                    Stop::Full { .. } | Stop::TooMany { .. } if self.connection.is_choked() => {
                        self.connection.pass_unheld(CHOKED);
                    }
                    Stop::Full { moves } => self.wait_for_room(moves)?,
                    Stop::TooMany { moves } => self.wait_for_answers(moves)?,
                    Stop::Inactive => self.wait_for_turn()?,
                    Stop::Paced { at_us, bytes } => self.wait_for_pace(at_us, bytes)?,
                    Stop::Passes(why) => self.connection.pass_unheld(&why),
                    Stop::Broken(end) => return Err(end),
                }
            }
        }
        Ok(())
    }

    /// Whether more of the last request is to come.
    fn is_amid(&self) -> bool {
        self.is_within || self.incoming.payload_left() > 0
    }

    /// Passes on what has come as it is.
    fn pass_unheld(&mut self) -> Result<(), End> {
        let connection = self.connection;
        let mut state = connection.stream.state();
        if let Some(bytes) = self.place.take() {
            state.give_back(bytes);
        }
        // It may have begun to wait while this was decided.
        state.end_turn(&connection.member, false);
        drop(state);
        self.is_within = false;
        let until = self.incoming.pass_all();
        self.pass_on(until, false)
    }

    /// Reads what has come; false at the end.
    fn fill(&mut self) -> Result<bool, End> {
        self.connection.set_partial(self.is_amid());
        let filled = loop {
            match self.incoming.fill(&self.connection.client) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.look_for_rest()?,
                filled => break filled?,
            }
        };
        self.connection.set_partial(false);
        self.asked_us = None;
        Ok(filled)
    }

    /// Nothing has come for as long as a read may wait.
    ///
    /// # Errors
    /// When the client has begun something, and does not go on with it.
    fn look_for_rest(&self) -> Result<(), End> {
        if self.connection.is_closed() {
            return Err(End::Closed);
        }
        if self.is_amid() || !self.incoming.ends_at(self.incoming.start()) {
            return Err(self.connection.dialogue().late());
        }
        Ok(())
    }

    /// What has come is the beginning of something.
    ///
    /// # Errors
    /// When that was so for too long: a client must not go on for ever by a byte at a time.
    fn look_for_whole(&mut self) -> Result<(), End> {
        let is_piece = !self.incoming.ends_at(self.incoming.start());
        self.begun = self.begun.filter(|_| is_piece);
        if let Some(limit) = D::CLIENT_LIMIT
            && is_piece
            && self.begun.get_or_insert_with(Instant::now).elapsed() >= limit
        {
            return Err(self.connection.dialogue().late());
        }
        Ok(())
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
        let (server, client) = (&self.connection.server, &self.connection.client);
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
            |waits| match waits {
                Waits::ForMore => self.look_for_rest().map(|()| true),
                Waits::ForRoom => {
                    connection.set_partial(false);
                    self.look(false).map(|()| true)
                }
            },
        );
        connection.set_partial(false);
        self.splicing = splicing;
        if passed? == Passed::All {
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
        let (dialogue, state) = (connection.dialogue(), connection.stream.state());
        let now_us = clock::now_us();
        let mut shared = Shared {
            dialogue,
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

    fn scan_requests(&mut self, mut at: usize, shared: &mut Shared<'_, D>) -> (usize, Stop) {
        loop {
            let bytes = self.incoming.from(at);
            let part = match shared.dialogue.next_request(bytes) {
                Ok(Next::Found(part)) => part,
                Ok(Next::Needs) => return (at, Stop::Empty),
                Ok(Next::Cut(range)) => {
                    self.incoming.cut(at, range);
                    if self.incoming.ends_at(at) {
                        return (at, Stop::Empty);
                    }
                    continue;
                }
                Ok(Next::Passes(why)) => return (at, Stop::Passes(why)),
                Err(end) => return (at, Stop::Broken(end)),
            };
            let has_place = self.place.take().is_some();
            if let Some(stop) = shared.stops(&part, bytes, has_place) {
                return (at, stop);
            }
            self.begun = None;
            self.is_within = part.has_more;
            self.incoming.expect_payload(part.piece.body_bytes);
            at = self.incoming.skip_payload(at + part.piece.head_bytes);
            if self.incoming.ends_at(at) {
                return (at, Stop::Empty);
            }
        }
    }

    fn wait_for_room(&mut self, moves: u64) -> Result<(), End> {
        let connection = self.connection;
        let has_moved = connection
            .stream
            .wait_for_room(&connection.member, moves, || connection.is_let_go());
        self.look(has_moved)
    }

    fn wait_for_answers(&mut self, moves: u64) -> Result<(), End> {
        let connection = self.connection;
        let has_moved = connection
            .stream
            .wait_for_move(&connection.member, moves, || connection.is_let_go());
        self.look(has_moved)
    }

    fn wait_for_turn(&mut self) -> Result<(), End> {
        let connection = self.connection;
        let has_turn = connection.stream.turn().wait(
            || connection.is_let_go(),
            |has_moved| self.look(has_moved).is_err(),
        );
        if has_turn || connection.passes() {
            Ok(())
        } else {
            Err(End::Closed)
        }
    }

    fn wait_for_pace(&mut self, at_us: u64, bytes: u32) -> Result<(), End> {
        let connection = self.connection;
        let has_come = connection
            .stream
            .wait_for_pace(&connection.member, at_us, bytes, || connection.is_let_go());
        if has_come || connection.passes() {
            self.place = Some(bytes);
            return Ok(());
        }
        connection.stream.state().give_back(bytes);
        Err(End::Closed)
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
        if D::ENDS_WITH_CLIENT {
            return Err(End::Closed);
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
