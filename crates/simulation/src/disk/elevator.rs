//! The order in which a device serves what waits in its queue: by age and by place.

use super::Turned;
use super::ordered::{NONE, Ordered};
use super::slab::Slab;
use super::work::{Direction, Entry};
use crate::scenario::{Order, Queue};

#[derive(Clone, Copy, Debug)]
struct Slot {
    entry: Entry,
    older: u32,
    newer: u32,
}

/// What waits in one direction.
#[derive(Clone, Debug)]
struct Waiting {
    oldest: u32,
    newest: u32,
    by_place: Ordered,
    order: Order,
    expire_ns: u64,
}

/// How a device reaches what waits.
pub(super) trait Arm {
    /// The time that it takes to reach an entry.
    fn access_ns(&self, entry: &Entry) -> f64;

    /// The distance beyond which it takes at least so long to reach a write.
    fn distance_within(&self, time_ns: f64) -> u64;

    /// Whether an entry lies farther away than that: its `access_ns` need not be asked.
    fn is_beyond(&self, entry: &Entry, distance: u64) -> bool;
}

/// Entries of one direction that are served in a row.
#[derive(Clone, Copy, Debug)]
struct Batch {
    direction: Direction,
    pieces: u32,
    /// Of these, the last ones that adjoined each other.
    adjoining: u32,
}

/// Pieces that adjoin each other count as one in a batch, up to so many: a stream does not starve the others.
const ADJOINING_MAX: u32 = 64;

/// Linux' rules (block/mq-deadline.c): each direction sweeps upwards from where it was; batches of one direction, reads
/// before writes but not for ever, and none goes beyond the end of a sweep; what has waited too long begins the next
/// batch, and so does the oldest where a sweep has ended. Adding, extending and taking out are O(log n);
/// `Order::Nearest` looks at `depth` entries.
#[derive(Clone, Debug)]
pub(super) struct Elevator {
    slots: Slab<Slot>,
    waiting: [Waiting; 2],
    batch: Option<Batch>,
    batch_pieces: u32,
    writes_starved: u32,
    starved: u32,
    depth: usize,
    /// Where the last entry ended.
    sweep: u64,
    /// Where the last one of each direction did.
    sweeps: [u64; 2],
}

impl Elevator {
    pub(super) fn new(queue: &Queue) -> Self {
        let capacity = queue.slots as usize;
        let expire_ns = (queue.write_expire_ms * super::NS_PER_MS) as u64;
        let waiting = |order| {
            let by_place =
                Ordered::with_capacity(if order == Order::Arrival { 0 } else { capacity });
            Waiting {
                oldest: NONE,
                newest: NONE,
                by_place,
                order,
                expire_ns,
            }
        };
        Self {
            slots: Slab::with_capacity(capacity),
            waiting: [waiting(queue.read_order), waiting(queue.write_order)],
            batch: None,
            batch_pieces: queue.batch.max(1),
            writes_starved: queue.writes_starved,
            starved: 0,
            depth: queue.device_depth.max(1) as usize,
            sweep: 0,
            sweeps: [0; 2],
        }
    }

    /// Depth, batch and starvation from the next entry on.
    pub(super) fn turn_to(&mut self, turned: Turned) {
        self.depth = turned.device_depth.max(1) as usize;
        self.batch_pieces = turned.batch.max(1);
        self.writes_starved = turned.writes_starved;
    }

    /// Adds an entry; the handle stands for it until it is served.
    pub(super) fn push(&mut self, entry: Entry) -> u32 {
        let waiting = &mut self.waiting[entry.span.direction as usize];
        let slot = Slot {
            entry,
            older: waiting.newest,
            newer: NONE,
        };
        let handle = self.slots.insert(slot);
        match waiting.newest {
            NONE => waiting.oldest = handle,
            newest => self.slots[newest].newer = handle,
        }
        waiting.newest = handle;
        if waiting.order != Order::Arrival {
            waiting.by_place.insert(handle, entry.span.position);
        }
        handle
    }

    /// Adds pieces behind the waiting entry `handle` of the same request, if they will be served with it: always when
    /// places matter, else only if nothing came in between.
    pub(super) fn extend(&mut self, handle: u32, more: Entry) -> bool {
        let waiting = &self.waiting[more.span.direction as usize];
        let entry = &mut self.slots[handle].entry;
        let joins = waiting.order != Order::Arrival || waiting.newest == handle;
        if !joins || entry.span.end() != more.span.position {
            return false;
        }
        entry.span.bytes += more.span.bytes;
        entry.pieces += more.pieces;
        true
    }

    /// Takes out what is to be served next, with its handle.
    pub(super) fn pop(&mut self, now_ns: u64, arm: &impl Arm) -> Option<(u32, Entry)> {
        let (direction, handle) = match self.go_on(arm) {
            Some(chosen) => chosen,
            None => self.begin(now_ns, arm)?,
        };
        let entry = self.take(direction, handle);
        let batch = self.batch.as_mut().expect("a batch has begun");
        let adjoins = batch.pieces > 0 && entry.span.position == self.sweep;
        if adjoins && batch.adjoining < ADJOINING_MAX {
            batch.adjoining += entry.pieces.max(1);
        } else {
            batch.pieces += entry.pieces.max(1);
            batch.adjoining = if adjoins { batch.adjoining } else { 0 };
        }
        self.sweep = entry.span.end();
        self.sweeps[direction as usize] = self.sweep;
        Some((handle, entry))
    }

    /// The next of the batch under way: any of the sweep until it is full, then only what adjoins.
    fn go_on(&self, arm: &impl Arm) -> Option<(Direction, u32)> {
        let Batch {
            direction,
            pieces,
            adjoining,
        } = self.batch?;
        if self.waiting[direction as usize].oldest == NONE {
            return None;
        }
        if pieces < self.batch_pieces {
            let next = match self.waiting[direction as usize].order {
                Order::Elevator => self.ahead(direction)?,
                Order::Arrival | Order::Nearest => self.next(direction, arm),
            };
            return Some((direction, next));
        }
        let next = self.adjoining(direction)?;
        (adjoining < ADJOINING_MAX).then_some((direction, next))
    }

    /// The entry that goes on where the last one ended, if it is the next one in its order.
    fn adjoining(&self, direction: Direction) -> Option<u32> {
        let waiting = &self.waiting[direction as usize];
        let next = match waiting.order {
            Order::Arrival => Some(waiting.oldest).filter(|oldest| *oldest != NONE),
            Order::Elevator | Order::Nearest => waiting.by_place.at_or_after(self.sweep),
        };
        next.filter(|next| self.slots[*next].entry.span.position == self.sweep)
    }

    /// A new batch: its direction and its first entry.
    fn begin(&mut self, now_ns: u64, arm: &impl Arm) -> Option<(Direction, u32)> {
        let direction = self.turn()?;
        self.batch = Some(Batch {
            direction,
            pieces: 0,
            adjoining: 0,
        });
        let waiting = &self.waiting[direction as usize];
        let since_ns = self.slots[waiting.oldest].entry.since_ns;
        let expired = now_ns.saturating_sub(since_ns) >= waiting.expire_ns;
        Some((
            direction,
            if expired {
                waiting.oldest
            } else {
                self.next(direction, arm)
            },
        ))
    }

    /// Whose turn a new batch is: the reads', unless writes have let enough of theirs pass.
    fn turn(&mut self) -> Option<Direction> {
        let [reads, writes] = [0, 1].map(|direction: usize| self.waiting[direction].oldest != NONE);
        if reads && !(writes && self.starved >= self.writes_starved) {
            self.starved += u32::from(writes);
            return Some(Direction::Read);
        }
        self.starved = 0;
        writes.then_some(Direction::Write)
    }

    fn next(&self, direction: Direction, arm: &impl Arm) -> u32 {
        let waiting = &self.waiting[direction as usize];
        match waiting.order {
            Order::Arrival => waiting.oldest,
            Order::Elevator => self.ahead(direction).unwrap_or(waiting.oldest),
            Order::Nearest => self
                .adjoining(direction)
                .unwrap_or_else(|| self.nearest(waiting.oldest, arm)),
        }
    }

    /// The next one of a direction's sweep.
    fn ahead(&self, direction: Direction) -> Option<u32> {
        let from = self.sweeps[direction as usize];
        self.waiting[direction as usize].by_place.at_or_after(from)
    }

    /// Among the oldest `depth`; the older one of two that are equally near.
    fn nearest(&self, oldest: u32, arm: &impl Arm) -> u32 {
        let (mut best, mut best_ns, mut handle) = (oldest, f64::INFINITY, oldest);
        let mut distance = u64::MAX;
        for _ in 0..self.depth {
            let slot = &self.slots[handle];
            if !arm.is_beyond(&slot.entry, distance) {
                let time_ns = arm.access_ns(&slot.entry);
                if time_ns < best_ns {
                    (best, best_ns) = (handle, time_ns);
                    distance = arm.distance_within(best_ns);
                }
            }
            handle = slot.newer;
            if handle == NONE || best_ns == 0.0 {
                break;
            }
        }
        best
    }

    fn take(&mut self, direction: Direction, handle: u32) -> Entry {
        let Slot {
            entry,
            older,
            newer,
            ..
        } = self.slots.remove(handle);
        let waiting = &mut self.waiting[direction as usize];
        match older {
            NONE => waiting.oldest = newer,
            older => self.slots[older].newer = newer,
        }
        match newer {
            NONE => waiting.newest = older,
            newer => self.slots[newer].older = older,
        }
        if waiting.order != Order::Arrival {
            waiting.by_place.remove(handle);
        }
        entry
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::mechanical::Disk;
    use super::super::unit::Conduct;
    use super::super::work::Span;
    use super::*;
    use crate::scenario::Mechanical;

    /// A disk, of which every entry is asked, or only those near enough.
    struct Standing<'a> {
        disk: &'a Disk,
        now_ns: f64,
        asks_all: bool,
    }

    impl Arm for Standing<'_> {
        fn access_ns(&self, entry: &Entry) -> f64 {
            self.disk.access_ns(self.now_ns, entry.span, entry.place)
        }

        fn distance_within(&self, time_ns: f64) -> u64 {
            self.disk.distance_within(time_ns)
        }

        fn is_beyond(&self, entry: &Entry, distance: u64) -> bool {
            !self.asks_all && self.disk.is_beyond(entry.span, entry.place, distance)
        }
    }

    proptest! {
        #[test]
        fn those_near_enough_give_the_same_as_all(
            places in proptest::collection::vec((0_u64..400_000, any::<bool>()), 1..60),
            head in 0_u64..400_000,
            now_us in 0_u64..100_000,
            seek_exponent in 0.2_f64..1.0,
        ) {
            let spec = Mechanical { seek_exponent, ..Mechanical::default() };
            let mut disk = Disk::new(&spec);
            let span = |mib: u64, write| Span {
                direction: if write { Direction::Write } else { Direction::Read },
                position: mib << 20,
                bytes: 1 << 20,
            };
            disk.serve(0.0, span(head, true), Conduct { streamed: false, factor: 1.0 });
            let mut queue = Elevator::new(&Queue { read_order: Order::Nearest, ..Queue::default() });
            for (number, (mib, write)) in places.iter().enumerate() {
                queue.push(Entry {
                    span: span(*mib, *write),
                    owner: number as u32,
                    pieces: 1,
                    place: disk.place(mib << 20),
                    since_ns: number as u64,
                });
            }
            let mut plain = queue.clone();
            let arm = |asks_all| Standing { disk: &disk, now_ns: 1e8 + now_us as f64 * 1e3, asks_all };
            for _ in 0..places.len() {
                prop_assert_eq!(queue.pop(1_000, &arm(false)), plain.pop(1_000, &arm(true)));
            }
            prop_assert!(queue.pop(1_000, &arm(false)).is_none());
        }
    }
}
