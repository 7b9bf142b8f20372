//! Additive increase, multiplicative decrease.
//!
//! Source: Chiu and Jain, "Analysis of the increase and decrease algorithms for congestion avoidance in computer
//! networks", Computer Networks and ISDN Systems 17, 1989; the form with one request a round and half the window at
//! congestion is Jacobson's, "Congestion avoidance and control", SIGCOMM 1988. Storage loses no requests: congestion
//! is a time-out or, as in Netflix' AIMDLimit, a process time above a bound; there 5 s, here a parameter.

use super::limit::{Limit, Round};
use super::settings::RivalSettings;
use crate::controller::{Controller, Reply, Window};

/// One request more a round, half the window at congestion.
#[derive(Clone, Debug)]
pub struct Aimd {
    limit: Limit,
    /// Since when congestion would be news.
    calm: Round,
    settings: RivalSettings,
}

impl Aimd {
    /// A new stream.
    #[must_use]
    pub fn new(settings: &RivalSettings) -> Self {
        Self {
            limit: Limit::default(),
            calm: Round::default(),
            settings: *settings,
        }
    }

    /// Shrinks once a round: what was sent before the last decrease tells nothing of its effect.
    fn decrease(&mut self, sent_us: u64, now_us: u64) {
        if self.calm.ends(sent_us, now_us) {
            self.limit
                .set(self.limit.get() * self.settings.aimd_decrease);
        }
    }
}

impl Controller for Aimd {
    fn reserve(&mut self, now_us: u64, _bytes: u32) -> u64 {
        now_us
    }

    #[inline]
    fn on_reply(&mut self, reply: &Reply) {
        if reply.process_time_us() > self.settings.latency_us_max {
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
