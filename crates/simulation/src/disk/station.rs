//! Queue and device of one server, as the cluster sees them: requests are cut into pieces, which wait for one of the
//! queue's slots, are merged where they touch, and are served.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::elevator::Elevator;
use super::ordered::NONE;
use super::random::Random;
use super::slab::Slab;
use super::unit::{Conduct, Standing, Unit};
use super::work::{Direction, Entry, Span};
use super::{DeviceCounters, DeviceRequest, Storage, StorageParts, Turned};

/// A request that is not done.
#[derive(Clone, Copy, Debug)]
struct Request {
    tag: u32,
    /// What of it has found no slot yet.
    rest: Span,
    /// Bytes not yet served.
    left: u64,
    /// Its entry that waits in the queue.
    waiting: u32,
    /// It lies in the device's write cache: it is answered without its data having reached the medium.
    cached: bool,
}

/// What is due at an instant; the number says which of two due at the same instant came first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    at_ns: u64,
    number: u64,
    event: Event,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The entry in service with this index ends.
    Served(u32),
    /// A cached write is answered.
    Answer(u32),
}

/// See [`super`].
#[derive(Clone, Debug)]
pub(super) struct Station {
    unit: Unit,
    elevator: Elevator,
    due: BinaryHeap<Reverse<Due>>,
    numbers: u64,
    serving: Slab<Entry>,
    in_service: usize,
    requests: Slab<Request>,
    /// Requests whose next piece found no slot.
    line: VecDeque<u32>,
    /// Writes that wait for room in the device's cache.
    cache_line: VecDeque<u32>,
    slots: u32,
    /// Below zero while more are taken than are allowed since the queue was turned.
    slots_free: i64,
    piece_bytes: u64,
    merge: bool,
    cached_bytes: u64,
    slowdown: f64,
    noise: f64,
    random: Random,
    busy_since_ns: u64,
    counters: DeviceCounters,
    /// Writes that have reached the medium and were not yet told; None where nobody asks.
    landed: Option<Vec<u32>>,
}

impl Station {
    pub(super) fn new(parts: StorageParts<'_>) -> Self {
        let slots = parts.queue.slots.max(1);
        let room = slots as usize;
        let unit = Unit::new(parts);
        Self {
            due: BinaryHeap::with_capacity(room),
            numbers: 0,
            serving: Slab::with_capacity(unit.depth()),
            in_service: 0,
            requests: Slab::with_capacity(room),
            line: VecDeque::with_capacity(room),
            cache_line: VecDeque::with_capacity(2 * room),
            slots,
            slots_free: i64::from(slots),
            piece_bytes: u64::from(parts.queue.piece_kib.max(1)) * 1024,
            merge: parts.queue.merge,
            cached_bytes: 0,
            slowdown: 1.0,
            noise: parts.noise.service_sd_percent / 100.0,
            random: Random::new(parts.seed),
            busy_since_ns: 0,
            counters: DeviceCounters::default(),
            landed: None,
            elevator: Elevator::new(parts.queue),
            unit,
        }
    }

    /// Puts up to `pieces` pieces of a request into the queue, each on a free slot.
    fn enter(&mut self, now_ns: u64, index: u32, pieces: u32) {
        let Request { rest, waiting, .. } = self.requests[index];
        let bytes = rest.bytes.min(u64::from(pieces) * self.piece_bytes);
        let entry = Entry {
            span: Span { bytes, ..rest },
            owner: index,
            pieces: bytes.div_ceil(self.piece_bytes) as u32,
            place: self.unit.place(rest.position),
            since_ns: now_ns,
        };
        self.slots_free -= i64::from(entry.pieces);
        let joined = waiting != NONE && self.elevator.extend(waiting, entry);
        let waiting = if joined {
            waiting
        } else {
            self.elevator.push(entry)
        };
        let request = &mut self.requests[index];
        request.waiting = waiting;
        request.rest.position += bytes;
        request.rest.bytes -= bytes;
    }

    /// Free slots go to the requests in line: one piece each, then to the end of the line.
    fn admit(&mut self, now_ns: u64) {
        while self.slots_free > 0 {
            let Some(index) = self.line.pop_front() else {
                return;
            };
            self.enter(now_ns, index, 1);
            if self.requests[index].rest.bytes > 0 {
                self.line.push_back(index);
            }
        }
    }

    /// Writes that find room in the device's cache are answered as soon as they lie there; others wait for room.
    fn admit_cached(&mut self, now_ns: u64) {
        while let Some(&index) = self.cache_line.front() {
            let Request {
                tag, rest: span, ..
            } = self.requests[index];
            if self.cached_bytes + span.bytes > self.unit.cache_bytes() {
                return;
            }
            self.cache_line.pop_front();
            self.cached_bytes += span.bytes;
            let answer_ns = now_ns + self.unit.cache_ns(span.bytes, self.slowdown);
            self.schedule(answer_ns, Event::Answer(tag));
            self.elevator.push(Entry {
                span,
                owner: index,
                pieces: 0,
                place: self.unit.place(span.position),
                since_ns: now_ns,
            });
        }
    }

    fn dispatch(&mut self, now_ns: u64) {
        while self.in_service < self.unit.depth() {
            let arm = Standing {
                unit: &self.unit,
                now_ns: now_ns as f64,
            };
            let Some((handle, entry)) = self.elevator.pop(now_ns, &arm) else {
                return;
            };
            let request = &mut self.requests[entry.owner];
            if request.waiting == handle {
                request.waiting = NONE;
            }
            if self.in_service == 0 {
                self.busy_since_ns = now_ns;
            }
            self.in_service += 1;
            let time_ns = self.serve(now_ns, entry);
            let index = self.serving.insert(entry);
            self.schedule(now_ns + time_ns, Event::Served(index));
        }
    }

    /// The whole nanoseconds that the device takes for an entry: piece by piece, or at one go.
    fn serve(&mut self, now_ns: u64, entry: Entry) -> u64 {
        let mut factor = self.slowdown;
        if self.noise > 0.0 {
            // Log-normal with mean 1.
            factor *= libm::exp(self.noise * self.random.normal() - self.noise * self.noise / 2.0);
        }
        let conduct = Conduct {
            streamed: self.merge && entry.since_ns < now_ns,
            factor,
        };
        let step = if self.merge {
            entry.span.bytes
        } else {
            self.piece_bytes
        };
        let (mut at, mut time_ns) = (entry.span, 0.0);
        while at.bytes > 0 {
            let bytes = at.bytes.min(step);
            let part = self
                .unit
                .serve(now_ns as f64 + time_ns, Span { bytes, ..at }, conduct);
            time_ns += part.time_ns;
            self.counters.positioning_ns += part.positioning_ns as u64;
            self.counters.sequential_pieces +=
                bytes.div_ceil(self.piece_bytes) - u64::from(part.positioning_ns > 0.0);
            at.position += bytes;
            at.bytes -= bytes;
        }
        self.counters.pieces += entry.span.bytes.div_ceil(self.piece_bytes);
        (time_ns.ceil() as u64).max(1)
    }

    fn schedule(&mut self, at_ns: u64, event: Event) {
        self.numbers += 1;
        self.due.push(Reverse(Due {
            at_ns,
            number: self.numbers,
            event,
        }));
    }

    fn served(&mut self, now_ns: u64, index: u32, done: &mut Vec<u32>) {
        let entry = self.serving.remove(index);
        self.in_service -= 1;
        // Up to now, also where more is in service: a busy time may never end.
        self.counters.busy_ns += now_ns - self.busy_since_ns;
        self.busy_since_ns = now_ns;
        self.slots_free += i64::from(entry.pieces);
        match entry.span.direction {
            Direction::Read => self.counters.read_bytes += entry.span.bytes,
            Direction::Write => self.counters.written_bytes += entry.span.bytes,
        }
        let request = &mut self.requests[entry.owner];
        request.left -= entry.span.bytes;
        if request.left > 0 {
            return;
        }
        if let Some(landed) = &mut self.landed
            && entry.span.direction == Direction::Write
        {
            landed.push(request.tag);
        }
        if request.cached {
            self.cached_bytes -= entry.span.bytes;
            self.admit_cached(now_ns);
        } else {
            done.push(request.tag);
            self.counters.completed += 1;
        }
        self.requests.remove(entry.owner);
    }
}

impl Storage for Station {
    fn submit(&mut self, now_ns: u64, request: DeviceRequest) {
        assert!(request.length_bytes > 0, "a request has at least one byte");
        self.counters.submitted += 1;
        let span = Span {
            direction: if request.write {
                Direction::Write
            } else {
                Direction::Read
            },
            position: request.position_bytes,
            bytes: u64::from(request.length_bytes),
        };
        let cached = request.write && span.bytes <= self.unit.cache_bytes();
        let index = self.requests.insert(Request {
            tag: request.tag,
            rest: span,
            left: span.bytes,
            waiting: NONE,
            cached,
        });
        if cached {
            self.cache_line.push_back(index);
            self.admit_cached(now_ns);
            return;
        }
        if self.line.is_empty() && self.slots_free > 0 {
            self.enter(now_ns, index, self.slots_free as u32);
        }
        if self.requests[index].rest.bytes > 0 {
            self.line.push_back(index);
        }
    }

    fn advance(&mut self, now_ns: u64, done: &mut Vec<u32>) -> Option<u64> {
        while let Some(Reverse(Due { at_ns, event, .. })) = self.due.peek().copied() {
            if at_ns > now_ns {
                break;
            }
            self.due.pop();
            match event {
                Event::Served(index) => {
                    self.served(at_ns, index, done);
                    self.admit(at_ns);
                    self.dispatch(at_ns);
                }
                Event::Answer(tag) => {
                    done.push(tag);
                    self.counters.completed += 1;
                }
            }
        }
        self.dispatch(now_ns);
        self.due.peek().map(|next| next.0.at_ns)
    }

    fn set_slowdown(&mut self, factor: f64) {
        self.slowdown = factor;
    }

    fn set_queue(&mut self, now_ns: u64, turned: Turned) {
        let slots = turned.slots.max(1);
        self.slots_free += i64::from(slots) - i64::from(self.slots);
        self.slots = slots;
        self.elevator.turn_to(turned);
        self.admit(now_ns);
    }

    fn note_landings(&mut self) {
        self.landed.get_or_insert_default();
    }

    fn landed(&mut self, tags: &mut Vec<u32>) {
        if let Some(landed) = &mut self.landed {
            tags.append(landed);
        }
    }

    fn capacity_bytes(&self) -> u64 {
        self.unit.capacity_bytes()
    }

    fn counters(&self) -> DeviceCounters {
        self.counters
    }
}
