//! Autocorrelation, its integrated time, and the number of independent samples a series is worth.

use crate::error::{Error, Result, check_values};
use crate::moments::mean;

/// Lag-k autocorrelation coefficient: sum (x_t - m)(x_(t+k) - m) / sum (x_t - m)^2.
///
/// The biased estimator (one divisor for every lag), as in section 4.2.2 of the ASCAR thesis and Box, Jenkins
/// and Reinsel, Time Series Analysis, eq. 2.1.12. A series without variation, or not longer than the lag, has 0.
pub fn autocorrelation(values: &[f64], lag: usize) -> Result<f64> {
    check_values("values", values, 1)?;
    Ok(coefficient(values, lag))
}

pub(crate) fn coefficient(values: &[f64], lag: usize) -> f64 {
    if values.len() <= lag {
        return 0.0;
    }
    let center = mean(values);
    let total: f64 = values
        .iter()
        .map(|value| (value - center) * (value - center))
        .sum();
    if total <= 0.0 {
        return 0.0;
    }
    let product: f64 = values
        .iter()
        .zip(&values[lag..])
        .map(|(a, b)| (a - center) * (b - center))
        .sum();
    product / total
}

/// Integrated autocorrelation time: 1 + 2 sum of the autocorrelations, in readings; 1 for independent readings.
///
/// Summed while the sums of adjacent pairs stay positive and made non-increasing (Geyer 1992, "Practical Markov
/// chain Monte Carlo", section 3.3, initial monotone sequence), so that the noise of long lags does not add up.
/// Negatively correlated series can have less than 1; never below 1/n.
pub fn integrated_time(values: &[f64]) -> Result<f64> {
    check_values("values", values, 2)?;
    let n = values.len();
    let mut sum = -1.0;
    let mut previous_pair = f64::INFINITY;
    let mut lag = 0;
    while lag + 1 < n {
        let pair = coefficient(values, lag) + coefficient(values, lag + 1);
        if pair <= 0.0 {
            break;
        }
        previous_pair = pair.min(previous_pair);
        sum += 2.0 * previous_pair;
        lag += 2;
    }
    Ok(sum.max(1.0 / n as f64))
}

/// Effective sample size: n over the integrated autocorrelation time, at most n.
pub fn effective_sample_size(values: &[f64]) -> Result<f64> {
    let n = values.len() as f64;
    Ok((n / integrated_time(values)?).min(n))
}

/// Refuses an autocorrelation limit outside (0, 1).
pub(crate) fn check_limit(limit: f64) -> Result<()> {
    if limit > 0.0 && limit < 1.0 {
        return Ok(());
    }
    Err(Error::new(
        "autocorrelation_limit",
        limit,
        "a number above 0 and below 1; 0.1 is usual",
    ))
}
