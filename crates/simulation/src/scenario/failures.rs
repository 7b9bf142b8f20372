//! What goes wrong, and what varies by itself.

use serde::{Deserialize, Serialize};

use super::describe::{section, words};

section! {
    /// A failure with its beginning and length.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Failure {
        /// What fails.
        pub kind: FailureKind,
        /// When, in virtual seconds since the start, warm-up included.
        pub at_s: f64,
        /// How long.
        pub for_s: f64,
        /// The server concerned, counted from 0; unused by `network-pause`.
        #[serde(default)]
        pub server: u32,
        /// For `slow-server`: how many times longer its device takes.
        #[serde(default = "default_factor")]
        pub factor: f64,
    }
}

fn default_factor() -> f64 {
    4.0
}

words! {
    /// What fails.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum FailureKind {
        /// A server's device takes `factor` times as long.
        SlowServer,
        /// A server answers nothing; what reaches it is lost and sent again after the time-out.
        DeadServer,
        /// No link carries anything.
        NetworkPause,
    }
}

section! {
    /// Background noise.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct Noise {
        /// Standard deviation of the time of each device operation, as a percentage of it (log-normal).
        pub service_sd_percent: f64,
        /// Foreign requests that reach each server's device, a second (Poisson; logs, journals, monitoring).
        pub disk_requests_per_s: f64,
        /// Size of a foreign request.
        pub disk_request_kib: u32,
        /// Bursts of foreign traffic on each server's incoming link, a second (Poisson; scans, queries).
        pub network_bursts_per_s: f64,
        /// Mean size of a burst (exponential).
        pub network_burst_kib: u32,
    }
}

impl Default for Noise {
    fn default() -> Noise {
        Noise {
            service_sd_percent: 0.0,
            disk_requests_per_s: 0.0,
            disk_request_kib: 4,
            network_bursts_per_s: 0.0,
            network_burst_kib: 256,
        }
    }
}
