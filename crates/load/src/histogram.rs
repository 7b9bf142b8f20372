//! Latency histograms that one thread writes while another reads.
//!
//! Counts are atomics that are loaded and stored, never locked; `ascar_histogram` says why, and what the buckets are.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use ascar_histogram::{BUCKETS, bucket, middle};

/// Counts of one flowop of one thread: written by that thread only, wrapping at 2^32 a bucket.
#[derive(Debug)]
pub struct Counts(Box<[AtomicU32]>);

impl Default for Counts {
    fn default() -> Counts {
        Counts((0..BUCKETS).map(|_| AtomicU32::new(0)).collect())
    }
}

impl Counts {
    /// Count one time. Only the owning thread may call this.
    #[inline]
    pub fn add(&self, nanos: u64) {
        let count = &self.0[bucket(nanos)];
        count.store(count.load(Relaxed).wrapping_add(1), Relaxed);
    }

    /// Add what came since `seen` was last brought up to date to `into`, and bring it up to date.
    pub fn collect(&self, seen: &mut [u32], into: &mut Histogram) {
        for (place, count) in self.0.iter().enumerate() {
            let now = count.load(Relaxed);
            let new = now.wrapping_sub(seen[place]);
            if new > 0 {
                seen[place] = now;
                into.counts[place] += u64::from(new);
            }
        }
    }
}

/// Merged counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Histogram {
    counts: Vec<u64>,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram {
            counts: vec![0; BUCKETS],
        }
    }
}

impl Histogram {
    /// Add another's counts.
    pub fn merge(&mut self, other: &Histogram) {
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
    }

    /// Forget everything.
    pub fn clear(&mut self) {
        self.counts.fill(0);
    }

    /// Times counted.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The times below which these shares of all lie, in nanoseconds; `shares` ascend. `None` without any count.
    #[must_use]
    pub fn percentiles<const N: usize>(&self, shares: [f64; N]) -> Option<[f64; N]> {
        let total = self.total();
        if total == 0 {
            return None;
        }
        let mut out = [0.0; N];
        let (mut below, mut place) = (0, 0);
        for (share, value) in shares.iter().zip(&mut out) {
            let rank = ((share * total as f64).ceil() as u64).clamp(1, total);
            while below + self.counts[place] < rank {
                below += self.counts[place];
                place += 1;
            }
            *value = middle(place);
        }
        Some(out)
    }

    /// The cumulative distribution: pairs of a time in nanoseconds and the share of all times up to it.
    #[must_use]
    pub fn distribution(&self) -> Vec<(f64, f64)> {
        let total = self.total() as f64;
        let mut sum = 0;
        let filled = self
            .counts
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0);
        filled
            .map(|(place, count)| {
                sum += count;
                (middle(place), sum as f64 / total)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_a_known_sample() {
        let counts = Counts::default();
        for nanos in 1..=10_000 {
            counts.add(nanos * 1000);
        }
        let mut seen = vec![0; BUCKETS];
        let mut histogram = Histogram::default();
        counts.collect(&mut seen, &mut histogram);
        let [p50, p99] = histogram.percentiles([0.5, 0.99]).unwrap();
        assert!((p50 / 5_000_000.0 - 1.0).abs() < 0.02, "{p50}");
        assert!((p99 / 9_900_000.0 - 1.0).abs() < 0.02, "{p99}");
        assert!((histogram.distribution().last().unwrap().1 - 1.0).abs() < 1e-12);
        let mut again = Histogram::default();
        counts.collect(&mut seen, &mut again);
        assert_eq!(again.total(), 0);
        assert_eq!(again.percentiles([0.5]), None);
    }
}
