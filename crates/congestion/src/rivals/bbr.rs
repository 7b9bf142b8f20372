//! BBR over requests: paces at the greatest rate of late, with a window of twice what the path holds.
//!
//! Sources: Cardwell, Cheng, Gunn, Yeganeh and Jacobson, "BBR: congestion-based congestion control", ACM Queue 14(5),
//! 2016 (the first version); draft-ietf-ccwg-bbr (Cardwell, Swett and Beshay), sections 4.3 and 5 (the third). The rate is
//! the most of ten rounds, the process time the least of 10 s, and every 10 s four requests in flight for a round of
//! 200 ms at least measure it. At the start the rate doubles a round until it grows by less than a quarter in three; then the
//! queue is drained. From then on the pace is 1.25, 0.75 and six times 1 of the rate, for a process time each.
//!
//! BBR-like, not BBR: a delivery rate is that of a round, not that of a request. The third version has a ceiling, too:
//! congestion is, as of `aimd`, a process time above a bound or a time-out, and lowers it to 0.7 of the window; a round
//! of probing without any lifts it by one request, then two, then four; it drains at 0.9 of the rate.

use super::limit::{Limit, Round};
use super::settings::RivalSettings;
use crate::controller::{Controller, Reply, Window};
use crate::jitter::Jitter;
use crate::minimum::WindowedMinimum;
use crate::pacer::Pacer;

/// 2 / ln 2: the rate doubles a round.
const STARTUP_GAIN: f64 = 2.885;
const RATES: usize = 10;
/// Periods of the least process time: what it covers is one to two of them.
const SHORTEST_PERIOD_US: u64 = 5_000_000;
const PROBE_INTERVAL_US: u64 = 10_000_000;
const PROBE_US: u64 = 200_000;
const PROBE_WINDOW: f64 = 4.0;
const CYCLE: u8 = 8;
const CEILING_FACTOR: f64 = 0.7;

/// What it does at present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The rate grows.
    Startup,
    /// The queue of the start is drained.
    Drain,
    /// The pace cycles around the rate; its place in the cycle.
    Cycle(u8),
    /// The shortest process time is measured.
    Probe,
}

/// BBR's rate and window.
#[derive(Clone, Debug)]
pub struct Bbr {
    settings: RivalSettings,
    third: bool,
    limit: Limit,
    pacer: Pacer,
    round: Round,
    jitter: Jitter,
    phase: Phase,
    phase_begun_us: u64,
    shortest: WindowedMinimum,
    probe_due_us: u64,
    /// Requests a microsecond, of the latest rounds.
    rates: [f64; RATES],
    rounds: usize,
    round_begun_us: u64,
    round_replies: u32,
    /// The rate when it last grew by a quarter, and rounds since then.
    full_rate: f64,
    full_rounds: u8,
    /// Of the third version: requests in flight at most, what lifts that next, whether this round had congestion.
    ceiling: f64,
    lift: f64,
    congested: bool,
}

impl Bbr {
    /// A new stream, of the third version or of the first; the seed tells streams' cycles apart.
    #[must_use]
    pub fn new(settings: &RivalSettings, third: bool, seed: u64) -> Self {
        Self {
            settings: *settings,
            third,
            limit: Limit::default(),
            pacer: Pacer::default(),
            round: Round::default(),
            jitter: Jitter::new(seed),
            phase: Phase::Startup,
            phase_begun_us: 0,
            shortest: WindowedMinimum::default(),
            probe_due_us: 0,
            rates: [0.0; RATES],
            rounds: 0,
            round_begun_us: 0,
            round_replies: 0,
            full_rate: 0.0,
            full_rounds: 0,
            ceiling: f64::INFINITY,
            lift: 1.0,
            congested: false,
        }
    }

    fn rate(&self) -> f64 {
        self.rates.iter().copied().fold(0.0, f64::max)
    }

    /// Requests that the path holds without a queue.
    fn held(&self) -> f64 {
        match self.shortest.get() {
            u32::MAX => Limit::default().get(),
            shortest_us => self.rate() * f64::from(shortest_us),
        }
    }

    fn pacing_gain(&self) -> f64 {
        match self.phase {
            Phase::Startup => STARTUP_GAIN,
            Phase::Drain => 1.0 / STARTUP_GAIN,
            Phase::Cycle(0) => self.settings.bbr_probe_gain,
            Phase::Cycle(1) if self.third => 0.9,
            Phase::Cycle(1) => 2.0 - self.settings.bbr_probe_gain,
            Phase::Cycle(_) | Phase::Probe => 1.0,
        }
    }

    fn enter(&mut self, phase: Phase, now_us: u64) {
        self.phase = phase;
        self.phase_begun_us = now_us;
    }

    /// Any place of the cycle but the one that drains: streams do not probe all at once.
    fn enter_cycle(&mut self, now_us: u64) {
        let at = self.jitter.shortened(u64::from(CYCLE) - 1, 0) as u8;
        self.enter(Phase::Cycle(if at == 1 { 0 } else { at }), now_us);
        self.probe_due_us = now_us + PROBE_INTERVAL_US;
    }

    fn end_round(&mut self, reply: &Reply) {
        let elapsed_us = reply.now_us.saturating_sub(self.round_begun_us).max(1);
        let rate = f64::from(self.round_replies) / elapsed_us as f64;
        // While it drains, and measures the process time, it sends little on purpose: that tells nothing of the rate.
        let sends = !matches!(self.phase, Phase::Drain | Phase::Probe);
        let tells = sends && self.limit.is_used(reply);
        if self.round_begun_us > 0 && (tells || rate > self.rate()) {
            self.rates[self.rounds % RATES] = rate;
            self.rounds += 1;
        }
        (self.round_begun_us, self.round_replies) = (reply.now_us, 0);
        if self.phase == Phase::Startup {
            self.look_whether_full(reply.now_us);
        }
        if self.third && self.phase == Phase::Cycle(0) && !self.congested {
            self.ceiling += self.lift;
            self.lift *= 2.0;
        }
        self.congested = false;
    }

    fn look_whether_full(&mut self, now_us: u64) {
        let rate = self.rate();
        if rate >= 1.25 * self.full_rate {
            (self.full_rate, self.full_rounds) = (rate, 0);
            return;
        }
        self.full_rounds += 1;
        if self.full_rounds >= 3 || (self.third && self.congested) {
            self.enter(Phase::Drain, now_us);
        }
    }

    fn go_on(&mut self, reply: &Reply) {
        let now_us = reply.now_us;
        let elapsed_us = now_us.saturating_sub(self.phase_begun_us);
        let shortest_us = u64::from(self.shortest.get());
        let drained = f64::from(reply.in_flight.requests) <= self.held().max(1.0);
        match self.phase {
            Phase::Startup => {}
            Phase::Drain => {
                if drained {
                    self.enter_cycle(now_us);
                }
            }
            Phase::Cycle(_) if now_us >= self.probe_due_us => self.enter(Phase::Probe, now_us),
            Phase::Cycle(at) => {
                if elapsed_us >= shortest_us || (at == 1 && drained) {
                    self.enter(Phase::Cycle((at + 1) % CYCLE), now_us);
                    self.lift = 1.0;
                }
            }
            Phase::Probe => {
                if elapsed_us >= PROBE_US.max(shortest_us) {
                    self.enter_cycle(now_us);
                }
            }
        }
    }

    fn set_limit(&mut self) {
        let gain = match self.phase {
            Phase::Startup => STARTUP_GAIN,
            // A request is in flight from when it takes its place, before it leaves.
            Phase::Drain => 1.0,
            Phase::Cycle(_) | Phase::Probe => self.settings.bbr_window_gain,
        };
        let aim = gain * self.held();
        let aim = match self.phase {
            Phase::Probe => aim.min(PROBE_WINDOW),
            Phase::Startup => aim.max(self.limit.get()),
            Phase::Drain | Phase::Cycle(_) => aim,
        };
        self.limit.set(aim.min(self.ceiling));
    }

    fn congestion(&mut self) {
        if self.third && !self.congested {
            self.congested = true;
            self.ceiling = (CEILING_FACTOR * self.limit.get()).max(1.0);
            self.lift = 1.0;
        }
    }
}

impl Controller for Bbr {
    #[inline]
    fn reserve(&mut self, now_us: u64, _bytes: u32) -> u64 {
        let gap_us = self.gap_us();
        self.pacer.reserve(now_us, gap_us.into())
    }

    #[inline]
    fn on_reply(&mut self, reply: &Reply) {
        let process_time_us = reply.process_time_us();
        self.shortest
            .add(reply.now_us, process_time_us, SHORTEST_PERIOD_US);
        self.round_replies = self.round_replies.saturating_add(1);
        if process_time_us > self.settings.latency_us_max {
            self.congestion();
        }
        if self.round.ends(reply.sent_us, reply.now_us) {
            self.end_round(reply);
        }
        self.go_on(reply);
        self.set_limit();
    }

    fn on_timeout(&mut self, _sent_us: u64, now_us: u64) {
        self.congestion();
        self.set_limit();
        self.round.begin(now_us);
    }

    #[inline]
    fn window(&self) -> Window {
        self.limit.window()
    }

    #[inline]
    fn gap_us(&self) -> u32 {
        let rate = self.pacing_gain() * self.rate();
        if rate > 0.0 {
            (1.0 / rate).min(1e9) as u32
        } else {
            0
        }
    }
}
