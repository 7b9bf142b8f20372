//! CUBIC over requests: the window grows with the cube of the time since the last congestion.
//!
//! Source: RFC 9438 (Xu, Ha, Rhee, Goel and Eggert, 2023), sections 4.1 to 4.7: `W(t) = C (t - K)^3 + W_max` with
//! `K = cbrt((W_max - w) / C)`; never slower than AIMD with the same decrease (`W_est`); `W_max` is lower where the last
//! one was not reached (fast convergence); one request more a reply before the first congestion. Storage loses no
//! requests: congestion is, as of `aimd`, a process time above a bound, or a time-out. HyStart++ is left out.

use super::limit::{Limit, Round};
use super::settings::RivalSettings;
use crate::controller::{Controller, Reply, Window};

/// CUBIC's window.
#[derive(Clone, Debug)]
pub struct Cubic {
    settings: RivalSettings,
    limit: Limit,
    /// Since when congestion would be news.
    calm: Round,
    starting: bool,
    /// The window at which congestion came.
    limit_max: f64,
    /// When growth began anew; `None` until the next reply.
    epoch_us: Option<u64>,
    /// Seconds from there to the window at which congestion came.
    until_max_s: f64,
    /// The window that AIMD would have.
    estimate: f64,
}

impl Cubic {
    /// A new stream.
    #[must_use]
    pub fn new(settings: &RivalSettings) -> Self {
        Self {
            settings: *settings,
            limit: Limit::default(),
            calm: Round::default(),
            starting: true,
            limit_max: 0.0,
            epoch_us: None,
            until_max_s: 0.0,
            estimate: 0.0,
        }
    }

    /// Shrinks once a round: what was sent before the last decrease tells nothing of its effect.
    fn decrease(&mut self, sent_us: u64, now_us: u64) {
        if !self.calm.ends(sent_us, now_us) {
            return;
        }
        let (limit, factor) = (self.limit.get(), self.settings.cubic_decrease);
        self.starting = false;
        self.limit_max = if limit < self.limit_max {
            limit * (1.0 + factor) / 2.0
        } else {
            limit
        };
        self.limit.set(limit * factor);
        self.epoch_us = None;
    }

    fn grow(&mut self, now_us: u64) {
        let (limit, growth) = (self.limit.get(), self.settings.cubic_growth);
        if self.starting {
            self.limit.set(limit + 1.0);
            return;
        }
        let epoch_us = *self.epoch_us.get_or_insert_with(|| {
            self.limit_max = self.limit_max.max(limit);
            self.until_max_s = ((self.limit_max - limit) / growth).cbrt();
            self.estimate = limit;
            now_us
        });
        let since_s = now_us.saturating_sub(epoch_us) as f64 / 1e6 - self.until_max_s;
        let aim = growth * since_s.powi(3) + self.limit_max;
        // RFC 9438, section 4.3: as fast as AIMD, which grows by alpha a round.
        let factor = self.settings.cubic_decrease;
        self.estimate += 3.0 * (1.0 - factor) / (1.0 + factor) / limit;
        // Section 4.2: by (aim - w) / w a reply, and by half of the window a round at most.
        let step = (aim.min(1.5 * limit) - limit).max(0.0) / limit;
        self.limit.set((limit + step).max(self.estimate));
    }
}

impl Controller for Cubic {
    fn reserve(&mut self, now_us: u64, _bytes: u32) -> u64 {
        now_us
    }

    #[inline]
    fn on_reply(&mut self, reply: &Reply) {
        if reply.process_time_us() > self.settings.latency_us_max {
            self.decrease(reply.sent_us, reply.now_us);
        } else if self.limit.is_used(reply) {
            self.grow(reply.now_us);
        } else {
            self.epoch_us = None; // section 5.8: time in which the application was the limit does not count
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
