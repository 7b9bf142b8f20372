//! The one thread that owns the model: requests come with the instant of their arrival, and are answered when the
//! model's disk does. The model's time is the machine's, in nanoseconds since the start.

use std::collections::{BTreeSet, VecDeque};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ascar_simulation::disk::{DeviceRequest, Storage};

use crate::locked;
use crate::medium::Order;
use crate::model::Model;
use crate::replies::{Said, Ticket};
use crate::store::{Change, Store, Turn};

/// The kernel may wake a thread so much too late, to save power; 50 us is its default.
const TIMER_SLACK_NS: libc::c_ulong = 1;

/// What a client wants of the disk.
#[derive(Debug)]
pub(crate) enum Wish {
    /// Data, or that it is in the disk's buffer only.
    Read {
        /// Where.
        position: u64,
        /// How much; above zero.
        count: u32,
    },
    /// To write.
    Write(Arc<Change>),
    /// That all that came before is on the medium.
    Flush {
        /// How often power had been cut before it came.
        cuts: u64,
    },
}

/// A wish, and who is told.
#[derive(Debug)]
pub(crate) struct Job {
    /// What.
    pub(crate) wish: Wish,
    /// Who.
    pub(crate) ticket: Ticket,
}

#[derive(Debug)]
enum Arrival {
    Job(Job),
    /// Power is cut.
    Cut,
}

/// The way to the thread that owns the model.
#[derive(Debug)]
pub(crate) struct Drive {
    arrived: Mutex<Vec<(u64, Arrival)>>,
    more: Condvar,
    begun: Instant,
}

impl Drive {
    pub(crate) fn new() -> Self {
        Self {
            arrived: Mutex::default(),
            more: Condvar::new(),
            begun: Instant::now(),
        }
    }

    /// Hands a job over, which arrives now.
    pub(crate) fn submit(&self, job: Job) {
        self.send(Arrival::Job(job));
    }

    /// Power is cut: the disk begins anew, and what is under way gets no answer.
    pub(crate) fn cut(&self) {
        self.send(Arrival::Cut);
    }

    fn send(&self, arrival: Arrival) {
        let mut arrived = locked(&self.arrived);
        // Under the lock, so that instants do not go back.
        arrived.push((self.now_ns(), arrival));
        drop(arrived);
        self.more.notify_one();
    }

    fn now_ns(&self) -> u64 {
        self.begun.elapsed().as_nanos() as u64
    }

    /// Works for ever.
    pub(crate) fn run(&self, model: &Model, store: &Store, medium: &Sender<Order>) {
        // SAFETY: the option takes an integer. What is refused only makes the disk less punctual.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, TIMER_SLACK_NS, 0, 0, 0) };
        let mut work = Work::new(model.build(), store, medium);
        let mut batch = Vec::new();
        loop {
            self.wait(work.next_ns, &mut batch);
            for (at_ns, arrival) in batch.drain(..) {
                match arrival {
                    Arrival::Job(job) => work.take(at_ns, job),
                    Arrival::Cut => work.begin_anew(model.build()),
                }
            }
            work.go_on(self.now_ns());
        }
    }

    /// Waits until something arrives, or until an instant.
    fn wait(&self, until_ns: Option<u64>, batch: &mut Vec<(u64, Arrival)>) {
        let mut arrived = locked(&self.arrived);
        while arrived.is_empty() {
            arrived = match until_ns {
                None => self
                    .more
                    .wait(arrived)
                    .unwrap_or_else(PoisonError::into_inner),
                Some(until_ns) => {
                    let left_ns = until_ns.saturating_sub(self.now_ns());
                    if left_ns == 0 {
                        return;
                    }
                    let waited = self
                        .more
                        .wait_timeout(arrived, Duration::from_nanos(left_ns));
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        std::mem::swap(&mut *arrived, batch);
    }
}

/// A job at the model's disk.
#[derive(Debug)]
struct Open {
    wish: Wish,
    /// What came after what.
    number: u64,
    /// None once it is answered.
    ticket: Option<Ticket>,
    /// It is on the medium.
    has_landed: bool,
    /// It lies in the cache.
    is_held: bool,
}

/// What is under way.
#[derive(Debug)]
struct Work<'a> {
    storage: Box<dyn Storage>,
    store: &'a Store,
    medium: &'a Sender<Order>,
    /// How far the model has come.
    now_ns: u64,
    /// When it changes next.
    next_ns: Option<u64>,
    open: Vec<Option<Open>>,
    free: Vec<u32>,
    numbers: u64,
    /// Numbers of writes that have not reached the medium.
    writes: BTreeSet<u64>,
    /// Flushes that wait for the writes before them.
    flushes: VecDeque<(u64, Job)>,
    done: Vec<u32>,
    landed: Vec<u32>,
}

impl<'a> Work<'a> {
    fn new(storage: Box<dyn Storage>, store: &'a Store, medium: &'a Sender<Order>) -> Self {
        Self {
            storage,
            store,
            medium,
            now_ns: 0,
            next_ns: None,
            open: Vec::new(),
            free: Vec::new(),
            numbers: 0,
            writes: BTreeSet::new(),
            flushes: VecDeque::new(),
            done: Vec::new(),
            landed: Vec::new(),
        }
    }

    /// Power has been cut. Numbers go on, so that what comes is newer than all that was.
    fn begin_anew(&mut self, storage: Box<dyn Storage>) {
        *self = Self {
            now_ns: self.now_ns,
            numbers: self.numbers,
            ..Self::new(storage, self.store, self.medium)
        };
    }

    /// A job has arrived at an instant.
    fn take(&mut self, at_ns: u64, job: Job) {
        // What was due before comes first.
        self.go_on(at_ns);
        self.numbers += 1;
        let number = self.numbers;
        let (write, position_bytes, length_bytes) = match &job.wish {
            Wish::Read { position, count } => (false, *position, *count),
            Wish::Write(change) => {
                self.writes.insert(number);
                let range = change.range();
                (true, range.start, (range.end - range.start) as u32)
            }
            Wish::Flush { .. } => {
                self.flushes.push_back((number, job));
                self.answer_flushes();
                return;
            }
        };
        let open = Open {
            wish: job.wish,
            number,
            ticket: Some(job.ticket),
            has_landed: false,
            is_held: false,
        };
        let request = DeviceRequest {
            tag: self.keep(open),
            write,
            position_bytes,
            length_bytes,
        };
        self.storage.submit(self.now_ns, request);
        self.go_on(self.now_ns);
    }

    fn keep(&mut self, open: Open) -> u32 {
        if let Some(tag) = self.free.pop() {
            self.open[tag as usize] = Some(open);
            return tag;
        }
        self.open.push(Some(open));
        (self.open.len() - 1) as u32
    }

    /// All that is due by an instant.
    fn go_on(&mut self, now_ns: u64) {
        self.now_ns = self.now_ns.max(now_ns);
        self.next_ns = self.storage.advance(self.now_ns, &mut self.done);
        self.storage.landed(&mut self.landed);
        if self.done.is_empty() && self.landed.is_empty() {
            return;
        }
        let (mut done, mut landed) = (
            std::mem::take(&mut self.done),
            std::mem::take(&mut self.landed),
        );
        // First of all: what is answered at the instant at which it reaches the medium was never in the cache alone.
        for tag in &landed {
            if let Some(open) = &mut self.open[*tag as usize] {
                open.has_landed = true;
            }
        }
        done.drain(..).for_each(|tag| self.answer(tag));
        landed.drain(..).for_each(|tag| self.land(tag));
        (self.done, self.landed) = (done, landed);
        self.answer_flushes();
    }

    /// The disk is done with a job.
    fn answer(&mut self, tag: u32) {
        let Some(open) = &mut self.open[tag as usize] else {
            return;
        };
        let Some(ticket) = open.ticket.take() else {
            return;
        };
        match &open.wish {
            Wish::Read { position, count } => {
                let said = Said::Data {
                    position: *position,
                    count: *count,
                };
                ticket.answer(said);
                self.forget(tag);
            }
            Wish::Write(change) if open.has_landed => {
                let (number, change) = (open.number, change.clone());
                self.order(Order::Put {
                    turn: self.turn(number),
                    change,
                    ticket,
                });
                self.forget(tag);
            }
            Wish::Write(change) => {
                match self.store.hold(open.number, change.clone()) {
                    Err(code) => ticket.answer(Said::Refused(code)),
                    Ok(()) if change.fua => open.ticket = Some(ticket),
                    Ok(()) => ticket.answer(Said::Done),
                }
                // Now it is in the cache, and `land` has it leave.
                open.is_held = true;
            }
            Wish::Flush { .. } => {}
        }
    }

    /// A write has reached the medium; one that is not answered yet is dealt with then.
    fn land(&mut self, tag: u32) {
        let Some(open) = &mut self.open[tag as usize] else {
            return;
        };
        if !open.is_held {
            return;
        }
        let number = open.number;
        let cuts = match &open.wish {
            Wish::Write(change) => change.cuts,
            Wish::Read { .. } | Wish::Flush { .. } => 0,
        };
        let ticket = open.ticket.take();
        self.order(Order::Land {
            turn: self.turn(number),
            cuts,
            ticket,
        });
        self.forget(tag);
    }

    fn turn(&self, number: u64) -> Turn {
        let oldest = self.writes.first().copied().unwrap_or(number);
        Turn { number, oldest }
    }

    fn forget(&mut self, tag: u32) {
        if let Some(open) = self.open[tag as usize].take() {
            self.writes.remove(&open.number);
            self.free.push(tag);
        }
    }

    /// Flushes before which no write is under way any more.
    fn answer_flushes(&mut self) {
        while let Some((number, _)) = self.flushes.front() {
            if self.writes.first().is_some_and(|oldest| oldest < number) {
                return;
            }
            if let Some((_, Job { wish, ticket })) = self.flushes.pop_front()
                && let Wish::Flush { cuts } = wish
            {
                self.order(Order::Sync { cuts, ticket });
            }
        }
    }

    fn order(&self, order: Order) {
        // Its receiver lives as long as the process.
        let _ = self.medium.send(order);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, channel};

    use ascar_nbd::{Command, Request};
    use ascar_simulation::disk::{DeviceCounters, Turned};

    use super::*;
    use crate::lease::Amount;
    use crate::replies::Answer;
    use crate::store::Data;

    /// A disk that is done when the test says so: what is due is told by its instants.
    #[derive(Debug, Default)]
    struct Scripted {
        done: VecDeque<(u64, u32)>,
        landed: VecDeque<(u64, u32)>,
        now_ns: u64,
    }

    /// A write lands at its position, in nanoseconds; it is answered 10 ns after it came, or later if it lands later
    /// and is longer than 512 bytes.
    impl Storage for Scripted {
        fn submit(&mut self, now_ns: u64, request: DeviceRequest) {
            let lands_ns = request.position_bytes;
            let is_cached = request.write && request.length_bytes <= 512;
            let done_ns = if is_cached { now_ns + 10 } else { lands_ns };
            self.done.push_back((done_ns, request.tag));
            if request.write {
                self.landed.push_back((lands_ns, request.tag));
            }
        }

        fn advance(&mut self, now_ns: u64, done: &mut Vec<u32>) -> Option<u64> {
            self.now_ns = now_ns;
            self.done.retain(|(at_ns, tag)| {
                let is_due = *at_ns <= now_ns;
                done.extend(is_due.then_some(*tag));
                !is_due
            });
            None
        }

        fn landed(&mut self, tags: &mut Vec<u32>) {
            self.landed.retain(|(at_ns, tag)| {
                let is_due = *at_ns <= self.now_ns;
                tags.extend(is_due.then_some(*tag));
                !is_due
            });
        }

        fn note_landings(&mut self) {}
        fn set_slowdown(&mut self, _: f64) {}
        fn set_queue(&mut self, _: u64, _: Turned) {}
        fn capacity_bytes(&self) -> u64 {
            1 << 20
        }
        fn counters(&self) -> DeviceCounters {
            DeviceCounters::default()
        }
    }

    fn job(wish: Wish) -> (Job, Receiver<Answer>) {
        let (answers, answered) = channel();
        let ticket = Ticket {
            request: Request {
                flags: 0,
                command: Command::Write,
                cookie: 1,
                offset_bytes: 0,
                length_bytes: 0,
            },
            answers,
            _room: Amount::new(1).take(1),
            rest: None,
        };
        (Job { wish, ticket }, answered)
    }

    fn write(position: u64, count: u64, fua: bool) -> Wish {
        Wish::Write(Arc::new(Change {
            position,
            data: Data::Zeroes {
                count,
                may_be_hole: false,
            },
            cuts: 0,
            fua,
        }))
    }

    /// What the medium was told, in words.
    fn orders(ordered: &Receiver<Order>) -> Vec<String> {
        let told = ordered.try_iter().map(|order| match order {
            Order::Land { turn, ticket, .. } => {
                format!(
                    "land {}{}",
                    turn.number,
                    if ticket.is_some() { ", tell" } else { "" }
                )
            }
            Order::Put { turn, .. } => format!("put {}, none before {}", turn.number, turn.oldest),
            Order::Sync { .. } => "sync".to_owned(),
        });
        told.collect()
    }

    #[test]
    fn a_flush_waits_for_the_writes_before_it_and_no_others() {
        let store = Store::in_memory(1 << 20).unwrap();
        let (medium, ordered) = channel();
        let mut work = Work::new(Box::new(Scripted::default()), &store, &medium);
        let (flush, _answered) = job(Wish::Flush { cuts: 0 });
        work.take(0, flush);
        assert_eq!(orders(&ordered), ["sync"]);
        let (first, first_answered) = job(write(1000, 512, false));
        work.take(0, first);
        let (flush, _answered) = job(Wish::Flush { cuts: 0 });
        work.take(5, flush);
        let (second, _second_answered) = job(write(9000, 512, false));
        work.take(6, second);
        work.go_on(20);
        assert!(first_answered.try_recv().is_ok());
        assert_eq!(orders(&ordered), [""; 0]);
        work.go_on(1000);
        assert_eq!(orders(&ordered), ["land 2", "sync"]);
        work.go_on(9000);
        assert_eq!(orders(&ordered), ["land 4"]);
    }

    #[test]
    fn a_write_with_fua_is_told_by_the_medium() {
        let store = Store::in_memory(1 << 20).unwrap();
        let (medium, ordered) = channel();
        let mut work = Work::new(Box::new(Scripted::default()), &store, &medium);
        let (one, answered) = job(write(1000, 512, true));
        work.take(0, one);
        work.go_on(500);
        assert!(answered.try_recv().is_err());
        work.go_on(1000);
        assert!(answered.try_recv().is_err());
        assert_eq!(orders(&ordered), ["land 1, tell"]);
    }

    #[test]
    fn a_write_that_no_cache_takes_is_told_by_the_medium() {
        let store = Store::in_memory(1 << 20).unwrap();
        let (medium, ordered) = channel();
        let mut work = Work::new(Box::new(Scripted::default()), &store, &medium);
        let (long, answered) = job(write(1000, 4096, false));
        work.take(0, long);
        // One that lands before it is answered, too.
        let (early, early_answered) = job(write(3, 512, false));
        work.take(0, early);
        work.go_on(5);
        assert!(early_answered.try_recv().is_err());
        work.go_on(10);
        assert_eq!(orders(&ordered), ["put 2, none before 1"]);
        work.go_on(1000);
        assert!(answered.try_recv().is_err());
        assert_eq!(orders(&ordered), ["put 1, none before 1"]);
        assert!(work.writes.is_empty() && work.open.iter().all(Option::is_none));
    }

    #[test]
    fn what_is_under_way_when_power_is_cut_is_never_answered() {
        let store = Store::in_memory(1 << 20).unwrap();
        let (medium, ordered) = channel();
        let mut work = Work::new(Box::new(Scripted::default()), &store, &medium);
        let (one, answered) = job(write(1000, 512, false));
        work.take(0, one);
        let (flush, flushed) = job(Wish::Flush { cuts: 0 });
        work.take(1, flush);
        store.cut();
        work.begin_anew(Box::new(Scripted::default()));
        work.go_on(2000);
        assert!(answered.recv().is_err() && flushed.recv().is_err());
        assert_eq!(orders(&ordered), [""; 0]);
    }
}
