//! The interval of a stationary series' mean that stays honest when readings are correlated.
//!
//! The long-run variance is estimated by the equal-weighted cosine estimator (Muller 2004, "A theory of robust
//! long-run variance estimation"; Lazarus, Lewis, Stock and Watson 2018, "HAR inference: recommendations for
//! practice") after prewhitening with an autoregression (Andrews and Monahan 1992). Its B squared cosine weights
//! are nearly independent chi-squared variables, so the mean is referred to Student's t with about B degrees of
//! freedom, fewer when the autoregression itself is uncertain.

use std::f64::consts::PI;

use crate::autoregression::{autocovariances, yule_walker};
use crate::distributions::student_t;
use crate::intervals::Interval;
use crate::moments::Moments;

/// What is known of the mean of a correlated series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CorrelatedMean {
    /// The interval of the mean.
    pub interval: Interval,
    /// n times the variance of the mean, for long series.
    pub long_run_variance: f64,
    /// Degrees of freedom of its estimate.
    pub dof: f64,
    /// How many independent readings the series is worth.
    pub effective_n: f64,
}

const ORDER_MAX: usize = 8;

/// The mean of a stationary, possibly autocorrelated series with its interval.
pub(crate) fn correlated_mean(values: &[f64], confidence: f64) -> CorrelatedMean {
    let n = values.len();
    let count = n as f64;
    let moments = Moments::of(values);
    let order_max = ORDER_MAX.min(n / 8);
    let model = yule_walker(&autocovariances(values, order_max), n);
    let order = model.coefficients.len();
    let deviations: Vec<f64> = values.iter().map(|value| value - moments.mean).collect();
    let residuals: Vec<f64> = (order..n)
        .map(|t| {
            deviations[t]
                - model
                    .coefficients
                    .iter()
                    .enumerate()
                    .map(|(i, phi)| phi * deviations[t - 1 - i])
                    .sum::<f64>()
        })
        .collect();
    let basis = (0.4 * count.powf(2.0 / 3.0))
        .floor()
        .clamp(3.0, count - 1.0);
    let gap = 1.0 - model.persistence();
    let long_run_variance = cosine_variance(&residuals, basis as usize) / (gap * gap);
    let effective_n = if long_run_variance > 0.0 {
        (count * moments.variance / long_run_variance).min(count)
    } else {
        count
    };
    let uncertainty = if order == 0 {
        0.0
    } else {
        2.0 * (2.0 - gap) / (count * gap)
    };
    let dof = 1.0 / (1.0 / basis + uncertainty);
    let half =
        student_t::quantile(0.5 + 0.5 * confidence, dof) * (long_run_variance / count).sqrt();
    let interval = Interval {
        estimate: moments.mean,
        low: moments.mean - half,
        high: moments.mean + half,
    };
    CorrelatedMean {
        interval,
        long_run_variance,
        dof,
        effective_n,
    }
}

/// The mean of the first `basis` squared cosine weights of a series.
fn cosine_variance(values: &[f64], basis: usize) -> f64 {
    let n = values.len() as f64;
    let center = crate::moments::mean(values);
    (1..=basis)
        .map(|j| {
            // cos((t + 1/2) w) by Chebyshev's recurrence: one multiplication a reading.
            let frequency = PI * j as f64 / n;
            let double = 2.0 * frequency.cos();
            let (mut current, mut previous) = ((0.5 * frequency).cos(), (0.5 * frequency).cos());
            let mut sum = 0.0;
            for value in values {
                sum += (value - center) * current;
                (current, previous) = (double * current - previous, current);
            }
            2.0 / n * sum * sum
        })
        .sum::<f64>()
        / basis as f64
}
