//! Settings of the controllers that need no rules, so that each can be tuned to a workload as rules are.

use crate::fault::{Fault, Result};

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

impl RivalSettings {
    /// Refuses settings out of range, and what is no number.
    pub fn check(&self) -> Result<()> {
        let within = [
            (
                "aimd_decrease",
                self.aimd_decrease,
                0.01..=0.99,
                "0.01 to 0.99",
            ),
            (
                "cubic_decrease",
                self.cubic_decrease,
                0.01..=0.99,
                "0.01 to 0.99",
            ),
            (
                "cubic_growth",
                self.cubic_growth,
                1e-6..=1e6,
                "0.000001 to 1000000",
            ),
            (
                "vegas_alpha",
                self.vegas_alpha,
                0.0..=1e4,
                "0 to 10000 requests",
            ),
            (
                "vegas_beta",
                self.vegas_beta,
                self.vegas_alpha..=1e4,
                "vegas_alpha to 10000 requests",
            ),
            ("copa_delta", self.copa_delta, 1e-4..=1e4, "0.0001 to 10000"),
            (
                "gradient2_queue",
                self.gradient2_queue,
                0.0..=1e4,
                "0 to 10000 requests",
            ),
            (
                "gradient2_smoothing",
                self.gradient2_smoothing,
                1e-3..=1.0,
                "0.001 to 1",
            ),
            (
                "bbr_window_gain",
                self.bbr_window_gain,
                0.1..=100.0,
                "0.1 to 100",
            ),
            (
                "bbr_probe_gain",
                self.bbr_probe_gain,
                1.0..=1.99,
                "1 to 1.99",
            ),
        ];
        if self.latency_us_max == 0 {
            return Err(Fault::setting("latency_us_max", 0, "1 us or more"));
        }
        for (name, value, range, allowed) in within {
            if !range.contains(&value) {
                return Err(Fault::setting(name, value, allowed));
            }
        }
        Ok(())
    }
}
