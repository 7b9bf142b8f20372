//! Ticks: numbers of the wall clock, sampled in their middle.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// When to sample next. The wall clock says where the middle of a tick is, and is asked anew each time, so that nothing
/// drifts and a clock that is set hurts one tick; the wait itself is by the clock that nobody sets.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    interval: Duration,
}

/// The next sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// Its tick.
    pub tick: i64,
    /// When.
    pub at: Instant,
}

impl Clock {
    /// Ticks of this length.
    pub fn new(interval: Duration) -> Self {
        Self { interval }
    }

    /// The next middle of a tick after now; the one of the tick after `last` where that one is still now's.
    pub fn next(&self, last: Option<i64>) -> Due {
        self.next_after(Instant::now(), wall(), last)
    }

    fn next_after(&self, now: Instant, wall: Duration, last: Option<i64>) -> Due {
        let interval = self.interval.as_nanos() as i128;
        let wall = wall.as_nanos() as i128;
        let half = interval / 2;
        // The tick whose middle is the next one.
        let mut tick = (wall + half).div_euclid(interval);
        // Woken a little too early, or the clock was set back a little: not the same tick twice.
        if last.is_some_and(|last| tick as i64 == last) {
            tick += 1;
        }
        let wait = tick * interval + half - wall;
        Due {
            tick: tick as i64,
            at: now + Duration::from_nanos(wait.clamp(0, 2 * interval) as u64),
        }
    }

    /// The present tick.
    pub fn tick(&self) -> i64 {
        (wall().as_nanos() / self.interval.as_nanos()) as i64
    }
}

/// Since 1970.
pub fn wall() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn next(wall_ms: u64, last: Option<i64>) -> (i64, u128) {
        let now = Instant::now();
        let due = Clock::new(SECOND).next_after(now, Duration::from_millis(wall_ms), last);
        (due.tick, due.at.duration_since(now).as_millis())
    }

    #[test]
    fn samples_are_in_the_middle_of_ticks() {
        assert_eq!(next(10_000, None), (10, 500));
        assert_eq!(next(10_499, None), (10, 1));
        assert_eq!(next(10_500, None), (11, 1000));
        assert_eq!(next(10_520, Some(10)), (11, 980));
    }

    #[test]
    fn a_tick_is_not_sampled_twice_when_woken_early() {
        assert_eq!(next(10_499, Some(10)), (11, 1001));
    }

    #[test]
    fn a_clock_that_is_set_costs_one_tick() {
        // Forward by an hour.
        assert_eq!(next(3_610_520, Some(10)), (3611, 980));
        // Back by an hour: on it goes, with the numbers of the clock.
        assert_eq!(next(10_520, Some(3610)), (11, 980));
    }

    #[test]
    fn nothing_drifts_when_every_sample_takes_long() {
        let clock = Clock::new(Duration::from_millis(100));
        let (mut wall_us, mut last) = (1_000_000_u64, None);
        for _ in 0..1000 {
            let now = Instant::now();
            let due = clock.next_after(now, Duration::from_micros(wall_us), last);
            wall_us += due.at.duration_since(now).as_micros() as u64;
            assert_eq!(wall_us % 100_000, 50_000);
            assert!(last.is_none_or(|last| due.tick == last + 1));
            last = Some(due.tick);
            wall_us += 37_123;
        }
    }
}
