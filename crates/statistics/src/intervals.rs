//! Intervals for means, ratios, proportions and percentiles of independent samples.

use crate::distributions::{beta, normal, student_t};
use crate::error::{Error, Result, check_level, check_scale, check_values};
use crate::moments::Moments;

/// An estimate between two limits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The point estimate.
    pub estimate: f64,
    /// Lower limit.
    pub low: f64,
    /// Upper limit.
    pub high: f64,
}

/// Student's t interval of the mean of independent values: mean +- t(n - 1) s / sqrt(n).
pub fn mean_t(values: &[f64], confidence: f64) -> Result<Interval> {
    check_values("values", values, 2)?;
    check_scale("values", values)?;
    check_level("confidence", confidence)?;
    let moments = Moments::of(values);
    let n = values.len() as f64;
    let half = student_t::quantile(0.5 + 0.5 * confidence, n - 1.0) * (moments.variance / n).sqrt();
    Ok(Interval {
        estimate: moments.mean,
        low: moments.mean - half,
        high: moments.mean + half,
    })
}

/// Interval of a ratio index: the harmonic mean of positive rates over equal amounts of work.
///
/// A mean of rates such as MB/s over rounds of equal work is the reciprocal of the mean time per unit of work
/// (Jain, The Art of Computer Systems Performance Analysis, section 12.7; Pilot's type "ratio"). The limits are
/// the reciprocals of the t limits of the mean reciprocal, upper and lower exchanged; where the lower limit of
/// the reciprocal is not positive, the upper limit of the rate is infinite.
pub fn harmonic_mean(values: &[f64], confidence: f64) -> Result<Interval> {
    check_values("values", values, 2)?;
    if let Some(index) = values
        .iter()
        .position(|&value| value <= 0.0 || value < 1.0 / crate::error::MAGNITUDE_MAX)
    {
        let value = format!("{} at index {index}", values[index]);
        return Err(Error::new(
            "values",
            value,
            "rates above 0 (a harmonic mean needs them)",
        ));
    }
    let reciprocals: Vec<f64> = values.iter().map(|value| 1.0 / value).collect();
    let inner = mean_t(&reciprocals, confidence)?;
    let high = if inner.low > 0.0 {
        1.0 / inner.low
    } else {
        f64::INFINITY
    };
    Ok(Interval {
        estimate: 1.0 / inner.estimate,
        low: 1.0 / inner.high,
        high,
    })
}

fn check_count(successes: u64, trials: u64) -> Result<()> {
    if trials == 0 {
        return Err(Error::new("trials", trials, "at least 1"));
    }
    if successes > trials {
        return Err(Error::new(
            "successes",
            successes,
            format!("at most the number of trials, {trials}"),
        ));
    }
    Ok(())
}

/// Wilson's score interval of a proportion (Wilson 1927; recommended by Brown, Cai and DasGupta 2001).
pub fn proportion_wilson(successes: u64, trials: u64, confidence: f64) -> Result<Interval> {
    check_count(successes, trials)?;
    check_level("confidence", confidence)?;
    let n = trials as f64;
    let p = successes as f64 / n;
    let z = normal::quantile(0.5 + 0.5 * confidence);
    let weight = 1.0 + z * z / n;
    let center = (p + z * z / (2.0 * n)) / weight;
    let half = z * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt() / weight;
    let low = if successes == 0 {
        0.0
    } else {
        (center - half).max(0.0)
    };
    let high = if successes == trials {
        1.0
    } else {
        (center + half).min(1.0)
    };
    Ok(Interval {
        estimate: p,
        low,
        high,
    })
}

/// Clopper and Pearson's exact interval of a proportion (1934): never covers less than stated.
pub fn proportion_exact(successes: u64, trials: u64, confidence: f64) -> Result<Interval> {
    check_count(successes, trials)?;
    check_level("confidence", confidence)?;
    let tail = 0.5 * (1.0 - confidence);
    let (x, rest) = (successes as f64, (trials - successes) as f64);
    let low = if successes == 0 {
        0.0
    } else {
        beta::quantile(tail, x, rest + 1.0)
    };
    let high = if successes == trials {
        1.0
    } else {
        beta::quantile(1.0 - tail, x + 1.0, rest)
    };
    Ok(Interval {
        estimate: x / trials as f64,
        low,
        high,
    })
}

/// Interval of a percentile of independent values, between two order statistics.
///
/// The number of values below the true quantile is Binomial(n, quantile); the ranks l and u with both tails at
/// most (1 - confidence) / 2 give an interval that holds for every distribution (Hahn and Meeker, Statistical
/// Intervals, section 5.2; Le Boudec, Performance Evaluation, theorem 2.1). The estimate is the sample quantile
/// by linear interpolation (NumPy's default). None where the sample is too small for either limit to exist.
pub fn percentile(values: &[f64], quantile: f64, confidence: f64) -> Result<Option<Interval>> {
    check_values("values", values, 1)?;
    check_level("quantile", quantile)?;
    check_level("confidence", confidence)?;
    let n = values.len();
    let tail = 0.5 * (1.0 - confidence);
    // With 1-based ranks: P(X_(l) > q) = P(B <= l - 1) <= tail, P(X_(u) < q) = P(B >= u) <= tail.
    let below = |rank: usize| beta::binomial_cdf(rank as u64, n as u64, quantile);
    let low_rank = first_where(n, |count| below(count) > tail);
    let high_rank = first_where(n, |count| below(count) >= 1.0 - tail) + 1;
    if low_rank == 0 || high_rank > n {
        return Ok(None);
    }
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let position = quantile * (n - 1) as f64;
    let floor = position.floor() as usize;
    let next = (floor + 1).min(n - 1);
    let estimate = sorted[floor] + (position - floor as f64) * (sorted[next] - sorted[floor]);
    Ok(Some(Interval {
        estimate,
        low: sorted[low_rank - 1],
        high: sorted[high_rank - 1],
    }))
}

/// The smallest k in 0..=n for which a monotone condition holds (n if none does).
fn first_where(n: usize, holds: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, n);
    while low < high {
        let middle = (low + high) / 2;
        if holds(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}
