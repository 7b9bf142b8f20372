//! The turns of the streams to one server: at most so many are active at a time, where their number is limited.
//!
//! A window bounds the requests of each stream, but those of many streams still interleave at the server. Turns bound the
//! streams: a disk that reads ahead for eight sequential readers serves twelve as fast when eight or fewer take turns.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ascar_congestion::{Nanos, Turns};

use crate::clock;
use crate::stream::LOOK;

/// How long requests that a server does not answer hold a turn that is over: others are not to wait for ever for a
/// client that has sent half a request.
const PATIENCE_NS: Nanos = 5_000_000_000;

/// Whoever waits for the next turn looks no sooner than this.
const LOOK_MIN: Duration = Duration::from_micros(100);

/// How many streams to a server are active at a time, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActiveStreams {
    /// The most.
    pub most: u32,
    /// How long each is.
    pub length: TurnLength,
}

/// How long a stream is active while others wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnLength {
    /// The longest turn.
    pub turn_ms: u32,
    /// A stream that asks for nothing for so long gives its turn away.
    pub idle_ms: u32,
}

impl Default for TurnLength {
    /// Those of the simulator.
    fn default() -> Self {
        Self {
            turn_ms: 500,
            idle_ms: 8,
        }
    }
}

/// The turns of a server's streams.
#[derive(Debug, Default)]
pub struct ServerTurns {
    is_limited: AtomicBool,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// None: any number of streams is active.
    turns: Option<Turns>,
    idle: Duration,
    /// Streams that wait for a turn, in their order, and how many of their connections do.
    queue: VecDeque<(Arc<StreamTurn>, u32)>,
    /// Counts the turns that there were.
    given: u64,
}

/// A stream, as its server's turns know it.
#[derive(Debug)]
pub struct StreamTurn {
    number: u32,
    server: Arc<ServerTurns>,
    /// Whether requests of it are under way.
    is_busy: AtomicBool,
    /// Connections of it that wait for the turn.
    waiting: AtomicU32,
    /// Something came that they may wait for.
    moved: Condvar,
}

impl ServerTurns {
    /// Limits the streams from now on, or no more. Who has a turn begins it anew.
    pub fn limit(&self, limit: Option<ActiveStreams>) {
        let mut inner = self.inner();
        let ns = |milliseconds: u32| Nanos::from(milliseconds) * 1_000_000;
        inner.turns = limit.map(|ActiveStreams { most, length }| {
            Turns::new(most, ns(length.turn_ms), ns(length.idle_ms)).with_patience(PATIENCE_NS)
        });
        let idle_ms = limit.map_or(0, |limit| limit.length.idle_ms);
        inner.idle = Duration::from_millis(idle_ms.into());
        self.is_limited.store(limit.is_some(), Ordering::Release);
        for (stream, _) in &inner.queue {
            stream.moved.notify_all();
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Whether a stream may send now: it has a turn, or takes one that nobody waits for before it.
    fn admits(&mut self, stream: &StreamTurn, now: Nanos) -> bool {
        let number = stream.number;
        let is_first = |(one, _): &(Arc<StreamTurn>, u32)| one.number == number;
        if let Some(turns) = &mut self.turns {
            turns.give_away(now);
            let had = turns.has(number);
            let is_next = self.queue.front().is_none_or(is_first);
            let others_wait = !self.queue.iter().all(is_first);
            if !(had || is_next) || !turns.admits(number, now, others_wait) {
                return false;
            }
            if !had {
                let in_flight = stream.is_busy.load(Ordering::Acquire).into();
                turns.note(number, in_flight, now);
                self.given += 1;
            }
        }
        self.leave_queue(number);
        true
    }

    /// A stream waits no more.
    fn leave_queue(&mut self, number: u32) {
        let Some(place) = self.queue.iter().position(|(one, _)| one.number == number) else {
            return;
        };
        if let Some((stream, _)) = self.queue.remove(place) {
            stream.moved.notify_all();
        }
        if place == 0 {
            self.call_next();
        }
    }

    /// Wakes the stream whose turn is next.
    fn call_next(&self) {
        if let Some((next, _)) = self.queue.front() {
            next.moved.notify_all();
        }
    }

    /// A connection of a stream waits, behind other streams unless one of it does already.
    fn enter(&mut self, stream: &Arc<StreamTurn>) {
        let own = |(one, _): &&mut (Arc<StreamTurn>, u32)| one.number == stream.number;
        match self.queue.iter_mut().find(own) {
            Some((_, connections)) => *connections += 1,
            None => self.queue.push_back((Arc::clone(stream), 1)),
        }
    }

    /// A connection of a stream gives up. A stream of which none waits any more would hold up all behind it.
    fn give_up(&mut self, number: u32) {
        let own = |(one, _): &&mut (Arc<StreamTurn>, u32)| one.number == number;
        if let Some((_, connections)) = self.queue.iter_mut().find(own) {
            *connections -= 1;
            if *connections == 0 {
                self.leave_queue(number);
            }
        }
    }

    /// How long a stream may wait before it looks again. Only the first does so for the end of a turn: an idle time that
    /// begins meanwhile does not end before the one after this look.
    fn patience(&self, number: u32, now: Nanos) -> Duration {
        let is_first = |(one, _): &(Arc<StreamTurn>, u32)| one.number == number;
        if !self.queue.front().is_some_and(is_first) {
            return LOOK;
        }
        let next_ns = self.turns.as_ref().and_then(Turns::next_ns);
        let next = next_ns.map_or(LOOK, |at| Duration::from_nanos(at.saturating_sub(now)));
        next.min(self.idle).clamp(LOOK_MIN, LOOK)
    }
}

impl StreamTurn {
    /// For a stream that is the only one of this number.
    #[must_use]
    pub fn new(number: u32, server: Arc<ServerTurns>) -> Arc<Self> {
        Arc::new(Self {
            number,
            server,
            is_busy: AtomicBool::new(false),
            waiting: AtomicU32::new(0),
            moved: Condvar::new(),
        })
    }

    /// Whether requests of the stream may leave now, as far as others' turns say.
    #[inline]
    pub fn admits(&self, now_us: u64) -> bool {
        !self.server.is_limited.load(Ordering::Acquire)
            || self.server.inner().admits(self, now_us * 1_000)
    }

    /// Waits for a turn; whether it came: not when the connection is closed, or `is_over` says so, which is asked every
    /// [`LOOK`], and told whether others have had turns since.
    pub fn wait(
        self: &Arc<Self>,
        is_closed: impl Fn() -> bool,
        mut is_over: impl FnMut(bool) -> bool,
    ) -> bool {
        let (mut looked, mut seen) = (Instant::now(), None);
        let mut has_entered = false;
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let has_turn = loop {
            let mut inner = self.server.inner();
            let now = clock::now_us() * 1_000;
            if inner.admits(self, now) {
                break true;
            }
            // What left the queue with a turn that is over already enters it anew.
            let is_queued = inner.queue.iter().any(|(one, _)| one.number == self.number);
            if !(has_entered && is_queued) {
                inner.enter(self);
                has_entered = true;
            }
            let patience = inner.patience(self.number, now);
            let given = *seen.get_or_insert(inner.given);
            let (inner, _) = self
                .moved
                .wait_timeout(inner, patience)
                .unwrap_or_else(PoisonError::into_inner);
            let has_moved = inner.given != given;
            drop(inner);
            let looks = looked.elapsed() >= LOOK;
            if is_closed() || looks && is_over(has_moved) {
                self.server.inner().give_up(self.number);
                break false;
            }
            if looks {
                (looked, seen) = (Instant::now(), None);
            }
        };
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        has_turn
    }

    /// Its first request is under way, or none is any more.
    #[inline]
    pub fn on_busy(&self, is_busy: bool) {
        self.is_busy.store(is_busy, Ordering::Release);
        if self.server.is_limited.load(Ordering::Acquire) {
            self.note(clock::now_us() * 1_000);
        }
    }

    fn note(&self, now: Nanos) {
        let mut inner = self.server.inner();
        let is_busy = self.is_busy.load(Ordering::Acquire);
        if let Some(turns) = &mut inner.turns {
            turns.note(self.number, is_busy.into(), now);
            turns.give_away(now);
            if !turns.has(self.number) {
                inner.call_next();
            }
        }
    }

    /// The stream is over.
    pub fn end(&self) {
        let mut inner = self.server.inner();
        if let Some(turns) = &mut inner.turns {
            turns.end(self.number);
        }
        inner.leave_queue(self.number);
        inner.call_next();
    }

    /// Has those that wait look whether they are closed.
    pub fn wake(&self) {
        // Taken so that none is between looking and waiting.
        drop(self.server.inner());
        self.moved.notify_all();
    }

    /// Whether it has a turn; None: any number of streams is active.
    #[must_use]
    pub fn has_turn(&self) -> Option<bool> {
        let inner = self.server.inner();
        inner.turns.as_ref().map(|turns| turns.has(self.number))
    }

    /// Connections of it that wait for a turn.
    #[must_use]
    pub fn waiting(&self) -> u32 {
        self.waiting.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    const MS: Nanos = 1_000_000;

    fn limited(most: u32, turn_ms: u32) -> (Arc<ServerTurns>, Vec<Arc<StreamTurn>>) {
        let server = Arc::new(ServerTurns::default());
        let length = TurnLength {
            turn_ms,
            idle_ms: turn_ms.min(8),
        };
        server.limit(Some(ActiveStreams { most, length }));
        let stream = |number| StreamTurn::new(number, Arc::clone(&server));
        (Arc::clone(&server), (0..4).map(stream).collect())
    }

    #[test]
    fn no_more_streams_than_the_limit_are_active_and_those_that_wait_have_turns() {
        let (server, streams) = limited(1, 500);
        let [a, b, c, _] = &streams[..] else {
            panic!("four")
        };
        let mut inner = server.inner();
        assert!(inner.admits(a, 0));
        inner.turns.as_mut().unwrap().note(0, 1, 0);
        for one in [b, c] {
            assert!(!inner.admits(one, MS));
            inner.enter(one);
        }
        assert!(inner.admits(a, 499 * MS) && !inner.admits(a, 500 * MS));
        inner.enter(a);
        assert!(!inner.admits(b, 501 * MS), "its requests are under way");
        inner.turns.as_mut().unwrap().note(0, 0, 502 * MS);
        assert!(!inner.admits(c, 502 * MS) && !inner.admits(a, 502 * MS));
        assert!(inner.admits(b, 502 * MS));
        assert!(inner.admits(c, 510 * MS), "b asks for nothing");
        assert!(inner.admits(a, 518 * MS));
        assert!(inner.queue.is_empty());
    }

    #[test]
    fn a_stream_that_gives_up_holds_nobody_up() {
        let (server, streams) = limited(1, 500);
        let mut inner = server.inner();
        assert!(inner.admits(&streams[0], 0));
        inner.enter(&streams[1]);
        inner.enter(&streams[1]);
        inner.enter(&streams[2]);
        inner.give_up(1);
        assert!(!inner.admits(&streams[2], 8 * MS), "one of it still waits");
        inner.give_up(1);
        assert!(inner.admits(&streams[2], 8 * MS));
    }

    #[test]
    fn a_client_that_sends_half_a_request_keeps_its_turn_for_a_while_only() {
        let (server, streams) = limited(1, 500);
        assert!(streams[0].admits(0));
        streams[0].is_busy.store(true, Ordering::Release);
        streams[0].note(0);
        let mut inner = server.inner();
        inner.enter(&streams[1]);
        assert!(!inner.admits(&streams[1], 500 * MS + PATIENCE_NS - 1));
        assert!(inner.admits(&streams[1], 500 * MS + PATIENCE_NS));
    }

    #[test]
    fn those_that_wait_are_called_by_the_end_of_a_turn_a_stream_and_the_limit() {
        let (server, streams) = limited(1, 20);
        let waits = |stream: &Arc<StreamTurn>| stream.wait(|| false, |_| false);
        assert!(streams[0].admits(clock::now_us()));
        streams[0].on_busy(true);
        thread::scope(|scope| {
            let others: Vec<_> = streams[1..3]
                .iter()
                .map(|stream| scope.spawn(move || waits(stream)))
                .collect();
            while streams[1].waiting() + streams[2].waiting() < 2 {
                thread::yield_now();
            }
            thread::sleep(Duration::from_millis(50));
            assert_eq!(streams[0].has_turn(), Some(true), "it is over, and held");
            streams[0].on_busy(false);
            for other in others {
                assert!(other.join().unwrap());
            }
        });
        server.limit(Some(ActiveStreams {
            most: 1,
            length: TurnLength {
                turn_ms: 1_000_000,
                idle_ms: 1_000_000,
            },
        }));
        assert!(streams[0].admits(clock::now_us()));
        for end in [&(|| streams[0].end()) as &(dyn Fn() + Sync), &|| {
            server.limit(None)
        }] {
            thread::scope(|scope| {
                let waiting = scope.spawn(|| waits(&streams[3]));
                while streams[3].waiting() == 0 {
                    thread::yield_now();
                }
                end();
                assert!(waiting.join().unwrap());
            });
            streams[3].end();
            assert!(streams[0].admits(clock::now_us()));
        }
        assert_eq!(streams[0].has_turn(), None);
    }

    #[test]
    fn a_closed_connection_waits_no_more() {
        let (_, streams) = limited(1, 1_000);
        assert!(streams[0].admits(clock::now_us()));
        streams[0].on_busy(true);
        let is_closed = AtomicBool::new(false);
        let closed = || is_closed.load(Ordering::Acquire);
        thread::scope(|scope| {
            let waiting = scope.spawn(|| streams[1].wait(closed, |_| false));
            while streams[1].waiting() == 0 {
                thread::yield_now();
            }
            is_closed.store(true, Ordering::Release);
            streams[1].wake();
            assert!(!waiting.join().unwrap());
        });
        assert!(!streams[1].wait(|| false, |has_moved| !has_moved));
        assert_eq!(
            (streams[1].waiting(), streams[1].server.inner().queue.len()),
            (0, 0)
        );
    }
}
