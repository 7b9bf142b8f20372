//! Latency histograms, in the buckets of `ascar_histogram`.

use ascar_histogram::{BUCKETS, bucket, middle};

use crate::outcome::Latency;

/// Times counted by bucket.
#[derive(Debug, Clone)]
pub struct Histogram {
    counts: Box<[u64]>,
    count: u64,
    sum_ns: u64,
    max_ns: u64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram {
            counts: vec![0; BUCKETS].into(),
            count: 0,
            sum_ns: 0,
            max_ns: 0,
        }
    }
}

impl Histogram {
    /// Count one time.
    #[inline]
    pub fn add(&mut self, nanos: u64) {
        self.counts[bucket(nanos)] += 1;
        self.count += 1;
        self.sum_ns += nanos;
        self.max_ns = self.max_ns.max(nanos);
    }

    /// Both together.
    #[must_use]
    pub fn merged(&self, other: &Histogram) -> Histogram {
        let counts = self
            .counts
            .iter()
            .zip(&other.counts)
            .map(|(a, b)| a + b)
            .collect();
        Histogram {
            counts,
            count: self.count + other.count,
            sum_ns: self.sum_ns + other.sum_ns,
            max_ns: self.max_ns.max(other.max_ns),
        }
    }

    fn percentile_ms(&self, share: f64) -> f64 {
        let rank = (share * self.count as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return middle(bucket).min(self.max_ns as f64) / 1e6;
            }
        }
        0.0
    }

    /// The figures of a report; all 0 when nothing was counted.
    #[must_use]
    pub fn latency(&self) -> Latency {
        if self.count == 0 {
            return Latency::default();
        }
        Latency {
            requests: self.count,
            latency_ms_mean: self.sum_ns as f64 / self.count as f64 / 1e6,
            latency_ms_p50: self.percentile_ms(0.5),
            latency_ms_p90: self.percentile_ms(0.9),
            latency_ms_p99: self.percentile_ms(0.99),
            latency_ms_p999: self.percentile_ms(0.999),
            latency_ms_max: self.max_ns as f64 / 1e6,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_lie_within_a_bucket_of_the_truth() {
        let mut histogram = Histogram::default();
        for nanos in 1..=100_000u64 {
            histogram.add(nanos * 1_000);
        }
        let latency = histogram.latency();
        for (found, true_ms) in [
            (latency.latency_ms_p50, 50.0),
            (latency.latency_ms_p90, 90.0),
            (latency.latency_ms_p99, 99.0),
            (latency.latency_ms_p999, 99.9),
        ] {
            assert!(
                (found / true_ms - 1.0).abs() < 0.02,
                "{found} for {true_ms}"
            );
        }
        assert!((latency.latency_ms_mean - 50.0005).abs() < 1e-9);
        assert_eq!(latency.latency_ms_max, 100.0);
    }
}
