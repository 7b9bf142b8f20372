//! What rivals share: a limit in requests that is not a whole number, and rounds of one process time.

use crate::controller::{Reply, Window};
use crate::window::{WINDOW_X100_DEFAULT, WINDOW_X100_MAX, WINDOW_X100_MIN};

/// Requests in flight at most, between 1 and 256 like every controller's, so that comparisons are fair.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Limit(f64);

impl Default for Limit {
    fn default() -> Self {
        Self(f64::from(WINDOW_X100_DEFAULT) / 100.0)
    }
}

impl Limit {
    #[inline]
    pub(super) fn get(self) -> f64 {
        self.0
    }

    #[inline]
    pub(super) fn set(&mut self, requests: f64) {
        let least = f64::from(WINDOW_X100_MIN) / 100.0;
        let most = f64::from(WINDOW_X100_MAX) / 100.0;
        self.0 = requests.clamp(least, most);
    }

    #[inline]
    pub(super) fn window(self) -> Window {
        Window::of_requests_x100((self.0 * 100.0) as u32)
    }

    /// Whether at least half of it was in use just before a reply: else the application is what limits.
    #[inline]
    pub(super) fn is_used(self, reply: &Reply) -> bool {
        f64::from(reply.in_flight.requests) * 2.0 >= self.0
    }
}

/// Rounds: each lasts until a request sent in it is replied to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Round {
    begun_us: u64,
}

impl Round {
    /// Whether the answer to a request sent at `sent_us` ends the round; if so the next begins.
    #[inline]
    pub(super) fn ends(&mut self, sent_us: u64, now_us: u64) -> bool {
        let ends = sent_us >= self.begun_us;
        if ends {
            self.begun_us = now_us;
        }
        ends
    }

    /// Begins a new round.
    pub(super) fn begin(&mut self, now_us: u64) {
        self.begun_us = now_us;
    }
}
