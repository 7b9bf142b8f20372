//! Quantiles of process times within 7%, in constant space: eight buckets an octave.

const PER_OCTAVE_SHIFT: u32 = 3;
const BUCKETS: usize = 31 << PER_OCTAVE_SHIFT;

/// Counts of process times.
#[derive(Clone, Debug)]
pub(super) struct Histogram {
    counts: Box<[u16; BUCKETS]>,
    total: u32,
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            counts: Box::new([0; BUCKETS]),
            total: 0,
        }
    }
}

impl Histogram {
    #[inline]
    pub(super) fn add(&mut self, value: u32) {
        let count = &mut self.counts[bucket(value)];
        // A full bucket drops out of the count as a whole: the quantile stays that of what was counted.
        if *count < u16::MAX {
            *count += 1;
            self.total += 1;
        }
    }

    pub(super) fn total(&self) -> u32 {
        self.total
    }

    pub(super) fn clear(&mut self) {
        self.counts.fill(0);
        self.total = 0;
    }

    /// The median, by the middle of its bucket; at least one value must have been added.
    pub(super) fn median(&self) -> f64 {
        let mut left = self.total.div_ceil(2);
        for (index, &count) in self.counts.iter().enumerate() {
            left = left.saturating_sub(count.into());
            if left == 0 {
                return (lowest(index) + lowest(index + 1)) / 2.0;
            }
        }
        lowest(BUCKETS)
    }
}

/// Values below 8 have a bucket each; above, the three bits after the highest tell.
fn bucket(value: u32) -> usize {
    if value < 8 {
        return value as usize;
    }
    let octave = value.ilog2() - PER_OCTAVE_SHIFT;
    let index = ((octave + 1) << PER_OCTAVE_SHIFT) + ((value >> octave) & 7);
    (index as usize).min(BUCKETS - 1)
}

/// The least value of a bucket.
fn lowest(index: usize) -> f64 {
    if index < 8 {
        return index as f64;
    }
    let octave = (index >> PER_OCTAVE_SHIFT) - 1;
    (8 + (index & 7)) as f64 * (octave as f64).exp2()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_holds_what_it_says() {
        for value in [0, 1, 7, 8, 9, 15, 16, 17, 1000, 123_456, 1 << 30, u32::MAX] {
            let index = bucket(value);
            assert!(lowest(index) <= f64::from(value), "{value}");
            assert!(f64::from(value) < lowest(index + 1), "{value}");
        }
    }

    #[test]
    fn the_median_is_near() {
        let mut histogram = Histogram::default();
        (1..=1001).for_each(|value| histogram.add(value * 100));
        let median = histogram.median();
        assert!((median / 50_100.0 - 1.0).abs() < 0.07, "{median}");
    }
}
