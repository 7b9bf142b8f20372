//! Copa's default mode: aims at the rate `1 / (delta * queueing delay)`.
//!
//! Source: Arun and Balakrishnan, "Copa: practical delay-based congestion control for the Internet", NSDI 2018,
//! section 2: the queueing delay is the standing process time (the least of half a smoothed one) less the least of
//! 10 s; each reply moves the window by `v / (delta * w)` towards the aim; v doubles a round once the direction was
//! the same for three rounds, and is 1 after a turn; requests are spaced at half of `standing / w`. delta is 0.5. The
//! mode against loss-based competitors is left out: there are none here. Copa-like, not Copa: variance of the disk
//! itself looks like queueing.

use super::limit::{Limit, Round};
use super::settings::RivalSettings;
use crate::controller::{Controller, Reply, Window};
use crate::minimum::WindowedMinimum;
use crate::pacer::Pacer;
use crate::signals::averaged;

/// Periods of the least process time: what it covers is one to two of them.
const SHORTEST_PERIOD_US: u64 = 5_000_000;
const VELOCITY_MAX: f64 = 64.0;

/// Copa's window and spacing.
#[derive(Clone, Debug)]
pub struct Copa {
    delta: f64,
    limit: Limit,
    pacer: Pacer,
    round: Round,
    shortest: WindowedMinimum,
    standing: WindowedMinimum,
    smoothed_us: u32,
    velocity: f64,
    /// The window when the round began.
    limit_before: f64,
    up: bool,
    rounds_in_direction: u8,
    starting: bool,
}

impl Copa {
    /// A new stream.
    #[must_use]
    pub fn new(settings: &RivalSettings) -> Self {
        Self {
            delta: settings.copa_delta,
            limit: Limit::default(),
            pacer: Pacer::default(),
            round: Round::default(),
            shortest: WindowedMinimum::default(),
            standing: WindowedMinimum::default(),
            smoothed_us: 0,
            velocity: 1.0,
            limit_before: Limit::default().get(),
            up: true,
            rounds_in_direction: 0,
            starting: true,
        }
    }

    #[inline]
    fn observe(&mut self, reply: &Reply) {
        let process_time_us = reply.process_time_us();
        self.smoothed_us = match self.smoothed_us {
            0 => process_time_us,
            smoothed_us => averaged(smoothed_us, process_time_us, 3),
        };
        self.shortest
            .add(reply.now_us, process_time_us, SHORTEST_PERIOD_US);
        // Two periods of a quarter each are the half that the paper asks for.
        let period_us = u64::from(self.smoothed_us / 4).max(1);
        self.standing.add(reply.now_us, process_time_us, period_us);
    }

    /// Whether the rate is below its aim.
    #[inline]
    fn is_below(&self) -> bool {
        let standing_us = f64::from(self.standing.get());
        let queued_us = standing_us - f64::from(self.shortest.get());
        // rate = w / standing, aim = 1 / (delta * queued); without a queue the aim is infinite.
        queued_us <= 0.0 || self.limit.get() * self.delta * queued_us <= standing_us
    }

    fn end_round(&mut self) {
        let up = self.limit.get() > self.limit_before;
        self.limit_before = self.limit.get();
        if up != self.up {
            self.up = up;
            self.rounds_in_direction = 0;
            self.velocity = 1.0;
            return;
        }
        self.rounds_in_direction = self.rounds_in_direction.saturating_add(1);
        if self.rounds_in_direction >= 3 {
            self.velocity = (self.velocity * 2.0).min(VELOCITY_MAX);
        }
    }
}

impl Controller for Copa {
    #[inline]
    fn reserve(&mut self, now_us: u64, _bytes: u32) -> u64 {
        let gap_us = self.gap_us();
        self.pacer.reserve(now_us, gap_us.into())
    }

    #[inline]
    fn on_reply(&mut self, reply: &Reply) {
        self.observe(reply);
        let below = self.is_below();
        let limit = self.limit.get();
        if self.starting && below {
            // One more a reply doubles the window a round.
            self.limit.set(if self.limit.is_used(reply) {
                limit + 1.0
            } else {
                limit
            });
        } else {
            self.starting = false;
            let step = self.velocity / (self.delta * limit);
            self.limit
                .set(if below { limit + step } else { limit - step });
        }
        if self.round.ends(reply.sent_us, reply.now_us) {
            self.end_round();
        }
    }

    fn on_timeout(&mut self, _sent_us: u64, now_us: u64) {
        self.starting = false;
        self.velocity = 1.0;
        self.limit.set(self.limit.get() / 2.0);
        self.limit_before = self.limit.get();
        self.round.begin(now_us);
    }

    #[inline]
    fn window(&self) -> Window {
        self.limit.window()
    }

    #[inline]
    fn gap_us(&self) -> u32 {
        match self.standing.get() {
            u32::MAX => 0,
            standing_us => (f64::from(standing_us) / (2.0 * self.limit.get())) as u32,
        }
    }
}
