//! Control of streams: which controller, with what bounds.

use serde::{Deserialize, Serialize};

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
    /// A stream without a reply for this long since its oldest request counts a time-out and sends it again.
    pub timeout_s: f64,
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
            timeout_s: 20.0,
        }
    }
}
