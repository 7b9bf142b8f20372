//! The interval of a stationary series' mean, at a given confidence, that stays honest when readings are correlated.
//!
//! The variance of the mean is the long-run variance (the spectrum at frequency zero) over n. It is estimated by
//! the equal-weighted cosine estimator (Muller 2007, "A theory of robust long-run variance estimation"; Lazarus,
//! Lewis, Stock and Watson 2018, "HAR inference: recommendations for practice") of a series prewhitened by an
//! autoregression (Andrews and Monahan 1992). Its B squared cosine weights are nearly independent chi-squared
//! variables, so the mean is referred to Student's t with B degrees of freedom (Sun 2013), fewer for the
//! uncertainty of the autoregression. Willink's transformation (2005, "A confidence interval and test for the
//! mean of an asymmetric distribution", used for correlated series by N-Skart, Tafazzoli, Steiger and Wilson
//! 2011) accounts for skewness.

use std::f64::consts::PI;

use crate::autoregression::{Autoregression, burg, residuals};
use crate::distributions::{f, student_t};
use crate::error::{Result, check_level, check_scale, check_values};
use crate::moments::{Moments, mean};
use crate::subsession::merge;

/// What is known of the mean of a correlated series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CorrelatedMean {
    mean: f64,
    long_run_variance: f64,
    dof: f64,
    effective_n: f64,
    /// Skewness of the mean over 6: Willink's beta.
    skew: f64,
    n: usize,
}

/// Readings below which correlation and noise cannot be told apart.
pub const READINGS_MIN: usize = 6;
/// The autoregression's largest order.
const ORDER_MAX: usize = 8;
/// Cosine weights beyond this many add nothing that Student's t would show.
const BASIS_MAX: usize = 200;
/// A cosine weight this improbable under the lower ones is a line of the spectrum, not its level at zero.
const LINE_PROBABILITY: f64 = 5e-4;
/// Merged readings kept per cosine weight; more would not change the low frequencies.
const READINGS_PER_WEIGHT: usize = 40;

impl CorrelatedMean {
    /// Estimates from at least [`READINGS_MIN`] readings of a stationary series.
    pub fn of(values: &[f64]) -> Result<Self> {
        Self::with_basis(values, 0.6)
    }

    /// Estimates from the lowest frequencies only: less precise, but right for correlation of almost any shape.
    ///
    /// For decisions that are taken again and again, where one underestimate is enough to go wrong.
    pub fn cautious(values: &[f64]) -> Result<Self> {
        Self::with_basis(values, 0.3)
    }

    fn with_basis(values: &[f64], growth: f64) -> Result<Self> {
        check_values("values", values, READINGS_MIN)?;
        check_scale("values", values)?;
        let n = values.len();
        let moments = Moments::of(values);
        let basis = basis_size(n, growth);
        // Long series are merged first: only frequencies far above those used are lost.
        let merged = merge(values, (n / (basis * READINGS_PER_WEIGHT)).max(1));
        let stride = n / merged.len();
        let center = mean(&merged);
        let deviations: Vec<f64> = merged.iter().map(|value| value - center).collect();
        let model = burg(
            &deviations,
            ORDER_MAX.min(merged.len() / 8).max(usize::from(n >= 8)),
        );
        let gap = 1.0 - model.persistence();
        let weights = cosine_weights(&residuals(&deviations, &model), basis);
        let used = &weights[..flat_part(&weights)];
        let long_run_variance = mean(used) / (gap * gap) * stride as f64;
        let count = n as f64;
        let uncertainty = filter_uncertainty(&model, merged.len());
        let mut effective_n = count;
        if long_run_variance > 0.0 {
            effective_n = effective_n.min(count * moments.variance / long_run_variance);
        }
        // A series close to a random walk is worth few readings, whatever its long-run variance seems to be.
        if uncertainty > 0.0 {
            effective_n = effective_n.min(4.0 / uncertainty);
        }
        let dof = 1.0 / (1.0 / used.len() as f64 + uncertainty);
        Ok(Self {
            mean: moments.mean,
            long_run_variance,
            dof,
            effective_n,
            skew: skew(values, effective_n),
            n,
        })
    }

    /// The mean.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// n times the variance of the mean, for long series.
    pub fn long_run_variance(&self) -> f64 {
        self.long_run_variance
    }

    /// Degrees of freedom of the long-run variance's estimate.
    pub fn dof(&self) -> f64 {
        self.dof
    }

    /// How many independent readings the series is worth: n times variance over long-run variance, at most n.
    pub fn effective_n(&self) -> f64 {
        self.effective_n
    }

    /// Squared standard error of the mean.
    pub fn squared_error(&self) -> f64 {
        self.long_run_variance / self.n as f64
    }

    /// The interval of the mean at a confidence level, as (low, high).
    pub fn limits(&self, confidence: f64) -> Result<(f64, f64)> {
        check_level("confidence", confidence)?;
        let quantile = student_t::quantile(0.5 + 0.5 * confidence, self.dof);
        let error = self.squared_error().sqrt();
        Ok((
            self.mean - error * self.unskewed(quantile),
            self.mean - error * self.unskewed(-quantile),
        ))
    }

    /// Willink's inverse transformation of a quantile: ((1 + 6 b (z - b))^(1/3) - 1) / (2 b).
    fn unskewed(&self, z: f64) -> f64 {
        let b = self.skew;
        if b.abs() < 1e-5 {
            return z - b;
        }
        ((1.0 + 6.0 * b * (z - b)).cbrt() - 1.0) / (2.0 * b)
    }
}

/// How many cosine weights to use: few, so that all lie where the prewhitened spectrum is flat.
///
/// 2 + 0.6 sqrt(n): by simulation the most that covers 93-97% with ARMA noise, periodic spikes and 30 to 6,000
/// readings (`benchmarks/pilot_coverage.py`).
fn basis_size(n: usize, growth: f64) -> usize {
    let wanted = 2.0 + growth * (n as f64).sqrt();
    (wanted as usize).clamp(3, BASIS_MAX)
}

/// The squared cosine weights z_j^2 = (2/n) (sum x_t cos(pi j (t + 1/2) / n))^2, j = 1 ..= basis.
fn cosine_weights(values: &[f64], basis: usize) -> Vec<f64> {
    let n = values.len() as f64;
    let center = mean(values);
    (1..=basis.min(values.len() - 1))
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
        .collect()
}

/// How many leading weights are clear of the first spectral line (a periodic load's frequency), at least 4.
///
/// A weight far above the mean of the lower ones (an F test) belongs to a periodic component, whose sum over
/// whole periods is fixed and which therefore does not make the mean uncertain. Its skirt reaches about half way
/// down to frequency zero.
fn flat_part(weights: &[f64]) -> usize {
    const SURE: usize = 5;
    let mut sum: f64 = weights.iter().take(SURE).sum();
    for (index, weight) in weights.iter().enumerate().skip(SURE) {
        let ratio = weight * index as f64 / sum;
        // The first comparison is cheap and almost always decides.
        if ratio > 10.0 && f::survival(ratio, 1.0, index as f64) < LINE_PROBABILITY {
            return (index / 2).max(SURE - 1);
        }
        sum += weight;
    }
    weights.len()
}

/// The squared relative error of 1/(1 - sum phi)^2 in units of 2: 1/dof = 1/B + this.
///
/// For an AR(1) it is 2 (1 + phi) / (n (1 - phi)), two over the number of independent readings.
fn filter_uncertainty(model: &Autoregression, n: usize) -> f64 {
    let persistence = model.persistence();
    match model.coefficients.len() {
        0 => 0.0,
        _ => 2.0 * (1.0 + persistence).max(0.0) / (n as f64 * (1.0 - persistence)),
    }
}

/// Skewness of the mean over 6, from merged readings that are nearly independent.
fn skew(values: &[f64], effective_n: f64) -> f64 {
    let n = values.len();
    let time = n as f64 / effective_n;
    let size = if time > 1.5 {
        (5.0 * time).ceil() as usize
    } else {
        1
    };
    let merged = merge(values, size.clamp(1, (n / 8).max(1)));
    Moments::of(&merged).skewness / (6.0 * (merged.len() as f64).sqrt())
}
