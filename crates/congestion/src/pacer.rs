//! The rate limit: a least gap between two requests, kept by reservation.
//!
//! A request reserves the first free place and so moves the next one: `next = max(now, next) + gap`. The gap
//! counts from the time at which the request *leaves*, not from the time at which it asked: requests of a standing
//! queue, that ask all at once, leave `gap` apart, each of them.

/// Places given out so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pacer {
    next_us: u64,
}

impl Pacer {
    /// When a request that is ready at `now_us` leaves; the one after it leaves `gap_us` later at the earliest.
    #[inline]
    pub fn reserve(&mut self, now_us: u64, gap_us: u64) -> u64 {
        let at_us = now_us.max(self.next_us);
        self.next_us = at_us.saturating_add(gap_us);
        at_us
    }

    /// Forgets all places: the next request leaves at once.
    pub fn reset(&mut self) {
        self.next_us = 0;
    }
}
