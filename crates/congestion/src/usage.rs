//! Per-rule use counts and means of indicators (Li, 3.1.4): what splitting a rule set needs.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::rule::Observed;
use crate::signals::{AXES, Signals};

#[derive(Debug, Default)]
struct Counters {
    used_times: AtomicU64,
    sums: [AtomicU64; AXES],
}

/// Counters of every rule of one set; many streams, of any threads, may share them.
///
/// Sums of whole numbers: the order in which streams add up does not matter.
#[derive(Debug)]
pub struct Usage {
    rules: Box<[Counters]>,
    axes: usize,
}

impl Usage {
    /// Zeros for so many rules, each with means of the first `axes` indicators.
    #[must_use]
    pub fn new(rules: usize, axes: usize) -> Self {
        Self {
            rules: (0..rules).map(|_| Counters::default()).collect(),
            axes: axes.min(AXES),
        }
    }

    /// One more use of a rule.
    #[inline]
    pub fn record(&self, rule: usize, signals: &Signals) {
        let counters = &self.rules[rule];
        counters.used_times.fetch_add(1, Ordering::Relaxed);
        for (sum, value) in counters.sums.iter().zip(signals.point()).take(self.axes) {
            sum.fetch_add(u64::from(value), Ordering::Relaxed);
        }
    }

    /// Counts and means so far, a rule each.
    #[must_use]
    pub fn observed(&self) -> Vec<Observed> {
        self.rules.iter().map(Counters::observed).collect()
    }

    /// Sets all to zero.
    pub fn reset(&self) {
        for counters in &self.rules {
            counters.used_times.store(0, Ordering::Relaxed);
            for sum in &counters.sums {
                sum.store(0, Ordering::Relaxed);
            }
        }
    }
}

impl Counters {
    fn observed(&self) -> Observed {
        let used_times = self.used_times.load(Ordering::Relaxed);
        let mean = |sum: &AtomicU64| {
            let mean = sum.load(Ordering::Relaxed) / used_times.max(1);
            u32::try_from(mean).unwrap_or(u32::MAX)
        };
        Observed {
            used_times,
            means: std::array::from_fn(|axis| mean(&self.sums[axis])),
        }
    }
}
