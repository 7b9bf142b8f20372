//! Control of streams: which controller, with what bounds.

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
        /// Whether rules are followed as the original did: fixed point, all-time minimum.
        pub faithful: bool,
        /// What controllers do beyond the original where rules are not followed as it did.
        pub extensions: RuleExtensions,
        /// Throughput that rules must leave to a stream: no gap is longer, and no window smaller.
        pub least_mb_per_s: f64,
        /// Throughput that a stream under rules may have at most; `None`: any.
        pub most_mb_per_s: Option<f64>,
        /// A stream without a reply for this long since its oldest request counts a time-out and sends it again.
        pub timeout_s: f64,
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
            faithful: true,
            extensions: RuleExtensions::default(),
            least_mb_per_s: 0.0,
            most_mb_per_s: None,
            timeout_s: 20.0,
        }
    }
}
