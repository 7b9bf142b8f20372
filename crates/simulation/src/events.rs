//! The event queue: what happens next.
//!
//! A 4-ary heap of 16-byte entries in one vector: instant, order of scheduling, kind and index. Entries are plain
//! values, so that scheduling allocates nothing once the vector has grown; four children share a cache line.

use std::hint::select_unpredictable;

/// Virtual time in nanoseconds since the start.
pub type Nanos = u64;

/// What happens; the index says to whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A request's paced time has come: it leaves its client.
    Leave,
    /// A request's message reaches its server.
    Arrive,
    /// A request's data has crossed the network.
    Delivered,
    /// A request's reply reaches its client.
    Replied,
    /// A request's data is sent again after a retransmission time-out.
    Retransmit,
    /// A server's storage has something to do.
    Storage,
    /// A node's outgoing link falls free.
    LinkOut,
    /// A thread goes on.
    Thread,
    /// A thread's metadata operation, paced, leaves its client.
    MetadataLeave,
    /// A thread's metadata operation reaches the metadata server.
    MetadataArrive,
    /// A thread's metadata operation is done.
    MetadataDone,
    /// The reply to a thread's metadata operation reaches its client.
    MetadataReplied,
    /// A message about a lock arrives.
    Lock,
    /// A failure begins or ends.
    Failure,
    /// A foreign request reaches a server's device.
    NoiseDisk,
    /// Foreign traffic reaches a server's link.
    NoiseNetwork,
    /// Requests that were lost are looked for.
    Timeouts,
    /// A file's turn on a stream ends.
    Turn,
}

const KINDS: [Kind; 18] = [
    Kind::Leave,
    Kind::Arrive,
    Kind::Delivered,
    Kind::Replied,
    Kind::Retransmit,
    Kind::Storage,
    Kind::LinkOut,
    Kind::Thread,
    Kind::MetadataLeave,
    Kind::MetadataArrive,
    Kind::MetadataDone,
    Kind::MetadataReplied,
    Kind::Lock,
    Kind::Failure,
    Kind::NoiseDisk,
    Kind::NoiseNetwork,
    Kind::Timeouts,
    Kind::Turn,
];

/// Bits of the index; the kind takes the rest of 32.
const INDEX_BITS: u32 = 27;

const _: () = assert!(KINDS.len() <= 1 << (32 - INDEX_BITS));

/// Events to come, by instant; of one instant in the order in which they were scheduled.
#[derive(Debug, Default)]
pub struct Events {
    /// Instant in the upper 64 bits, then the order, then kind and index.
    heap: Vec<u128>,
    order: u32,
    popped: u64,
}

impl Events {
    /// Schedule an event.
    #[inline]
    pub fn push(&mut self, at: Nanos, kind: Kind, index: u32) {
        debug_assert!(index < 1 << INDEX_BITS);
        let payload = (kind as u32) << INDEX_BITS | index;
        let entry = u128::from(at) << 64 | u128::from(self.order) << 32 | u128::from(payload);
        self.order = self.order.wrapping_add(1);
        let mut hole = self.heap.len();
        self.heap.push(entry);
        while hole > 0 {
            let parent = (hole - 1) / 4;
            if self.heap[parent] <= entry {
                break;
            }
            self.heap[hole] = self.heap[parent];
            hole = parent;
        }
        self.heap[hole] = entry;
    }

    /// Take the next event that is due by `until`.
    #[inline]
    pub fn pop(&mut self, until: Nanos) -> Option<(Nanos, Kind, u32)> {
        let top = *self.heap.first()?;
        let at = (top >> 64) as u64;
        if at > until {
            return None;
        }
        let last = self.heap.pop().unwrap_or(top);
        let length = self.heap.len();
        if length > 0 {
            self.sift_down(last, length);
        }
        self.popped += 1;
        let payload = top as u32;
        let kind = KINDS[(payload >> INDEX_BITS) as usize];
        Some((at, kind, payload & ((1 << INDEX_BITS) - 1)))
    }

    #[inline]
    fn sift_down(&mut self, entry: u128, length: usize) {
        let heap = &mut self.heap[..length];
        let mut hole = 0;
        // Which of four children is the least cannot be predicted: it is chosen without branches.
        while let Some(&[first, second, third, fourth]) = heap
            .get(4 * hole + 1..4 * hole + 5)
            .and_then(|children| children.first_chunk())
        {
            let (left, left_number) = lesser((first, 1), (second, 2));
            let (right, right_number) = lesser((third, 3), (fourth, 4));
            let (least, number) = lesser((left, left_number), (right, right_number));
            if least >= entry {
                heap[hole] = entry;
                return;
            }
            heap[hole] = least;
            hole = 4 * hole + number;
        }
        // The last children are fewer than four, and have none themselves.
        let rest = 4 * hole + 1..length;
        if let Some(least) = rest.min_by_key(|&child| heap[child])
            && heap[least] < entry
        {
            heap[hole] = heap[least];
            hole = least;
        }
        heap[hole] = entry;
    }

    /// Events taken so far.
    #[must_use]
    pub fn popped(&self) -> u64 {
        self.popped
    }
}

/// The entry that comes first, with its number; of equal ones the left, though no two entries are.
#[inline]
fn lesser(left: (u128, usize), right: (u128, usize)) -> (u128, usize) {
    let second = right.0 < left.0;
    (
        select_unpredictable(second, right.0, left.0),
        select_unpredictable(second, right.1, left.1),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_instant_and_then_as_scheduled() {
        let mut events = Events::default();
        let mut random = ascar_random::Random::of(3, &[]);
        let mut expected: Vec<(u64, u32)> =
            (0..5_000).map(|index| (random.below(500), index)).collect();
        for &(at, index) in &expected {
            events.push(at, KINDS[index as usize % KINDS.len()], index);
        }
        expected.sort_unstable();
        for &(at, index) in &expected {
            let kind = KINDS[index as usize % KINDS.len()];
            assert_eq!(events.pop(u64::MAX), Some((at, kind, index)));
        }
        assert_eq!(events.pop(u64::MAX), None);
        assert_eq!(events.popped(), 5_000);
    }

    #[test]
    fn nothing_is_taken_before_its_time() {
        let mut events = Events::default();
        events.push(10, Kind::Storage, 7);
        assert_eq!(events.pop(9), None);
        assert_eq!(events.pop(10), Some((10, Kind::Storage, 7)));
    }
}
