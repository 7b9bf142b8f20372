//! Vegas: keeps a few requests queued, estimated from process times.
//!
//! Source: Brakmo, O'Malley and Peterson, "TCP Vegas: new techniques for congestion detection and avoidance",
//! SIGCOMM 1994: once a round `queued = w * (1 - base / t)` with the shortest process time t of the round; one request
//! more below alpha = 2, one less above beta = 4; at the start doubling every other round until queued > gamma = 1.
//! From Netflix' concurrency-limits (VegasLimit): no growth while half of the window is unused, and the base is
//! measured anew after 15 to 30 windows of replies, else it would never rise. There the base becomes whatever the next
//! process time is, queue and all, and with a standing queue the window climbs from probe to probe; here the window is
//! halved for two rounds, and the base is the shortest time of the second.

use super::limit::{Limit, Round};
use super::settings::RivalSettings;
use crate::controller::{Controller, Reply, Window};
use crate::jitter::Jitter;

const GAMMA: f64 = 1.0;

/// Windows of replies between two measurements of the base, at most; half as many at least.
const PROBE_WINDOWS: u64 = 30;

const PROBE_ROUNDS: u8 = 2;

/// Vegas' window.
#[derive(Clone, Debug)]
pub struct Vegas {
    settings: RivalSettings,
    limit: Limit,
    round: Round,
    base_us: u32,
    shortest_us: u32,
    replies_to_probe: u64,
    /// Rounds of the probe that are left.
    probe_rounds: u8,
    starting: bool,
    /// Of two rounds at the start one grows, the other measures.
    grows: bool,
    jitter: Jitter,
}

impl Vegas {
    /// A new stream; the seed tells streams' probes apart.
    #[must_use]
    pub fn new(settings: &RivalSettings, seed: u64) -> Self {
        let mut vegas = Self {
            settings: *settings,
            limit: Limit::default(),
            round: Round::default(),
            base_us: u32::MAX,
            shortest_us: u32::MAX,
            replies_to_probe: 0,
            probe_rounds: 0,
            starting: true,
            grows: true,
            jitter: Jitter::new(seed),
        };
        vegas.plan_probe();
        vegas
    }

    fn plan_probe(&mut self) {
        let replies = PROBE_WINDOWS * self.limit.get() as u64;
        self.replies_to_probe = self.jitter.shortened(replies, 50);
    }

    /// The first round drains the queue, the second tells the base.
    fn end_probe_round(&mut self) {
        self.probe_rounds -= 1;
        if self.probe_rounds == 0 {
            self.base_us = self.shortest_us;
            self.plan_probe();
        }
        self.shortest_us = u32::MAX;
    }

    fn end_round(&mut self, used: bool) {
        let limit = self.limit.get();
        let queued = limit * (1.0 - f64::from(self.base_us) / f64::from(self.shortest_us));
        self.shortest_us = u32::MAX;
        if self.starting && queued > GAMMA {
            self.starting = false;
        }
        if queued > self.settings.vegas_beta {
            self.limit.set(limit - 1.0);
        } else if used && self.starting {
            self.grows = !self.grows;
            self.limit.set(if self.grows { limit * 2.0 } else { limit });
        } else if used && queued < self.settings.vegas_alpha {
            self.limit.set(limit + 1.0);
        }
    }
}

impl Controller for Vegas {
    fn reserve(&mut self, now_us: u64, _bytes: u32) -> u64 {
        now_us
    }

    #[inline]
    fn on_reply(&mut self, reply: &Reply) {
        let process_time_us = reply.process_time_us();
        self.base_us = self.base_us.min(process_time_us);
        self.shortest_us = self.shortest_us.min(process_time_us);
        self.replies_to_probe = self.replies_to_probe.saturating_sub(1);
        if !self.round.ends(reply.sent_us, reply.now_us) {
            return;
        }
        if self.probe_rounds > 0 {
            self.end_probe_round();
            return;
        }
        self.end_round(self.limit.is_used(reply));
        if self.replies_to_probe == 0 {
            self.probe_rounds = PROBE_ROUNDS;
        }
    }

    fn on_timeout(&mut self, _sent_us: u64, now_us: u64) {
        self.starting = false;
        self.limit.set(self.limit.get() - 1.0);
        self.round.begin(now_us);
    }

    #[inline]
    fn window(&self) -> Window {
        if self.probe_rounds == 0 {
            return self.limit.window();
        }
        let mut halved = self.limit;
        halved.set(halved.get() / 2.0);
        halved.window()
    }

    fn gap_us(&self) -> u32 {
        0
    }
}
