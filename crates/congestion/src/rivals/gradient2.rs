//! Gradient2: follows the ratio of long-term to present mean process time.
//!
//! Source: Netflix' concurrency-limits, Gradient2Limit and its WindowedLimit (github.com/Netflix/concurrency-limits):
//! every second, if at least 10 replies came, `g = clamp(long / short, 0.5, 1)`,
//! `limit += 0.2 * (g * limit + 4 - limit)`; `long` is a moving average of about 600 windows whose first ten are a
//! plain mean, and shrinks by a tenth while more than twice `short`; nothing changes while half of the limit is
//! unused. The limit begins at 8 and may fall to 1, as others' here; there both are 20.

use super::limit::Limit;
use super::settings::RivalSettings;
use crate::controller::{Controller, Reply, Window};

const SAMPLE_US: u64 = 1_000_000;
const REPLIES_MIN: u32 = 10;
const LONG_WINDOWS: f64 = 600.0;
const LONG_WARM_UP: u32 = 10;

/// Netflix' second gradient limit.
#[derive(Clone, Debug)]
pub struct Gradient2 {
    settings: RivalSettings,
    limit: Limit,
    sample_end_us: u64,
    process_time_sum_us: u64,
    replies: u32,
    in_flight_max: u32,
    long_us: f64,
    windows: u32,
}

impl Gradient2 {
    /// A new stream.
    #[must_use]
    pub fn new(settings: &RivalSettings) -> Self {
        Self {
            settings: *settings,
            limit: Limit::default(),
            sample_end_us: 0,
            process_time_sum_us: 0,
            replies: 0,
            in_flight_max: 0,
            long_us: 0.0,
            windows: 0,
        }
    }

    fn sample(&mut self, now_us: u64, process_time_us: u32) {
        self.process_time_sum_us += u64::from(process_time_us);
        self.replies += 1;
        if self.sample_end_us == 0 {
            self.sample_end_us = now_us + SAMPLE_US;
        }
        if now_us >= self.sample_end_us && self.replies >= REPLIES_MIN {
            self.update();
            self.sample_end_us = now_us + SAMPLE_US;
            (self.process_time_sum_us, self.replies, self.in_flight_max) = (0, 0, 0);
        }
    }

    fn update(&mut self) {
        let short_us = self.process_time_sum_us as f64 / f64::from(self.replies);
        let weight = if self.windows < LONG_WARM_UP {
            self.windows += 1;
            1.0 / f64::from(self.windows)
        } else {
            2.0 / (LONG_WINDOWS + 1.0)
        };
        self.long_us += weight * (short_us - self.long_us);
        let ratio = self.long_us / short_us;
        if ratio > 2.0 {
            self.long_us *= 0.9;
        }
        let limit = self.limit.get();
        if f64::from(self.in_flight_max) < limit / 2.0 {
            return;
        }
        let gradient = ratio.clamp(0.5, 1.0);
        let aim = gradient * limit + self.settings.gradient2_queue;
        let weight = self.settings.gradient2_smoothing;
        self.limit.set(limit + weight * (aim - limit));
    }
}

impl Controller for Gradient2 {
    fn reserve(&mut self, now_us: u64, _bytes: u32) -> u64 {
        now_us
    }

    #[inline]
    fn on_reply(&mut self, reply: &Reply) {
        self.in_flight_max = self.in_flight_max.max(reply.in_flight.requests);
        self.sample(reply.now_us, reply.process_time_us());
    }

    /// A time-out is a process time like others, only long.
    fn on_timeout(&mut self, sent_us: u64, now_us: u64) {
        let elapsed_us = now_us.saturating_sub(sent_us).max(1);
        self.sample(now_us, u32::try_from(elapsed_us).unwrap_or(u32::MAX));
    }

    #[inline]
    fn window(&self) -> Window {
        self.limit.window()
    }

    fn gap_us(&self) -> u32 {
        0
    }
}
