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
    let deviations = deviations(values);
    let total = product(&deviations, 0);
    if total <= 0.0 {
        0.0
    } else {
        product(&deviations, lag) / total
    }
}

fn deviations(values: &[f64]) -> Vec<f64> {
    let center = mean(values);
    values.iter().map(|value| value - center).collect()
}

fn product(deviations: &[f64], lag: usize) -> f64 {
    deviations
        .iter()
        .zip(&deviations[lag..])
        .map(|(a, b)| a * b)
        .sum()
}

/// Lags summed one by one; longer correlation is summed over merged readings.
const LAGS_MAX: usize = 512;
/// Readings merged into one where the correlation is longer than that.
const MERGED: usize = 8;

/// Integrated autocorrelation time: 1 + 2 sum of the autocorrelations, in readings; 1 for independent readings.
///
/// Summed while the sums of adjacent pairs stay positive and made non-increasing (Geyer 1992, "Practical Markov
/// chain Monte Carlo", section 3.3, initial monotone sequence), so that the noise of long lags does not add up.
/// Negatively correlated series can have less than 1; never below 1/n.
pub fn integrated_time(values: &[f64]) -> Result<f64> {
    check_values("values", values, 2)?;
    let deviations = deviations(values);
    let total = product(&deviations, 0);
    if total <= 0.0 {
        return Ok(1.0);
    }
    let n = values.len() as f64;
    Ok((long_run_total(&deviations) / total).clamp(1.0 / n, n))
}

/// n times the long-run variance, by Geyer's sum.
fn long_run_total(deviations: &[f64]) -> f64 {
    let mut sum = -product(deviations, 0);
    let mut smallest = f64::INFINITY;
    let mut lag = 0;
    while lag + 1 < deviations.len() {
        let pair = product(deviations, lag) + product(deviations, lag + 1);
        if pair <= 0.0 {
            break;
        }
        smallest = pair.min(smallest);
        sum += 2.0 * smallest;
        lag += 2;
        if lag >= LAGS_MAX {
            let merged: Vec<f64> = deviations.chunks_exact(MERGED).map(mean).collect();
            // The mean of 8 has 1/8 of the long-run variance, and there are 1/8 as many.
            return long_run_total(&merged) * (MERGED * MERGED) as f64;
        }
    }
    sum
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
