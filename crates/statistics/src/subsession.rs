//! Subsession analysis as published: adjacent readings merged until their correlation is negligible.
//!
//! ASCAR thesis, section 4.2.2, after Ferrari's and Boudec's "n-subsession analysis"; the search bound q <= n/3
//! is the released program's. The rule alone does not make the interval cover: a batch-mean autocorrelation under
//! the limit still leaves correlation in the variance. Use `mean_interval` for intervals to believe.

use crate::autocorrelation::{check_limit, coefficient};
use crate::distributions::student_t;
use crate::error::{Result, check_level, check_values};
use crate::intervals::Interval;
use crate::moments::{Moments, mean};

/// How readings were merged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Subsessions {
    /// Readings merged into one, q.
    pub size: usize,
    /// How many merged readings there are, h = floor(n / q).
    pub count: usize,
    /// Their lag-1 autocorrelation.
    pub autocorrelation: f64,
    /// Their unbiased variance.
    pub variance: f64,
}

/// Means of consecutive groups of `size` readings; readings left over at the end are dropped.
pub fn merge(values: &[f64], size: usize) -> Vec<f64> {
    assert!(size > 0, "a subsession holds at least one reading");
    values.chunks_exact(size).map(mean).collect()
}

/// The smallest q <= n/3 whose merged readings have |lag-1 autocorrelation| <= `limit`; None if there is none.
///
/// Merged readings come from running sums, so that all sizes together cost O(n log n).
pub fn smallest_uncorrelated(values: &[f64], limit: f64) -> Result<Option<Subsessions>> {
    check_values("values", values, 1)?;
    check_limit(limit)?;
    let center = mean(values);
    let mut sums = Vec::with_capacity(values.len() + 1);
    sums.push(0.0);
    let mut sum = 0.0;
    for value in values {
        sum += value - center;
        sums.push(sum);
    }
    let mut merged = Vec::with_capacity(values.len());
    for size in 1..=(values.len() / 3).max(1) {
        merged.clear();
        let ends = (size..sums.len()).step_by(size);
        merged.extend(ends.map(|end| (sums[end] - sums[end - size]) / size as f64));
        let correlation = coefficient(&merged, 1);
        if correlation.abs() <= limit {
            let variance = Moments::of(&merged).variance;
            return Ok(Some(Subsessions {
                size,
                count: merged.len(),
                autocorrelation: correlation,
                variance,
            }));
        }
    }
    Ok(None)
}

/// The published interval: the mean +- t sqrt(var / h) over h subsessions, t with h - 1 degrees of freedom.
///
/// None where no q <= n/3 meets the limit, or where one subsession is all there is.
pub fn faithful_interval(
    values: &[f64],
    limit: f64,
    confidence: f64,
) -> Result<Option<(Subsessions, Interval)>> {
    check_level("confidence", confidence)?;
    let Some(found) = smallest_uncorrelated(values, limit)? else {
        return Ok(None);
    };
    if found.count < 2 {
        return Ok(None);
    }
    let h = found.count as f64;
    let half = student_t::quantile(0.5 + 0.5 * confidence, h - 1.0) * (found.variance / h).sqrt();
    let estimate = mean(values);
    Ok(Some((
        found,
        Interval {
            estimate,
            low: estimate - half,
            high: estimate + half,
        },
    )))
}
