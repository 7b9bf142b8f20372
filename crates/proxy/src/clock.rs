//! The clock of all streams.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

static BEGUN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Time since this was first asked.
#[must_use]
pub fn now() -> Duration {
    BEGUN.elapsed()
}

/// The same in microseconds, as controllers count.
#[must_use]
#[inline]
pub fn now_us() -> u64 {
    now().as_micros() as u64
}

/// Lets this thread's waits end within a microsecond of their time, not within fifty.
pub fn be_precise() {
    // SAFETY: takes an integer, and changes nothing but this thread's timers.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_000_u64) };
}
