//! From the server to the client: replies are passed on as they come, and the last one of a request is told to the
//! stream.

use std::cell::Cell;
use std::io;
use std::sync::MutexGuard;
use std::time::{Duration, Instant};

use crate::clock;
use crate::connection::{Connection, End, LINGER};
use crate::incoming::Incoming;
use crate::protocol::{Answer, Dialogue, IN_FLIGHT_MAX, Next};
use crate::socket::{Either, wait_for_either};
use crate::splicing::{Passed, Splicing, Waits};
use crate::stream::{LOOK, State};
use crate::untaken::Untaken;

/// The other direction of a connection.
#[derive(Debug)]
pub struct Replies<'a, D> {
    connection: &'a Connection<D>,
    incoming: Incoming,
    silence: Silence<'a, D>,
    /// Whether the last reply has a body that has not passed yet.
    has_body: bool,
    untaken: Untaken,
    splicing: Splicing,
}

/// A server that says nothing although it is asked.
#[derive(Debug)]
struct Silence<'a, D> {
    connection: &'a Connection<D>,
    since: Cell<Option<Instant>>,
    /// How much of requests' data it had taken when it was looked at.
    taken: Cell<u64>,
}

impl<D: Dialogue> Silence<'_, D> {
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
        let dialogue = connection.dialogue();
        let is_owed = dialogue
            .owed_since_us(is_partial)
            .is_some_and(|at_us| clock::now() >= Duration::from_micros(at_us) + limit);
        if since.elapsed() < limit || !is_owed {
            return Ok(());
        }
        Err(End::Silent(format!(
            "the server has said nothing for {} s, and owes {} answers",
            limit.as_secs_f64(),
            dialogue.count()
        )))
    }
}

/// What both directions share, while a batch is looked through.
struct Shared<'a, D> {
    dialogue: MutexGuard<'a, D>,
    state: MutexGuard<'a, State>,
    now_us: u64,
}

impl<'a, D: Dialogue> Shared<'a, D> {
    fn of(connection: &'a Connection<D>) -> Self {
        Self {
            dialogue: connection.dialogue(),
            state: connection.stream.state(),
            now_us: clock::now_us(),
        }
    }

    fn on_answer(&mut self, answer: &Answer, connection: &Connection<D>) {
        self.state.on_reply(answer, self.now_us);
        if let Some(sent) = answer.sent {
            let record = connection.stream.record();
            record.on_answer(sent.record, answer, self.now_us);
        }
    }

    /// All of a piece has passed: the request that it answers is in flight no more.
    fn on_passed(&mut self, connection: &Connection<D>) {
        self.state.on_moved(self.dialogue.take_moved());
        let is_full = self.dialogue.count() >= IN_FLIGHT_MAX;
        if let Some(answer) = self.dialogue.take_answer() {
            self.on_answer(&answer, connection);
            if is_full {
                connection.member.call();
            }
        }
    }
}

impl<'a, D: Dialogue> Replies<'a, D> {
    /// The direction of a connection.
    #[must_use]
    pub fn new(connection: &'a Connection<D>) -> Self {
        Self {
            connection,
            incoming: Incoming::new(),
            silence: Silence {
                connection,
                since: Cell::default(),
                taken: Cell::default(),
            },
            has_body: false,
            untaken: Untaken::default(),
            splicing: Splicing::default(),
        }
    }

    /// Passes replies on until the server ends.
    ///
    /// # Errors
    /// When the connection is over.
    pub fn run(mut self) -> Result<(), End> {
        while self.fill()? {
            self.connection.set_writing(true);
            let (until, looked) = self.looked();
            // What was right before a mistake is the client's.
            self.hand(until)?;
            looked?;
            if self.incoming.awaits_long_payload() && self.untaken.count() == 0 {
                self.splice()?;
            }
            self.connection.set_writing(false);
        }
        let mut shared = Shared::of(self.connection);
        if let Some(answer) = shared.dialogue.on_server_end() {
            shared.on_answer(&answer, self.connection);
        }
        drop(shared);
        self.end()
    }

    /// Hands over what may pass; where its client takes no more, as much as may be is kept for it.
    fn hand(&mut self, until: usize) -> Result<(), End> {
        let connection = self.connection;
        let whole = self.incoming.until(until);
        let count = whole.len();
        if D::KEPT_BYTES_MAX == 0 {
            connection.client.write_all(whole)?;
        } else {
            self.untaken.hand(whole, &connection.client)?;
        }
        self.incoming.pass(count);
        connection.on_piece();
        while self.untaken.is_over(D::KEPT_BYTES_MAX) {
            connection.wait_for_client()?;
            self.untaken.hand_over(&connection.client)?;
        }
        Ok(())
    }

    /// The server has ended: the client gets what was kept for it.
    fn end(&mut self) -> Result<(), End> {
        let (mut since, mut before) = (Instant::now(), self.untaken.count());
        while before > 0 && since.elapsed() < LINGER {
            self.connection.wait_for_client()?;
            self.untaken.hand_over(&self.connection.client)?;
            if self.untaken.count() < before {
                (since, before) = (Instant::now(), self.untaken.count());
            }
        }
        Ok(())
    }

    /// Hands over what was kept, until the server says more.
    fn wait_for_more(&mut self) -> Result<(), End> {
        let (server, client) = (&self.connection.server, &self.connection.client);
        while self.untaken.count() > 0 && !server.has_more() {
            match wait_for_either(Some(server.socket()), client.socket(), LOOK)? {
                Some(Either::TakesMore) => self.untaken.hand_over(client)?,
                Some(Either::SaysMore) => return Ok(()),
                None => self.silence.look()?,
            }
        }
        Ok(())
    }

    /// Passes the rest of a long payload on.
    fn splice(&mut self) -> Result<(), End> {
        let (connection, has_body, silence) = (self.connection, &mut self.has_body, &self.silence);
        let (server, client) = (&connection.server, &connection.client);
        let on_piece = |left| {
            silence.end();
            connection.on_piece();
            // The client may use the cookie again as soon as it has the last byte.
            if left == 0 && std::mem::take(has_body) {
                let mut shared = Shared::of(connection);
                shared.on_passed(connection);
                shared.state.call_next();
            }
        };
        let on_wait = |waits| match waits {
            Waits::ForMore => silence.look().map(|()| true),
            Waits::ForRoom => Ok(D::KEPT_BYTES_MAX == 0),
        };
        let left = self.incoming.payload_left();
        let passed = self
            .splicing
            .pass((server, client), left, on_piece, |_| (), on_wait)?;
        match passed {
            Passed::Nothing => {}
            Passed::All => self.incoming.on_spliced(),
            Passed::Some { left, untaken } => {
                self.incoming.expect_payload(left);
                self.untaken.hand(&untaken, client)?;
            }
        }
        Ok(())
    }

    /// Reads what has come; false at the end.
    fn fill(&mut self) -> Result<bool, End> {
        self.wait_for_more()?;
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

    /// Up to where what has come may pass, and what is wrong behind that.
    fn looked(&mut self) -> (usize, Result<(), End>) {
        if !self.connection.passes() {
            match self.scan() {
                (_, Next::Passes(why)) => self.connection.pass_unheld(&why),
                (at, Next::Needs | Next::Cut(_)) => return (at, Ok(())),
                (at, Next::Found(end)) => return (at, Err(end)),
            }
        }
        self.has_body = false;
        (self.incoming.pass_all(), Ok(()))
    }

    /// Looks through what has come; up to where it is whole, and what is found to be wrong behind that.
    fn scan(&mut self) -> (usize, Next<End>) {
        let mut at = self.incoming.skip_payload(self.incoming.start());
        let payload_left = self.incoming.payload_left();
        if self.incoming.ends_at(at) && (payload_left > 0 || !self.has_body) {
            return (at, Next::Needs);
        }
        let connection = self.connection;
        let mut shared = Shared::of(connection);
        if self.incoming.payload_left() == 0 && std::mem::take(&mut self.has_body) {
            shared.on_passed(connection);
        }
        let looked = loop {
            if self.incoming.ends_at(at) {
                break Next::Needs;
            }
            let piece = match shared.dialogue.next_reply(self.incoming.from(at)) {
                Ok(Next::Found(piece)) => piece,
                Ok(Next::Needs) => break Next::Needs,
                Ok(Next::Cut(range)) => {
                    self.incoming.cut(at, range);
                    continue;
                }
                Ok(Next::Passes(why)) => break Next::Passes(why),
                Err(end) => break Next::Found(end),
            };
            self.incoming.expect_payload(piece.body_bytes);
            at = self.incoming.skip_payload(at + piece.head_bytes);
            self.has_body = self.incoming.payload_left() > 0;
            if !self.has_body {
                shared.on_passed(connection);
            }
        };
        shared.state.call_next();
        (at, looked)
    }
}
