//! Additive increase, multiplicative decrease.
//!
//! Source: Chiu and Jain, "Analysis of the increase and decrease algorithms for congestion avoidance in computer
//! networks", Computer Networks and ISDN Systems 17, 1989; the form with one request a round and half the window at
//! congestion is Jacobson's, "Congestion avoidance and control", SIGCOMM 1988. Storage loses no requests: congestion
//! is a time-out or, as in Netflix' AIMDLimit, a process time above a bound; there 5 s, here a parameter.

use super::limit::{Limit, Round};
use crate::controller::{Controller, Reply, Window};

/// Process times above this are congestion, by default: 200 ms.
const LATENCY_US_MAX: u32 = 200_000;

/// The window's factor at congestion.
const DECREASE: f64 = 0.5;

/// One request more a round, half the window at congestion.
#[derive(Clone, Debug)]
pub struct Aimd {
    limit: Limit,
    /// Since when congestion would be news.
    calm: Round,
    latency_us_max: u32,
}

impl Default for Aimd {
    fn default() -> Self {
        Self::new(LATENCY_US_MAX)
    }
}

impl Aimd {
    /// A controller that takes process times above `latency_us_max` for congestion.
    #[must_use]
    pub fn new(latency_us_max: u32) -> Self {
        Self {
            limit: Limit::default(),
            calm: Round::default(),
            latency_us_max,
        }
    }

    /// Shrinks once a round: what was sent before the last decrease tells nothing of its effect.
    fn decrease(&mut self, sent_us: u64, now_us: u64) {
        if self.calm.ends(sent_us, now_us) {
            self.limit.set(self.limit.get() * DECREASE);
        }
    }
}

impl Controller for Aimd {
    fn reserve(&mut self, now_us: u64, _bytes: u32) -> u64 {
        now_us
    }

    #[inline]
    fn on_reply(&mut self, reply: &Reply) {
        if reply.process_time_us() > self.latency_us_max {
            self.decrease(reply.sent_us, reply.now_us);
        } else if self.limit.is_used(reply) {
            self.limit.set(self.limit.get() + 1.0 / self.limit.get());
        }
    }

    fn on_timeout(&mut self, sent_us: u64, now_us: u64) {
        self.decrease(sent_us, now_us);
    }

    #[inline]
    fn window(&self) -> Window {
        self.limit.window()
    }

    fn gap_us(&self) -> u32 {
        0
    }
}
