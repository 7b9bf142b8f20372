//! Spikes cut down to the reach of ordinary noise, with a short delay, so that only lasting shifts count.

use super::ordered::{Latest, ascending, merged};

/// Readings cleaned together.
pub(super) const BLOCK: usize = 10;
/// The window around a block: one block before, one after.
const WIDTH: usize = 3 * BLOCK;
/// Robust standard deviations beyond which a reading is cut.
const CUT: f64 = 4.0;
/// Median absolute deviation to standard deviation, for normal noise.
const MAD_TO_SIGMA: f64 = 1.4826;
/// Mean absolute deviation to standard deviation, for normal noise.
const MEAN_TO_SIGMA: f64 = 1.2533;

/// The median and the robust standard deviation of a window of readings.
///
/// Readings are cut to the median +- 4 robust standard deviations. Bounded influence is what makes medians robust (James,
/// Kejariwal and Matteson 2016); cutting instead of taking medians keeps the efficiency of means where there are
/// no spikes (Huber 1964). Up to 14 of 30 readings may be spikes.
///
/// `sorted` are the readings of the window in ascending order.
fn center_and_sigma(sorted: &[f64]) -> (f64, f64) {
    let n = sorted.len();
    let median = 0.5 * (sorted[(n - 1) / 2] + sorted[n / 2]);
    let mut sigma = MAD_TO_SIGMA * median_deviation(sorted, median);
    if sigma <= 0.0 {
        // More than half of the readings are equal (coarse units): the mean deviation still sees the rest.
        let total: f64 = sorted.iter().map(|value| (value - median).abs()).sum();
        sigma = MEAN_TO_SIGMA * total / n as f64;
    }
    (median, sigma)
}

/// The median of |x - median| of sorted values.
///
/// It is the greatest distance within the n / 2 + 1 values that are nearest to the median. These lie side by side: their
/// first one is found by halving, as it is the first that is not farther than the one after their last.
fn median_deviation(sorted: &[f64], median: f64) -> f64 {
    let kept = sorted.len() / 2 + 1;
    let (mut first, mut left) = (0, sorted.len() - kept);
    while left > 0 {
        let half = left.div_ceil(2);
        let at = first + half - 1;
        let farther = median - sorted[at] > sorted[at + kept] - median;
        first = if farther { first + half } else { first };
        left = if farther { left - half } else { half - 1 };
    }
    (median - sorted[first]).max(sorted[first + kept - 1] - median)
}

/// Blocks whose deviations are pooled: one window's own estimate is so noisy that the cut itself would look like
/// correlated noise, and a skewed one's like changes of level.
const POOLED: usize = 15;

/// Cleans a series block by block and remembers how much recent blocks scattered.
#[derive(Clone, Debug, Default)]
pub(super) struct Cleaner {
    sigmas: Latest<POOLED>,
    blocks: usize,
    /// The block to be cleaned next, and with it the block before, in ascending order.
    current: [f64; BLOCK],
    two: [f64; 2 * BLOCK],
}

impl Cleaner {
    /// Whether the next block and the one after it are complete.
    pub(super) fn has_next(&self, values: &[f64]) -> bool {
        values.len() >= (self.blocks + 2) * BLOCK
    }

    /// Cleans the next block of a series of which that block and the one after it are complete.
    ///
    /// Calls `due` with each cleaned reading and the reach of the local noise.
    pub(super) fn clean_next(&mut self, values: &[f64], mut due: impl FnMut(f64, f64)) {
        let start = self.blocks * BLOCK;
        let (block, after) = values[start..start + 2 * BLOCK].split_at(BLOCK);
        let next = sorted(after);
        if self.blocks == 0 {
            self.current = sorted(block);
        }
        let two = &merged(&self.current, &next)[..2 * BLOCK];
        let (center, sigma) = if self.blocks == 0 {
            center_and_sigma(two)
        } else {
            center_and_sigma(&merged(&self.two, &next)[..WIDTH])
        };
        self.two.copy_from_slice(two);
        self.current = next;
        self.sigmas.take(sigma);
        self.blocks += 1;
        let reach = CUT * self.sigmas.median();
        for value in block {
            due(value.clamp(center - reach, center + reach), reach);
        }
    }
}

fn sorted(block: &[f64]) -> [f64; BLOCK] {
    let mut row = [0.0; BLOCK];
    row.copy_from_slice(block);
    ascending(&row)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By its definition.
    fn plain(sorted: &[f64], median: f64) -> f64 {
        let mut distances: Vec<f64> = sorted.iter().map(|value| (value - median).abs()).collect();
        distances.sort_by(f64::total_cmp);
        distances[sorted.len() / 2]
    }

    proptest::proptest! {
        #[test]
        fn the_deviation_is_the_median_of_distances(
            mut values in proptest::collection::vec(-1e3..1e3_f64, 1..40),
            whole in proptest::bool::ANY,
        ) {
            if whole {
                values.iter_mut().for_each(|value| *value = (*value / 300.0).round());
            }
            values.sort_by(f64::total_cmp);
            let n = values.len();
            let median = 0.5 * (values[(n - 1) / 2] + values[n / 2]);
            proptest::prop_assert_eq!(median_deviation(&values, median), plain(&values, median));
        }
    }
}
