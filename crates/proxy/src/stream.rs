//! A stream: all connections of one client to one server, under one controller.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ascar_congestion::{AnyController, Controller, InFlight, Reply, Sequences, WINDOW_X100_MAX};
use ascar_plane::{GoneStreams, StreamIndicators};

use crate::clock;
use crate::protocol::{Answer, Ask, Sent};
use crate::recorder::{Place, StreamRecord};
use crate::turns::StreamTurn;

/// A wait is looked over after this long: a client that is gone while its requests wait is noticed then.
pub const LOOK: Duration = Duration::from_secs(1);

/// How a stream is held: by which controller, and whether its window counts.
#[derive(Debug)]
pub struct Hold {
    /// The controller; also where none holds the stream, one keeps the congestion state.
    pub controller: AnyController,
    /// Whether requests wait for the window. Without it they only wait for the pace.
    pub has_window: bool,
}

/// A stream.
#[derive(Debug)]
pub struct Stream {
    client: String,
    server: String,
    turn: Arc<StreamTurn>,
    record: StreamRecord,
    state: Mutex<State>,
}

/// What connections share.
#[derive(Debug)]
pub struct State {
    hold: Hold,
    turn: Arc<StreamTurn>,
    /// Counts the controllers that it had.
    holds: u64,
    /// Counts all that may let a request leave.
    moves: u64,
    in_flight: InFlight,
    sequences: Sequences,
    members: Vec<Arc<Member>>,
    /// Those that wait for the window, in turn.
    queue: VecDeque<Arc<Member>>,
    waiting: u32,
    read_bytes: u64,
    written_bytes: u64,
    replies: u64,
    overloads: u64,
}

/// A connection, as its stream knows it.
#[derive(Debug)]
pub struct Member {
    /// No other connection has it.
    pub number: u64,
    /// Something came that it may wait for.
    moved: Condvar,
    /// Whether what it says passes as it comes.
    passes: AtomicBool,
}

impl Default for Member {
    fn default() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        Self {
            number: COUNT.fetch_add(1, Ordering::Relaxed),
            moved: Condvar::new(),
            passes: AtomicBool::new(false),
        }
    }
}

impl Member {
    /// Whether what it says passes as it comes: nothing of it is held, or counted.
    #[must_use]
    #[inline]
    pub fn passes(&self) -> bool {
        self.passes.load(Ordering::Acquire)
    }

    /// Wakes what waits for this connection's own answers; the stream's state is held.
    pub fn call(&self) {
        self.moved.notify_one();
    }
}

/// Whether a request may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Now.
    Now,
    /// At this time; it has its place.
    At(u64),
    /// Not before a reply comes.
    Full,
}

impl State {
    /// Whether the stream may be active now, where only so many to a server are.
    #[inline]
    #[must_use]
    pub fn has_turn(&self, now_us: u64) -> bool {
        self.turn.admits(now_us)
    }

    /// Whether a request of a connection may leave. One that may has its place in the window from now on.
    #[inline]
    pub fn admit(&mut self, member: &Arc<Member>, bytes: u32, now_us: u64) -> Admission {
        if self.hold.has_window {
            let is_its_turn = self.is_next(member) || self.queue.is_empty();
            if !is_its_turn || !self.hold.controller.admits(self.in_flight, bytes) {
                return Admission::Full;
            }
        }
        self.in_flight.requests += 1;
        self.in_flight.bytes += u64::from(bytes);
        if self.in_flight.requests == 1 {
            self.turn.on_busy(true);
        }
        match self.hold.controller.reserve(now_us, bytes) {
            at_us if at_us > now_us => Admission::At(at_us),
            _ => Admission::Now,
        }
    }

    /// A connection has looked. It has used its turn if that was its; one that waits for the window enters behind the
    /// others in [`Stream::wait_for_room`], once it has sent what it may. One that does not holds nobody up.
    pub fn end_turn(&mut self, member: &Arc<Member>, waits: bool) {
        let place = self.queue.iter().position(|one| Arc::ptr_eq(one, member));
        let Some(place) = place.filter(|place| *place == 0 || !waits) else {
            return;
        };
        self.queue.remove(place);
        // Where the window was full for this one, it is for the next one, until a reply calls that.
        if place == 0 && !waits {
            // The one behind may have looked while it was not its turn.
            self.moves += 1;
            self.call_next();
        }
    }

    /// Wakes the connection whose turn it is.
    #[inline]
    pub fn call_next(&self) {
        if let Some(next) = self.queue.front() {
            next.moved.notify_one();
        }
    }

    #[inline]
    fn is_next(&self, member: &Arc<Member>) -> bool {
        self.queue
            .front()
            .is_some_and(|next| Arc::ptr_eq(next, member))
    }

    /// A request leaves, which has its place if it is held: what is kept of it.
    #[inline]
    pub fn on_send(&mut self, ask: &Ask, now_us: u64) -> Sent {
        let bytes = ask.bytes;
        if ask.is_held {
            self.hold.controller.on_send(now_us, bytes);
        }
        // A device is one file. Requests of no bytes say nothing of how it is read.
        let is_sequential = ask.is_held
            && bytes > 0
            && ask
                .offset_bytes
                .is_some_and(|offset_bytes| self.sequences.on_send(0, offset_bytes, bytes));
        Sent {
            at_us: now_us,
            bytes,
            is_sequential,
            is_held: ask.is_held,
            record: Place::default(),
        }
    }

    /// A request was answered.
    #[inline]
    pub fn on_reply(&mut self, answer: &Answer, now_us: u64) {
        if !answer.is_counted {
            self.on_moved((answer.read_bytes, answer.written_bytes));
        }
        let Some(sent) = &answer.sent else { return };
        self.replies += 1;
        self.overloads += u64::from(answer.is_overload);
        if !sent.is_held {
            return;
        }
        if answer.is_overload {
            // Its process time says nothing: it was not processed.
            self.hold.controller.on_timeout(sent.at_us, now_us);
        } else {
            // More than it asked for, where that could not be told before.
            let moved_bytes = answer.read_bytes.max(answer.written_bytes);
            let moved_bytes = u32::try_from(moved_bytes).unwrap_or(u32::MAX);
            self.hold.controller.on_reply(&Reply {
                sent_us: sent.at_us,
                now_us,
                bytes: sent.bytes.max(moved_bytes),
                in_flight: self.in_flight,
                write: answer.writes,
                sequential: sent.is_sequential,
            });
        }
        self.release(1, sent.bytes.into());
    }

    /// Bytes were read and written.
    #[inline]
    pub fn on_moved(&mut self, (read_bytes, written_bytes): (u64, u64)) {
        self.read_bytes += read_bytes;
        self.written_bytes += written_bytes;
    }

    /// A request that had its place never leaves, or nobody will answer it.
    pub fn give_back(&mut self, bytes: u32) {
        self.release(1, bytes.into());
    }

    /// Nobody will answer these requests, which had their places.
    pub fn give_up(&mut self, requests: u32, bytes: u64) {
        self.release(requests, bytes);
        self.call_next();
    }

    /// From now on a connection passes unheld; so many of its requests had their place.
    pub fn pass_unheld(&mut self, member: &Arc<Member>, requests: u32, bytes: u64) {
        member.passes.store(true, Ordering::Release);
        self.release(requests, bytes);
        self.end_turn(member, false);
        self.call_next();
        member.call();
    }

    /// What [`Stream::wait_for_room`] waits for to change.
    #[must_use]
    pub fn moves(&self) -> u64 {
        self.moves
    }

    /// Requests are in flight no more.
    fn release(&mut self, requests: u32, bytes: u64) {
        self.moves += 1;
        self.in_flight.requests -= requests;
        self.in_flight.bytes -= bytes;
        if requests > 0 && self.in_flight.requests == 0 {
            self.turn.on_busy(false);
        }
    }
}

impl Stream {
    /// A stream without connections.
    #[must_use]
    pub fn new(client: String, server: String, hold: Hold, turn: Arc<StreamTurn>) -> Self {
        let state = State {
            hold,
            turn: Arc::clone(&turn),
            holds: 0,
            moves: 0,
            in_flight: InFlight::default(),
            sequences: Sequences::default(),
            members: Vec::new(),
            queue: VecDeque::new(),
            waiting: 0,
            read_bytes: 0,
            written_bytes: 0,
            replies: 0,
            overloads: 0,
        };
        Self {
            client,
            server,
            turn,
            record: StreamRecord::default(),
            state: Mutex::new(state),
        }
    }

    /// The same, whose requests are written down there.
    #[must_use]
    pub fn written_down(self, record: StreamRecord) -> Self {
        Self { record, ..self }
    }

    /// Where its requests are written down.
    #[must_use]
    #[inline]
    pub fn record(&self) -> &StreamRecord {
        &self.record
    }

    /// Its turn among the streams to its server.
    #[must_use]
    pub fn turn(&self) -> &Arc<StreamTurn> {
        &self.turn
    }

    /// What connections share. A thread that panicked leaves counters that are whole.
    #[inline]
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the turn of a connection after something has moved since there were so many moves, or until the
    /// connection is closed; [`LOOK`] at most. Whether there is something to look at.
    pub fn wait_for_room(
        &self,
        member: &Arc<Member>,
        moves: u64,
        is_closed: impl Fn() -> bool,
    ) -> bool {
        let mut state = self.state();
        if !state.queue.iter().any(|one| Arc::ptr_eq(one, member)) {
            state.queue.push_back(Arc::clone(member));
        }
        let is_still =
            |state: &mut State| !(is_closed() || state.is_next(member) && state.moves != moves);
        self.wait_while(state, member, is_still)
    }

    /// Waits until something of the stream has moved since there were so many moves, or the connection is closed, which
    /// is looked at every [`LOOK`]; whether it has.
    pub fn wait_for_move(
        &self,
        member: &Arc<Member>,
        moves: u64,
        is_closed: impl Fn() -> bool,
    ) -> bool {
        let is_still = |state: &mut State| state.moves == moves && !is_closed();
        self.wait_while(self.state(), member, is_still)
    }

    fn wait_while(
        &self,
        mut state: MutexGuard<'_, State>,
        member: &Arc<Member>,
        is_still: impl FnMut(&mut State) -> bool,
    ) -> bool {
        state.waiting += 1;
        let (mut state, waited) = member
            .moved
            .wait_timeout_while(state, LOOK, is_still)
            .unwrap_or_else(PoisonError::into_inner);
        state.waiting -= 1;
        !waited.timed_out()
    }

    /// Waits until a request that has its place may leave; whether it may: not when the connection is closed first.
    /// Where the controller changes meanwhile, the new one says when.
    pub fn wait_for_pace(
        &self,
        member: &Arc<Member>,
        mut at_us: u64,
        bytes: u32,
        is_closed: impl Fn() -> bool,
    ) -> bool {
        let mut state = self.state();
        let mut holds = state.holds;
        state.waiting += 1;
        loop {
            let now_us = clock::now_us();
            if state.holds != holds {
                holds = state.holds;
                at_us = state.hold.controller.reserve(now_us, bytes);
            }
            if at_us <= now_us || is_closed() {
                state.waiting -= 1;
                return at_us <= now_us;
            }
            let left = Duration::from_micros(at_us - now_us).min(LOOK);
            state = member
                .moved
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// Wakes a connection that was closed.
    pub fn wake(&self, member: &Member) {
        // Taken so that it is not between looking and waiting.
        drop(self.state());
        member.moved.notify_all();
        self.turn.wake();
    }

    /// One more connection.
    pub fn join(&self) -> Arc<Member> {
        let member = Arc::new(Member::default());
        self.state().members.push(Arc::clone(&member));
        member
    }

    /// A connection is over, with requests that nobody will answer; whether it was the last.
    pub fn leave(&self, member: &Arc<Member>, requests: u32, bytes: u64) -> bool {
        let mut state = self.state();
        state.release(requests, bytes);
        state.members.retain(|one| !Arc::ptr_eq(one, member));
        state.queue.retain(|one| !Arc::ptr_eq(one, member));
        state.call_next();
        state.members.is_empty()
    }

    /// Puts another controller in force, from now on. What is in flight stays so, and what waits asks the new one.
    pub fn hold(&self, hold: Hold) {
        let mut state = self.state();
        state.hold = hold;
        state.holds += 1;
        state.moves += 1;
        for member in &state.members {
            member.moved.notify_all();
        }
    }

    /// Bytes that were read and written so far.
    pub fn moved_bytes(&self) -> u64 {
        let state = self.state();
        state.read_bytes + state.written_bytes
    }

    /// Who asks.
    #[must_use]
    pub fn client(&self) -> &str {
        &self.client
    }

    /// Who answers.
    #[must_use]
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Adds what it has moved, now that it is over.
    pub fn add_to(&self, gone: &mut GoneStreams) {
        let state = self.state();
        gone.server.clone_from(&self.server);
        gone.read_bytes += state.read_bytes;
        gone.written_bytes += state.written_bytes;
        gone.replies += state.replies;
        gone.overloads += state.overloads;
    }

    /// What it shows.
    pub fn indicators(&self) -> StreamIndicators {
        let state = self.state();
        let controller = &state.hold.controller;
        let signals = controller.signals().unwrap_or_default();
        let window_x100 = controller.window().requests_x100;
        let window = f64::from(window_x100.min(WINDOW_X100_MAX)) / 100.0;
        StreamIndicators {
            client: self.client.clone(),
            server: self.server.clone(),
            window: state.hold.has_window.then_some(window),
            tau_us: controller.gap_us(),
            ack_ewma_us: signals.ack_us,
            send_ewma_us: signals.send_us,
            pt_ratio: f64::from(signals.ratio100) / 100.0,
            in_flight: state.in_flight.requests,
            waiting: state.waiting + self.turn.waiting(),
            has_turn: self.turn.has_turn(),
            connections: state.members.len() as u32,
            passing: state.members.iter().filter(|it| it.passes()).count() as u32,
            read_bytes: state.read_bytes,
            written_bytes: state.written_bytes,
            replies: state.replies,
            overloads: state.overloads,
        }
    }
}

#[cfg(test)]
mod tests {
    use ascar_congestion::Fixed;

    use super::*;

    fn fixed(window: u32, gap_us: u32) -> Hold {
        Hold {
            controller: AnyController::Fixed(Fixed::new(window * 100, gap_us)),
            has_window: true,
        }
    }

    fn stream(hold: Hold) -> (Stream, Arc<Member>) {
        let turn = StreamTurn::new(1, Arc::default());
        let stream = Stream::new("pid:1".to_owned(), "unix:/s".to_owned(), hold, turn);
        let member = stream.join();
        (stream, member)
    }

    fn sent(at_us: u64) -> Answer {
        let sent = Sent {
            at_us,
            bytes: 4096,
            is_sequential: false,
            is_held: true,
            record: Place::default(),
        };
        Answer {
            sent: Some(sent),
            read_bytes: 4096,
            written_bytes: 0,
            is_counted: false,
            writes: false,
            is_overload: false,
        }
    }

    #[test]
    fn no_more_than_the_window_is_in_flight() {
        let (stream, member) = stream(fixed(2, 0));
        let mut state = stream.state();
        assert_eq!(state.admit(&member, 4096, 10), Admission::Now);
        assert_eq!(state.admit(&member, 4096, 10), Admission::Now);
        assert_eq!(state.admit(&member, 4096, 10), Admission::Full);
        state.on_reply(&sent(10), 30);
        assert_eq!(state.admit(&member, 4096, 30), Admission::Now);
        drop(state);
        let shown = stream.indicators();
        assert_eq!((shown.in_flight, shown.window), (2, Some(2.0)));
        assert_eq!((shown.read_bytes, shown.replies), (4096, 1));
    }

    #[test]
    fn an_overload_is_congestion_and_no_reply() {
        let controller = AnyController::rival("aimd", 1).unwrap();
        let hold = Hold {
            controller,
            has_window: true,
        };
        let (stream, member) = stream(hold);
        let mut state = stream.state();
        let before = state.hold.controller.window();
        assert_eq!(state.admit(&member, 4096, 10), Admission::Now);
        let overload = Answer {
            is_overload: true,
            read_bytes: 5,
            ..sent(10)
        };
        state.on_reply(&overload, 1_000);
        assert!(state.hold.controller.window().requests_x100 < before.requests_x100);
        drop(state);
        let shown = stream.indicators();
        assert_eq!((shown.in_flight, shown.overloads, shown.replies), (0, 1, 1));
        assert_eq!((shown.read_bytes, shown.ack_ewma_us), (5, 0));
    }

    #[test]
    fn requests_in_sequence_are_told() {
        let (stream, _) = stream(fixed(8, 0));
        let mut state = stream.state();
        let mut is_sequential = |offset_bytes, bytes| {
            let ask = Ask {
                bytes,
                offset_bytes,
                is_held: true,
                is_answered: true,
            };
            let sent = state.on_send(&ask, 10);
            assert_eq!((sent.bytes, sent.at_us), (bytes, 10));
            sent.is_sequential
        };
        assert!(!is_sequential(Some(8192), 4096));
        assert!(!is_sequential(Some(0), 0));
        assert!(!is_sequential(None, 4096));
        assert!(is_sequential(Some(12_288), 4096));
        assert!(!is_sequential(Some(16_384), 0));
        assert!(is_sequential(Some(16_384), 4096));
        assert!(!is_sequential(Some(16_384), 4096));
    }

    #[test]
    fn requests_leave_a_gap_apart() {
        let (stream, member) = stream(fixed(8, 100));
        let mut state = stream.state();
        assert_eq!(state.admit(&member, 4096, 1_000), Admission::Now);
        assert_eq!(state.admit(&member, 4096, 1_000), Admission::At(1_100));
        assert_eq!(state.admit(&member, 4096, 1_000), Admission::At(1_200));
    }

    #[test]
    fn without_a_window_everything_passes_and_is_counted() {
        let hold = Hold {
            has_window: false,
            ..fixed(1, 0)
        };
        let (stream, member) = stream(hold);
        let mut state = stream.state();
        for _ in 0..100 {
            assert_eq!(state.admit(&member, 4096, 10), Admission::Now);
        }
        drop(state);
        let shown = stream.indicators();
        assert_eq!((shown.in_flight, shown.window), (100, None));
    }

    #[test]
    fn a_connection_that_ends_leaves_its_place_to_others() {
        let (stream, member) = stream(fixed(1, 0));
        let other = stream.join();
        assert_eq!(stream.state().admit(&member, 4096, 10), Admission::Now);
        assert_eq!(stream.state().admit(&other, 4096, 10), Admission::Full);
        assert!(!stream.leave(&member, 1, 4096));
        assert_eq!(stream.state().admit(&other, 4096, 10), Admission::Now);
        assert!(stream.leave(&other, 1, 4096));
    }

    #[test]
    fn connections_that_wait_have_turns() {
        let (stream, member) = stream(fixed(1, 0));
        let (other, third) = (stream.join(), stream.join());
        assert_eq!(stream.state().admit(&member, 4096, 10), Admission::Now);
        for one in [&member, &other] {
            let moves = stream.state().moves();
            assert_eq!(stream.state().admit(one, 4096, 10), Admission::Full);
            assert!(stream.wait_for_room(one, moves, || true));
        }
        let mut state = stream.state();
        state.on_reply(&sent(10), 20);
        assert_eq!(state.admit(&other, 4096, 20), Admission::Full);
        assert_eq!(state.admit(&third, 4096, 20), Admission::Full);
        assert_eq!(state.admit(&member, 4096, 20), Admission::Now);
        state.end_turn(&member, true);
        state.on_reply(&sent(20), 30);
        assert_eq!(state.admit(&member, 4096, 30), Admission::Full);
        assert_eq!(state.admit(&other, 4096, 30), Admission::Now);
        state.end_turn(&other, false);
        state.on_reply(&sent(30), 40);
        assert_eq!(state.admit(&member, 4096, 40), Admission::Now);
        state.end_turn(&member, false);
        state.on_reply(&sent(40), 50);
        assert_eq!(state.admit(&third, 4096, 50), Admission::Now);
    }

    #[test]
    fn a_connection_that_waits_no_more_holds_nobody_up() {
        let (stream, member) = stream(fixed(1, 0));
        let (other, third) = (stream.join(), stream.join());
        assert_eq!(stream.state().admit(&member, 4096, 10), Admission::Now);
        for one in [&member, &other] {
            let moves = stream.state().moves();
            stream.wait_for_room(one, moves, || true);
        }
        stream.hold(Hold {
            has_window: false,
            ..fixed(1, 0)
        });
        for one in [&other, &member] {
            let mut state = stream.state();
            assert_eq!(state.admit(one, 4096, 20), Admission::Now);
            state.end_turn(one, false);
            state.on_reply(&sent(20), 30);
        }
        stream.hold(fixed(2, 0));
        assert_eq!(stream.state().admit(&third, 4096, 40), Admission::Now);
    }

    #[test]
    fn a_connection_that_sends_has_no_turn() {
        let (stream, member) = stream(fixed(1, 0));
        let other = stream.join();
        assert_eq!(stream.state().admit(&member, 4096, 10), Admission::Now);
        let moves = stream.state().moves();
        stream.wait_for_room(&member, moves, || true);
        let mut state = stream.state();
        state.on_reply(&sent(10), 20);
        assert_eq!(state.admit(&member, 4096, 20), Admission::Now);
        assert_eq!(state.admit(&member, 4096, 20), Admission::Full);
        let moves = state.moves();
        state.end_turn(&member, true);
        assert_eq!(state.moves(), moves, "nobody looks again for nothing");
        // Its server takes nothing, and that of the other does.
        state.on_reply(&sent(20), 30);
        assert_eq!(state.admit(&other, 4096, 30), Admission::Now);
    }

    #[test]
    fn what_is_in_flight_stays_so_under_another_controller() {
        let (stream, member) = stream(fixed(8, 0));
        for _ in 0..8 {
            stream.state().admit(&member, 4096, 10);
        }
        stream.hold(fixed(2, 0));
        let mut state = stream.state();
        for reply in 0..6 {
            assert_eq!(state.admit(&member, 4096, 20), Admission::Full);
            state.on_reply(&sent(10), 20 + reply);
        }
        assert_eq!(state.admit(&member, 4096, 30), Admission::Full);
        state.on_reply(&sent(10), 40);
        assert_eq!(state.admit(&member, 4096, 50), Admission::Now);
    }

    #[test]
    fn a_long_pace_ends_with_its_controller() {
        let (stream, member) = stream(fixed(8, u32::MAX));
        stream.state().admit(&member, 0, clock::now_us());
        let Admission::At(at_us) = stream.state().admit(&member, 0, clock::now_us()) else {
            panic!("the pace holds it");
        };
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| stream.wait_for_pace(&member, at_us, 0, || false));
            while stream.indicators().waiting == 0 {
                std::thread::yield_now();
            }
            stream.hold(fixed(8, 0));
            assert!(waits.join().unwrap());
        });
        assert!(!stream.wait_for_pace(&member, u64::MAX, 0, || true));
    }
}
