//! Passes that arrive at random times, whether or not the one before has ended: an open loop.
//!
//! Each thread has a Poisson process of its own; together they are one of the whole rate. The first file operation of a pass counts
//! from the arrival, so that a load that cannot keep up shows in the latencies what its users would wait (coordinated
//! omission: Tene, "How not to measure latency", 2013).

use std::time::Duration;

use ascar_random::Random;

use super::now_ns;
use super::plan::Plan;

/// Of more passes than this their expected number is as good.
const DRAWN_MOST: f64 = 10_000.0;

/// The arrivals of one thread.
pub(super) struct Arrivals {
    gap_ns: Option<f64>,
    random: Random,
    /// When the present pass arrived; 0 before the first.
    due_ns: u64,
    /// For how long it had waited when it began, until an operation counts it.
    wait_ns: u64,
}

impl Arrivals {
    /// The plan's rate, for a thread of a group.
    pub(super) fn new(plan: &Plan, group: usize, instance: usize) -> Arrivals {
        Arrivals {
            gap_ns: plan.arrival_gap_ns,
            random: Random::of(plan.seed, &[0xA221, group as u64, instance as u64]),
            due_ns: 0,
            wait_ns: 0,
        }
    }

    /// Wait until the next pass arrives; one that has arrived already begins at once.
    #[inline]
    pub(super) fn wait(&mut self, plan: &Plan) {
        let Some(gap_ns) = self.gap_ns else {
            return;
        };
        let mut now = now_ns();
        let before = if self.due_ns == 0 { now } else { self.due_ns };
        self.due_ns = before.saturating_add(self.random.exponential(gap_ns) as u64);
        while now < self.due_ns && !plan.control.stopped() {
            plan.control.sleep(Duration::from_nanos(self.due_ns - now));
            now = now_ns();
        }
        // The wait of a pass that did nothing, for want of a file, is not forgotten.
        self.wait_ns = self.wait_ns.max(now.saturating_sub(self.due_ns));
    }

    /// For how long the pass has waited: what its first operation took before it began.
    #[inline]
    pub(super) fn take_wait(&mut self) -> u64 {
        std::mem::take(&mut self.wait_ns)
    }

    /// Passes that have arrived by now, and have not begun.
    pub(super) fn not_begun(&mut self) -> u64 {
        let Some(gap_ns) = self.gap_ns.filter(|_| self.due_ns > 0) else {
            return 0;
        };
        let late_ns = now_ns().saturating_sub(self.due_ns);
        let expected = late_ns as f64 / gap_ns;
        if expected > DRAWN_MOST {
            return expected.round() as u64;
        }
        let (mut passes, mut at_ns) = (0, 0.0);
        loop {
            at_ns += self.random.exponential(gap_ns);
            if at_ns >= late_ns as f64 {
                return passes;
            }
            passes += 1;
        }
    }
}
