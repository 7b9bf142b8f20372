//! The interface's own count of ticks: begins with the wall clock, and then goes by the clock that nobody sets.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Counts ticks. They never go backwards and never jump, whatever is done to the wall clock.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    interval: Duration,
    start: Instant,
    /// Since the beginning of tick 0, when `start` was.
    offset: Duration,
}

impl Clock {
    /// Begins now, and behind the last tick that was ever written.
    pub fn start(interval: Duration, last: Option<i64>) -> Self {
        let wall = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Self::at(interval, last, Instant::now(), wall)
    }

    fn at(interval: Duration, last: Option<i64>, start: Instant, wall: Duration) -> Self {
        let least = last.map_or(Duration::ZERO, |last| {
            Duration::from_secs_f64((last + 1).max(0) as f64 * interval.as_secs_f64())
        });
        Self {
            interval,
            start,
            offset: wall.max(least),
        }
    }

    /// The present tick.
    pub fn tick(&self, now: Instant) -> i64 {
        let since = self.offset + now.duration_since(self.start);
        (since.as_nanos() / self.interval.as_nanos()) as i64
    }

    /// When a tick ends.
    pub fn end(&self, tick: i64) -> Instant {
        let end = self.interval.as_nanos() * (tick + 1).max(0) as u128;
        let since = end.saturating_sub(self.offset.as_nanos());
        self.start + Duration::from_nanos(since.min(u128::from(u64::MAX / 2)) as u64)
    }
}

/// Seconds since 1970.
pub fn unix_s() -> f64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs_f64()
}

/// Day of the week, Sunday being 0, and minute of the day, in local time.
pub fn local() -> (usize, u32) {
    let now = unix_s() as i64;
    // SAFETY: localtime_r writes into the struct that it is given, and nothing else.
    unsafe {
        let mut parts: libc::tm = std::mem::zeroed();
        if libc::localtime_r(&now, &mut parts).is_null() {
            return (0, 0);
        }
        (
            parts.tm_wday as usize,
            (parts.tm_hour * 60 + parts.tm_min) as u32,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_follow_the_wall_clock_and_never_what_was_written() {
        let (now, second) = (Instant::now(), Duration::from_secs(1));
        let clock = Clock::at(second, None, now, Duration::from_millis(10_300));
        assert_eq!(clock.tick(now), 10);
        assert_eq!(clock.tick(now + Duration::from_millis(700)), 11);
        assert_eq!(clock.end(10), now + Duration::from_millis(700));
        // The clock was ahead when the last tick was written.
        let clock = Clock::at(second, Some(99), now, Duration::from_millis(10_300));
        assert_eq!(clock.tick(now), 100);
        assert_eq!(clock.end(100), now + second);
    }
}
