//! Until when changes stay in force that nobody has confirmed.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// A moment of one boot. The clock that counts it is not set by anybody, and goes on while the machine sleeps
/// (CLOCK_BOOTTIME, clock_gettime(2)); the time of day is for people alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Deadline {
    /// The time of day, as it was foreseen.
    pub unix_s: u64,
    /// Milliseconds after the boot.
    pub boot_ms: u64,
}

impl Deadline {
    /// The moment that is so far away.
    pub fn after(time: Duration) -> Self {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Self {
            unix_s: (now + time).as_secs(),
            boot_ms: (since_boot() + time).as_millis() as u64,
        }
    }

    /// How far away it is, in the boot that it belongs to.
    pub fn left(&self) -> Duration {
        Duration::from_millis(self.boot_ms).saturating_sub(since_boot())
    }
}

fn since_boot() -> Duration {
    clock_gettime(ClockId::CLOCK_BOOTTIME)
        .map(Duration::from)
        .unwrap_or(Duration::MAX / 2)
}
