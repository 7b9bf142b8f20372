//! What a stream must have and may have at most, whatever the rules say.

use crate::fault::{Fault, Result};
use crate::window::{WINDOW_X100_MAX, WINDOW_X100_MIN};

const SECOND_US: u64 = 1_000_000;

/// Throughput of one stream, in bytes a second.
///
/// The most is kept by the pacer. The least is a floor of what the controller allows, not a promise of the servers:
/// no gap is longer than it lets be, and no window smaller than it needs by Little's law at the present process time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    least_bytes_per_s: u64,
    most_bytes_per_s: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self::NONE
    }
}

impl Bounds {
    /// No bounds.
    pub const NONE: Self = Self {
        least_bytes_per_s: 0,
        most_bytes_per_s: u64::MAX,
    };

    /// Both bounds; refuses a most of zero, and a least above the most.
    pub fn new(least_bytes_per_s: u64, most_bytes_per_s: u64) -> Result<Self> {
        if most_bytes_per_s == 0 {
            return Err(Fault::setting("most_bytes_per_s", 0, "1 or more"));
        }
        if least_bytes_per_s > most_bytes_per_s {
            let allowed = "at most most_bytes_per_s";
            return Err(Fault::setting(
                "least_bytes_per_s",
                least_bytes_per_s,
                allowed,
            ));
        }
        Ok(Self {
            least_bytes_per_s,
            most_bytes_per_s,
        })
    }

    /// The gap after a request of so many bytes, made to keep both bounds.
    #[inline]
    pub(crate) fn gap_us(&self, gap_us: u64, bytes: u32) -> u64 {
        if *self == Self::NONE {
            return gap_us;
        }
        // The longest gap rounds down and the shortest up: neither bound is broken by rounding.
        let bytes_us = u64::from(bytes) * SECOND_US;
        let shortest = bytes_us.div_ceil(self.most_bytes_per_s);
        let longest = bytes_us
            .checked_div(self.least_bytes_per_s)
            .unwrap_or(u64::MAX);
        gap_us.min(longest).max(shortest)
    }

    /// The least window in hundredths of requests of so many bytes, at a process time.
    #[inline]
    pub(crate) fn window_x100_min(&self, process_time_us: u32, request_bytes: u32) -> u32 {
        if self.least_bytes_per_s == 0 {
            return WINDOW_X100_MIN;
        }
        let in_flight = u128::from(self.least_bytes_per_s) * u128::from(process_time_us) * 100;
        let window_x100 =
            in_flight.div_ceil(u128::from(SECOND_US) * u128::from(request_bytes.max(1)));
        // Whole requests are in flight: round up to the next.
        let whole = window_x100.div_ceil(100) * 100;
        whole.clamp(WINDOW_X100_MIN.into(), WINDOW_X100_MAX.into()) as u32
    }
}
