//! The event rate: each event reserves its place in time, so that all threads together keep to the rate.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::control::Control;
use crate::engine::now_ns;

/// Events not used for this long are lost: a load that was held up does not make up for more.
const BACKLOG_NS: u64 = 100_000_000;

/// Hands out events at a rate.
#[derive(Debug)]
pub struct Pacer {
    ns_per_event: f64,
    next_ns: AtomicU64,
}

impl Pacer {
    /// A pacer of so many events a second.
    #[must_use]
    pub fn new(events_per_s: f64) -> Pacer {
        Pacer {
            ns_per_event: 1e9 / events_per_s,
            next_ns: AtomicU64::new(0),
        }
    }

    /// Take events, and wait until they are due.
    pub fn take(&self, events: f64, control: &Control) {
        let now = now_ns();
        let cost = (events * self.ns_per_event) as u64;
        let after = |next: u64| {
            next.max(now.saturating_sub(BACKLOG_NS))
                .saturating_add(cost)
        };
        let due = after(
            self.next_ns
                .fetch_update(Relaxed, Relaxed, |next| Some(after(next)))
                .unwrap_or_else(|n| n),
        );
        if due > now {
            control.sleep(Duration::from_nanos(due - now));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_threads_together_keep_to_the_rate() {
        let (pacer, control) = (Pacer::new(2000.0), Control::default());
        let start = std::time::Instant::now();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..200).for_each(|_| pacer.take(1.0, &control)));
            }
        });
        // 800 events at 2000 a second, less the 200 that a start may make up for.
        let seconds = start.elapsed().as_secs_f64();
        assert!(seconds > 0.29, "{seconds}");
    }
}
