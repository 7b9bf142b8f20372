//! The exact reading at which a known change happens.

use super::cleaning::BLOCK;
use crate::moments::median_of;

/// Readings on each side from which the levels are taken.
const LEVEL: usize = 60;

/// The index, within a block of `at`, that best separates readings near the left level from those near the right.
///
/// Levels are medians of up to 60 readings next to the block on each side; the index minimises the sum of absolute
/// deviations from them, the robust form of the least-squares position.
pub(super) fn sharpen(values: &[f64], at: usize) -> usize {
    let first = at.saturating_sub(BLOCK).max(1);
    let last = (at + BLOCK).min(values.len() - 1);
    let left = level(&values[first.saturating_sub(LEVEL)..first]);
    let right = level(&values[last..(last + LEVEL).min(values.len())]);
    let mut excess = 0.0;
    let mut best = (0.0, first);
    for (offset, value) in values[first..last].iter().enumerate() {
        // Moving the boundary past this reading puts it on the left side.
        excess += (value - left).abs() - (value - right).abs();
        if excess < best.0 {
            best = (excess, first + offset + 1);
        }
    }
    best.1
}

fn level(values: &[f64]) -> f64 {
    median_of(&mut values.to_vec())
}
