//! Settings of the controllers that need no rules, so that each can be tuned to a workload as rules are.

/// The defaults are those of the sources that each controller's file names.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RivalSettings {
    /// Process times above this are congestion to AIMD, CUBIC and the third version of BBR, in microseconds.
    pub latency_us_max: u32,
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

impl Default for RivalSettings {
    fn default() -> Self {
        Self {
            latency_us_max: 200_000,
            aimd_decrease: 0.5,
            cubic_decrease: 0.7,
            cubic_growth: 0.4,
            vegas_alpha: 2.0,
            vegas_beta: 4.0,
            copa_delta: 0.5,
            gradient2_queue: 4.0,
            gradient2_smoothing: 0.2,
            bbr_window_gain: 2.0,
            bbr_probe_gain: 1.25,
        }
    }
}
