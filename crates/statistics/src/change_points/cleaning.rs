//! Spikes cut down to the reach of ordinary noise, with a short delay, so that only lasting shifts count.

use crate::moments::median_of;

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

/// The median of |x - median| of sorted values: the distances are shed from the outside in.
fn median_deviation(sorted: &[f64], median: f64) -> f64 {
    let (mut low, mut high) = (0, sorted.len() - 1);
    while high - low + 1 > sorted.len() / 2 + 1 {
        if median - sorted[low] > sorted[high] - median {
            low += 1;
        } else {
            high -= 1;
        }
    }
    (median - sorted[low]).max(sorted[high] - median)
}

/// Blocks whose deviations are pooled: one window's own estimate is so noisy that the cut itself would look like
/// correlated noise, and a skewed one's like changes of level.
const POOLED: usize = 15;

/// Cleans a series block by block and remembers how much recent blocks scattered.
#[derive(Clone, Debug, Default)]
pub(super) struct Cleaner {
    sigmas: [f64; POOLED],
    blocks: usize,
    /// The block before and the block to be cleaned next, in ascending order.
    previous: [f64; BLOCK],
    current: [f64; BLOCK],
}

fn ascending(block: &[f64]) -> [f64; BLOCK] {
    let mut sorted = [0.0; BLOCK];
    sorted.copy_from_slice(block);
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}

/// Merges two ascending rows into one.
fn merge_ascending(left: &[f64], right: &[f64], into: &mut [f64]) {
    let (mut l, mut r) = (0, 0);
    for slot in into {
        let from_left = r == right.len() || (l < left.len() && left[l] <= right[r]);
        if from_left {
            *slot = left[l];
            l += 1;
        } else {
            *slot = right[r];
            r += 1;
        }
    }
}

impl Cleaner {
    /// Cleans the next block of a series of which that block and the one after it are complete.
    ///
    /// Calls `due` with each cleaned reading and the reach of the local noise.
    pub(super) fn clean_next(&mut self, values: &[f64], mut due: impl FnMut(f64, f64)) {
        let start = self.blocks * BLOCK;
        let next = ascending(&values[start + BLOCK..start + 2 * BLOCK]);
        if self.blocks == 0 {
            self.current = ascending(&values[..BLOCK]);
        }
        let (mut two, mut three) = ([0.0; 2 * BLOCK], [0.0; WIDTH]);
        merge_ascending(&self.current, &next, &mut two);
        let window = if self.blocks == 0 {
            &two[..]
        } else {
            merge_ascending(&self.previous, &two, &mut three);
            &three[..]
        };
        let (center, sigma) = center_and_sigma(window);
        (self.previous, self.current) = (self.current, next);
        self.sigmas[self.blocks % POOLED] = sigma;
        self.blocks += 1;
        let mut pooled = self.sigmas;
        let pooled = &mut pooled[..self.blocks.min(POOLED)];
        let reach = CUT * median_of(pooled);
        for value in &values[start..start + BLOCK] {
            due(value.clamp(center - reach, center + reach), reach);
        }
    }
}
