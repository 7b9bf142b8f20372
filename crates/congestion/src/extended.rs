//! The original controller and what it lacks (see [`Extensions`]): the same rules, better kept signals.

use std::sync::Arc;

use crate::bounds::Bounds;
use crate::controller::{Controller, InFlight, Reply, Window};
use crate::extensions::{Extensions, Probe, Unit};
use crate::fault::Result;
use crate::jitter::Jitter;
use crate::minimum::WindowedMinimum;
use crate::pacer::Pacer;
use crate::rule_set::{Deployment, RuleSet};
use crate::signals::{SILENCE_MAX_US, Signals, WEIGHT_SHIFT, averaged, ratio100};
use crate::window::{WINDOW_X100_DEFAULT, WINDOW_X100_MAX, WINDOW_X100_MIN, stepped};

/// The size that process times are normalised to.
const SIZE_NORMAL_BYTES: u64 = 1 << 20;

/// All that is kept a stream.
#[derive(Clone, Copy, Debug)]
pub struct ExtendedState {
    last_ack_us: u64,
    last_sent_us: u64,
    pacer: Pacer,
    change_us: u64,
    /// When the next probe begins; while one runs, when it began.
    probe_us: u64,
    bounds: Bounds,
    shortest: WindowedMinimum,
    ack_us: u32,
    send_us: u32,
    slow_ack_us: u32,
    /// The last process time, normalised.
    process_time_us: u32,
    /// Moving averages, for the window's floor.
    mean_process_time_us: u32,
    mean_bytes: u32,
    tau_us: u32,
    window_x100: u32,
    timeouts_per_1000: u16,
    writes_per_1000: u16,
    sequential_per_1000: u16,
    probe_replies_left: u16,
    gaps_known: bool,
    /// Whether the window was full since its last change.
    filled: bool,
    jitter: Jitter,
}

const _: () = assert!(size_of::<ExtendedState>() <= 128);

impl ExtendedState {
    /// A stream without replies yet; the seed tells streams' probes apart.
    #[must_use]
    pub fn new(window_x100: u32, bounds: Bounds, seed: u64) -> Self {
        Self {
            last_ack_us: 0,
            last_sent_us: 0,
            pacer: Pacer::default(),
            change_us: 0,
            probe_us: 0,
            bounds,
            shortest: WindowedMinimum::default(),
            ack_us: 0,
            send_us: 0,
            slow_ack_us: 0,
            process_time_us: 0,
            mean_process_time_us: 0,
            mean_bytes: 0,
            tau_us: 0,
            window_x100: window_x100.clamp(WINDOW_X100_MIN, WINDOW_X100_MAX),
            timeouts_per_1000: 0,
            writes_per_1000: 0,
            sequential_per_1000: 0,
            probe_replies_left: 0,
            gaps_known: false,
            filled: false,
            jitter: Jitter::new(seed),
        }
    }

    /// What loading a rule set does: forgets all signals and tau, keeps window, bounds and the order of probes.
    pub fn reset(&mut self) {
        let jitter = self.jitter;
        *self = Self::new(self.window_x100, self.bounds, 0);
        self.jitter = jitter;
    }

    /// The present congestion state.
    #[must_use]
    #[inline]
    pub fn signals(&self) -> Signals {
        Signals {
            ack_us: self.ack_us,
            send_us: self.send_us,
            ratio100: ratio100(self.process_time_us, self.shortest.get()),
            slow_ack_us: self.slow_ack_us,
            timeouts_per_1000: self.timeouts_per_1000.into(),
            writes_per_1000: self.writes_per_1000.into(),
            sequential_per_1000: self.sequential_per_1000.into(),
            request_kib: self.mean_bytes.div_ceil(1 << 10),
        }
    }

    /// Takes in a reply; the rule that held, and where. No rule is followed at the first reply, and while probing.
    #[inline]
    pub fn on_reply(
        &mut self,
        rules: &RuleSet,
        options: &Extensions,
        reply: &Reply,
    ) -> Option<(usize, Signals)> {
        let probes = options
            .probe
            .as_ref()
            .is_some_and(|probe| self.probes(probe, reply));
        let first = self.mean_bytes == 0;
        self.update_gaps(options, reply, probes);
        self.update_process_time(options, reply);
        self.timeouts_per_1000 -= self.timeouts_per_1000.div_ceil(8);
        for (share, is_one) in [
            (&mut self.writes_per_1000, reply.write),
            (&mut self.sequential_per_1000, reply.sequential),
        ] {
            *share = if first {
                1000 * u16::from(is_one)
            } else {
                shared(*share, is_one)
            };
        }
        if probes || !self.gaps_known {
            return None;
        }
        let signals = self.signals();
        let rule = rules.lookup(&signals);
        let action = &rules.rules()[rule].action;
        self.tau_us = action.tau_us;
        self.filled |= !self
            .window(options.unit)
            .admits(reply.in_flight, reply.bytes);
        if reply.now_us >= self.change_us {
            let next = stepped(self.window_x100, action);
            if next < self.window_x100 || self.filled || !options.gate_growth {
                self.window_x100 = next;
            }
            self.changed(reply.now_us, rules.update_gap_us());
        }
        Some((rule, signals))
    }

    /// Takes in a time-out.
    pub fn on_timeout(&mut self, rules: &RuleSet, options: &Extensions, now_us: u64) {
        self.timeouts_per_1000 += (1000 - self.timeouts_per_1000) / 8;
        if now_us >= self.change_us && options.timeout_m100 < 100 {
            let next = self.window_x100 * u32::from(options.timeout_m100) / 100;
            self.window_x100 = next.max(WINDOW_X100_MIN);
            self.changed(now_us, rules.update_gap_us());
        }
    }

    /// What may be in flight: the rules' window, not below what the least throughput needs; less while probing.
    #[inline]
    fn window(&self, unit: Unit) -> Window {
        self.window_of(self.window_x100, unit)
    }

    #[inline]
    fn window_of(&self, window_x100: u32, unit: Unit) -> Window {
        let (unit_bytes, mean_bytes) = match unit {
            Unit::Requests => (1, self.mean_bytes),
            Unit::Bytes(unit_bytes) => (unit_bytes, unit_bytes),
        };
        let floor_x100 = self
            .bounds
            .window_x100_min(self.mean_process_time_us, mean_bytes);
        let window_x100 = window_x100.max(floor_x100);
        match unit {
            Unit::Requests => Window::of_requests_x100(window_x100),
            Unit::Bytes(_) => {
                Window::of_bytes(u64::from(window_x100) * u64::from(unit_bytes) / 100)
            }
        }
    }

    fn changed(&mut self, now_us: u64, update_gap_us: u64) {
        self.change_us = now_us.saturating_add(update_gap_us);
        self.filled = false;
    }

    /// While probing, gaps are the probe's own doing and do not count.
    #[inline]
    fn update_gaps(&mut self, options: &Extensions, reply: &Reply, probes: bool) {
        let ack_gap_us = reply.now_us.saturating_sub(self.last_ack_us);
        let send_gap_us = reply.sent_us.abs_diff(self.last_sent_us);
        let first = self.mean_bytes == 0;
        (self.last_ack_us, self.last_sent_us) = (reply.now_us, reply.sent_us);
        if first || ack_gap_us > SILENCE_MAX_US {
            self.gaps_known = false;
            return;
        }
        if probes {
            return;
        }
        let ack_gap_us = ack_gap_us as u32;
        let send_gap_us = send_gap_us.min(SILENCE_MAX_US) as u32;
        if !self.gaps_known {
            (self.ack_us, self.send_us, self.slow_ack_us) = (ack_gap_us, send_gap_us, ack_gap_us);
            self.gaps_known = true;
            return;
        }
        self.ack_us = averaged(self.ack_us, ack_gap_us, WEIGHT_SHIFT);
        self.send_us = averaged(self.send_us, send_gap_us, WEIGHT_SHIFT);
        let shift = u32::from(options.slow_weight_shift);
        self.slow_ack_us = averaged(self.slow_ack_us, ack_gap_us, shift);
    }

    #[inline]
    fn update_process_time(&mut self, options: &Extensions, reply: &Reply) {
        let elapsed_us = reply.process_time_us();
        self.process_time_us = match options.size_fixed_bytes {
            None => elapsed_us,
            Some(fixed) => normalised(elapsed_us, fixed.into(), reply.bytes.into()),
        };
        let period_us = options.minimum_period_us.unwrap_or(u64::MAX);
        self.shortest
            .add(reply.now_us, self.process_time_us, period_us);
        if self.mean_bytes == 0 {
            self.mean_process_time_us = elapsed_us;
            self.mean_bytes = reply.bytes.max(1);
        } else {
            self.mean_process_time_us =
                averaged(self.mean_process_time_us, elapsed_us, WEIGHT_SHIFT);
            self.mean_bytes = averaged(self.mean_bytes, reply.bytes, WEIGHT_SHIFT).max(1);
        }
    }

    /// Begins, goes on with, or ends a probe; whether this reply is one's.
    #[inline]
    fn probes(&mut self, probe: &Probe, reply: &Reply) -> bool {
        if self.probe_replies_left > 0 {
            // Only what was sent since the probe began found a short queue.
            if reply.sent_us >= self.probe_us {
                self.probe_replies_left -= 1;
            }
            if self.probe_replies_left == 0 {
                self.plan_probe(probe, reply.now_us);
            }
            return true;
        }
        if self.probe_us == 0 {
            self.plan_probe(probe, reply.now_us);
            return false;
        }
        if reply.now_us < self.probe_us {
            return false;
        }
        self.probe_us = reply.now_us;
        self.probe_replies_left = probe.replies;
        true
    }

    fn plan_probe(&mut self, probe: &Probe, now_us: u64) {
        let wait_us = self
            .jitter
            .shortened(probe.interval_us, PROBE_LEAST_PERCENT);
        self.probe_us = now_us.saturating_add(wait_us);
    }
}

/// The shortest interval between probes, of the one set.
const PROBE_LEAST_PERCENT: u64 = 80;

/// A moving average of how many of a thousand are of a kind, with one more.
#[inline]
fn shared(per_1000: u16, is_one: bool) -> u16 {
    per_1000 - per_1000.div_ceil(8) + 125 * u16::from(is_one)
}

/// The process time that a request of [`SIZE_NORMAL_BYTES`] would have had.
#[inline]
fn normalised(elapsed_us: u32, fixed: u64, bytes: u64) -> u32 {
    let normal =
        u64::from(elapsed_us).saturating_mul(fixed + SIZE_NORMAL_BYTES) / (fixed + bytes).max(1);
    normal.clamp(1, u64::from(u32::MAX - 1)) as u32
}

/// The extended controller over a shared rule set.
#[derive(Clone, Debug)]
pub struct Extended {
    state: ExtendedState,
    deployment: Arc<Deployment>,
    options: Arc<Extensions>,
}

impl Extended {
    /// A new stream with a window of 8; refuses options out of range.
    pub fn new(deployment: Arc<Deployment>, options: Arc<Extensions>, seed: u64) -> Result<Self> {
        options.check()?;
        Ok(Self {
            state: ExtendedState::new(WINDOW_X100_DEFAULT, Bounds::NONE, seed),
            deployment,
            options,
        })
    }

    /// Sets another window, in hundredths of requests or of pieces.
    #[must_use]
    pub fn with_window(mut self, window_x100: u32) -> Self {
        self.state.window_x100 = window_x100.clamp(WINDOW_X100_MIN, WINDOW_X100_MAX);
        self
    }

    /// Sets the stream's bounds.
    #[must_use]
    pub fn with_bounds(mut self, bounds: Bounds) -> Self {
        self.state.bounds = bounds;
        self
    }

    /// Puts other rules in force and forgets what was observed; window and bounds stay.
    pub fn load(&mut self, deployment: Arc<Deployment>) {
        self.deployment = deployment;
        self.state.reset();
    }

    /// The rules in force.
    #[must_use]
    pub fn deployment(&self) -> &Arc<Deployment> {
        &self.deployment
    }

    /// Whether the window is small at present to measure the shortest process time.
    #[must_use]
    pub fn is_probing(&self) -> bool {
        self.state.probe_replies_left > 0
    }
}

impl Controller for Extended {
    #[inline]
    fn reserve(&mut self, now_us: u64, bytes: u32) -> u64 {
        let tau_us = u64::from(self.state.tau_us);
        let gap_us = match self.options.unit {
            Unit::Requests => tau_us,
            Unit::Bytes(unit_bytes) => tau_us * u64::from(bytes) / u64::from(unit_bytes),
        };
        let gap_us = self.state.bounds.gap_us(gap_us, bytes);
        self.state.pacer.reserve(now_us, gap_us)
    }

    #[inline]
    fn on_reply(&mut self, reply: &Reply) {
        let matched = self
            .state
            .on_reply(&self.deployment.rules, &self.options, reply);
        if let Some((rule, signals)) = matched {
            self.deployment.usage.record(rule, &signals);
        }
    }

    fn on_timeout(&mut self, _sent_us: u64, now_us: u64) {
        self.state
            .on_timeout(&self.deployment.rules, &self.options, now_us);
    }

    #[inline]
    fn window(&self) -> Window {
        match &self.options.probe {
            Some(probe) if self.is_probing() => {
                let window_x100 = self.state.window_x100.min(probe.window_x100);
                self.state.window_of(window_x100, self.options.unit)
            }
            _ => self.state.window(self.options.unit),
        }
    }

    #[inline]
    fn gap_us(&self) -> u32 {
        self.state.tau_us
    }

    fn signals(&self) -> Option<Signals> {
        Some(self.state.signals())
    }

    #[inline]
    fn admits(&self, in_flight: InFlight, bytes: u32) -> bool {
        self.window().admits(in_flight, bytes)
    }
}
