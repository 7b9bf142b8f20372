//! Control of streams: which controller, with what bounds.

use ascar_congestion::RivalSettings;
use serde::{Deserialize, Serialize};

use super::describe::{section, words};

words! {
    /// What decides a stream's window and pace.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Controller {
        /// The window and the gap stay as they are set, in the scenario or from outside.
        Fixed,
        /// A rule set (ASCAR's traffic controller).
        Rules,
        /// Additive increase, multiplicative decrease.
        Aimd,
        /// CUBIC.
        Cubic,
        /// BBR, the first version.
        Bbr,
        /// BBR, the third version.
        Bbr3,
        /// Vegas.
        Vegas,
        /// Netflix's Gradient2.
        Gradient2,
        /// A gradient controller as Envoy's.
        EnvoyGradient,
        /// A delay controller as Copa.
        Copa,
        /// IOPathTune's heuristic.
        IoPathTune,
    }
}

section! {
    /// How the streams of a group of clients are controlled.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct Control {
        /// The controller.
        pub controller: Controller,
        /// Window at the start, in requests (Lustre's max_rpcs_in_flight).
        pub window: f64,
        /// Smallest window, in requests.
        pub window_min: f64,
        /// Largest window, in requests.
        pub window_max: f64,
        /// Gap between requests at the start.
        pub tau_us: f64,
        /// Text of a rule set, for the controller `rules`.
        pub rules: Option<String>,
        /// Settings of the controllers that need no rules.
        pub rivals: RivalControl,
        /// Whether rules are followed as the original did: fixed point, all-time minimum. Rules that name further
        /// indicators never are.
        pub faithful: bool,
        /// What controllers do beyond the original where rules are not followed as it did.
        pub extensions: RuleExtensions,
        /// Throughput that rules must leave to a stream: no gap is longer, and no window smaller.
        pub least_mb_per_s: f64,
        /// Throughput that a stream under rules may have at most; `None`: any.
        pub most_mb_per_s: Option<f64>,
        /// Files of a stream that may have requests in flight at once, in turns; 0: any number.
        pub active_files: u32,
        /// Time that a file keeps its turn while others wait.
        pub turn_ms: f64,
        /// A file that asks for nothing for this long gives its turn away.
        pub turn_idle_ms: f64,
        /// A stream without a reply for this long since its oldest request counts a time-out and sends it again.
        pub timeout_s: f64,
    }
}

section! {
    /// Settings of the controllers that need no rules; the defaults are those of their sources.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct RivalControl {
        /// A request that takes longer is congestion to `aimd`, `cubic` and `bbr3`.
        pub latency_ms_max: f64,
        /// AIMD's factor of the window at congestion.
        pub aimd_decrease: f64,
        /// CUBIC's factor of the window at congestion.
        pub cubic_decrease: f64,
        /// CUBIC's growth, in requests a cubic second.
        pub cubic_growth: f64,
        /// Requests queued below which Vegas grows.
        pub vegas_alpha: f64,
        /// Requests queued above which Vegas shrinks.
        pub vegas_beta: f64,
        /// Copa's delta: the queue that it aims at is 1 / delta requests.
        pub copa_delta: f64,
        /// Requests that Gradient2 lets queue.
        pub gradient2_queue: f64,
        /// Weight of Gradient2's new limit.
        pub gradient2_smoothing: f64,
        /// BBR's window over its estimate of what the path holds.
        pub bbr_window_gain: f64,
        /// The factor of BBR's pace while it probes for more.
        pub bbr_probe_gain: f64,
    }
}

impl Default for RivalControl {
    fn default() -> RivalControl {
        let own = RivalSettings::default();
        RivalControl {
            latency_ms_max: f64::from(own.latency_us_max) / 1e3,
            aimd_decrease: own.aimd_decrease,
            cubic_decrease: own.cubic_decrease,
            cubic_growth: own.cubic_growth,
            vegas_alpha: own.vegas_alpha,
            vegas_beta: own.vegas_beta,
            copa_delta: own.copa_delta,
            gradient2_queue: own.gradient2_queue,
            gradient2_smoothing: own.gradient2_smoothing,
            bbr_window_gain: own.bbr_window_gain,
            bbr_probe_gain: own.bbr_probe_gain,
        }
    }
}

impl RivalControl {
    /// As the controllers take them.
    pub fn settings(&self) -> RivalSettings {
        RivalSettings {
            latency_us_max: (self.latency_ms_max * 1e3).round() as u32,
            aimd_decrease: self.aimd_decrease,
            cubic_decrease: self.cubic_decrease,
            cubic_growth: self.cubic_growth,
            vegas_alpha: self.vegas_alpha,
            vegas_beta: self.vegas_beta,
            copa_delta: self.copa_delta,
            gradient2_queue: self.gradient2_queue,
            gradient2_smoothing: self.gradient2_smoothing,
            bbr_window_gain: self.bbr_window_gain,
            bbr_probe_gain: self.bbr_probe_gain,
        }
    }
}

section! {
    /// What controllers do beyond the original.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct RuleExtensions {
        /// Window and gap count pieces of this size; 0: requests.
        pub piece_kib: u32,
        /// The shortest process time is of so long at least, twice as long at most; 0: of all time.
        pub minimum_period_s: f64,
        /// Time between two probes for the shortest process time; 0: no probes.
        pub probe_interval_s: f64,
        /// The window while probing, in requests.
        pub probe_window: f64,
        /// Replies that end a probe.
        pub probe_replies: u16,
        /// Process times are compared as of one size: its transfer takes as long as a request costs whatever its
        /// size; 0: as they are.
        pub fixed_cost_kib: u32,
        /// A gap counts for 1 / 2^this in the slow average.
        pub slow_weight_shift: u8,
        /// The window grows only if it was full since its last change.
        pub gate_growth: bool,
        /// A time-out multiplies the window by this; 1: no.
        pub timeout_factor: f64,
    }
}

impl Default for RuleExtensions {
    fn default() -> RuleExtensions {
        RuleExtensions {
            piece_kib: 0,
            minimum_period_s: 30.0,
            probe_interval_s: 30.0,
            probe_window: 1.0,
            probe_replies: 4,
            fixed_cost_kib: 1024,
            slow_weight_shift: 8,
            gate_growth: true,
            timeout_factor: 0.5,
        }
    }
}

impl Control {
    /// Whether it asks for something that only extended controllers do.
    pub fn is_extended(&self) -> bool {
        let has_bounds = self.least_mb_per_s > 0.0 || self.most_mb_per_s.is_some();
        has_bounds || self.extensions != RuleExtensions::default()
    }
}

impl Default for Control {
    fn default() -> Control {
        Control {
            controller: Controller::Fixed,
            window: 8.0,
            window_min: 1.0,
            window_max: 256.0,
            tau_us: 0.0,
            rules: None,
            rivals: RivalControl::default(),
            faithful: true,
            extensions: RuleExtensions::default(),
            least_mb_per_s: 0.0,
            most_mb_per_s: None,
            active_files: 0,
            turn_ms: 500.0,
            turn_idle_ms: 8.0,
            timeout_s: 20.0,
        }
    }
}
