//! Welch's comparison of two means with unequal variances, and the sample size that separates them.
//!
//! ASCAR thesis, eq. 4.6-4.8 (Welch 1947). Eq. 4.8 is used with -|t|, so that p is a probability for either sign.

use crate::distributions::{normal, student_t};
use crate::error::{
    Error, Result, check_finite, check_level, check_not_negative, check_scale, check_values,
};
use crate::moments::Moments;

/// One side of a comparison: what is known of independent (subsession) samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Mean.
    pub mean: f64,
    /// Unbiased variance of one sample.
    pub variance: f64,
    /// Number of independent samples, at least 2; may be a fraction (effective sample size).
    pub n: f64,
}

impl Sample {
    /// The moments of independent values.
    pub fn of(name: &'static str, values: &[f64]) -> Result<Self> {
        check_values(name, values, 2)?;
        check_scale(name, values)?;
        let moments = Moments::of(values);
        Ok(Self {
            mean: moments.mean,
            variance: moments.variance,
            n: values.len() as f64,
        })
    }

    fn check(&self, name: &'static str) -> Result<()> {
        check_finite(name, self.mean)?;
        check_not_negative(name, self.variance)?;
        if self.n >= 2.0 && self.n.is_finite() {
            return Ok(());
        }
        Err(Error::new(
            name,
            format!("a sample of n = {}", self.n),
            "at least 2 independent samples",
        ))
    }

    fn squared_error(&self) -> f64 {
        self.variance / self.n
    }
}

/// The result of Welch's test of a against b.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Welch {
    /// mean(a) - mean(b).
    pub difference: f64,
    /// Limits of the difference.
    pub difference_low: f64,
    /// Limits of the difference.
    pub difference_high: f64,
    /// mean(a) / mean(b).
    pub ratio: f64,
    /// Limits of the ratio (Fieller 1954); None where mean(b) is not separated from 0.
    pub ratio_limits: Option<(f64, f64)>,
    /// Eq. 4.6; infinite without any variance.
    pub t: f64,
    /// Welch-Satterthwaite degrees of freedom, eq. 4.7.
    pub dof: f64,
    /// Two-sided p-value, eq. 4.8.
    pub p_value: f64,
}

/// Compares two sets of independent values.
pub fn welch(a: &[f64], b: &[f64], confidence: f64) -> Result<Welch> {
    welch_samples(&Sample::of("a", a)?, &Sample::of("b", b)?, confidence)
}

/// Compares two recorded results of which only mean, variance and count are known.
pub fn welch_samples(a: &Sample, b: &Sample, confidence: f64) -> Result<Welch> {
    a.check("a")?;
    b.check("b")?;
    check_level("confidence", confidence)?;
    let difference = a.mean - b.mean;
    let (error_a, error_b) = (a.squared_error(), b.squared_error());
    let squared_error = error_a + error_b;
    let dof = satterthwaite(a, b);
    let quantile = student_t::quantile(0.5 + 0.5 * confidence, dof);
    let half = quantile * squared_error.sqrt();
    let t = match () {
        () if squared_error > 0.0 => difference / squared_error.sqrt(),
        () if difference == 0.0 => 0.0,
        () => difference.signum() * f64::INFINITY,
    };
    Ok(Welch {
        difference,
        difference_low: difference - half,
        difference_high: difference + half,
        ratio: a.mean / b.mean,
        ratio_limits: fieller((a.mean, error_a), (b.mean, error_b), quantile),
        t,
        dof,
        p_value: student_t::two_sided(t, dof),
    })
}

/// Welch-Satterthwaite degrees of freedom, eq. 4.7; the pooled n_a + n_b - 2 where neither side varies.
pub fn satterthwaite(a: &Sample, b: &Sample) -> f64 {
    let (error_a, error_b) = (a.squared_error(), b.squared_error());
    let total = error_a + error_b;
    if total <= 0.0 {
        return a.n + b.n - 2.0;
    }
    // Shares instead of squares: variances near the ends of the range neither overflow nor vanish.
    let (share_a, share_b) = (error_a / total, error_b / total);
    1.0 / (share_a * share_a / (a.n - 1.0) + share_b * share_b / (b.n - 1.0))
}

/// Fieller's limits of a ratio of two independent means (Fieller 1954, "Some problems in interval estimation").
///
/// `a` and `b` are (mean, squared standard error). The ratios r for which a - r b is within `quantile` standard
/// errors of 0. None where the set is unbounded, that is where b itself is not significantly different from 0.
pub(crate) fn fieller(a: (f64, f64), b: (f64, f64), quantile: f64) -> Option<(f64, f64)> {
    // In units of b's mean the equation is free of overflow.
    let ratio = a.0 / b.0;
    let g = quantile * quantile * (b.1 / b.0 / b.0);
    if !ratio.is_finite() || g.is_nan() || g >= 1.0 {
        return None;
    }
    let spread = quantile * quantile * (a.1 / b.0 / b.0);
    // (1 - g) r^2 - 2 ratio r + ratio^2 - spread = 0
    let root = (ratio * ratio * g + spread * (1.0 - g)).max(0.0).sqrt();
    Some(((ratio - root) / (1.0 - g), (ratio + root) / (1.0 - g)))
}

/// The fewest independent samples a side that separate two means with the given error rates.
///
/// The smallest n for which t(1 - alpha/2, v) + t(power, v) standard errors fit into the difference, with
/// v from eq. 4.7 at n samples a side: eq. 4.6 solved for the sample size, the t version of
/// n = (z_(1-alpha/2) + z_power)^2 (var_a + var_b) / difference^2. Refused where the means are equal.
pub fn sample_size(a: (f64, f64), b: (f64, f64), alpha: f64, power: f64) -> Result<u64> {
    let ((mean_a, sd_a), (mean_b, sd_b)) = (a, b);
    check_finite("mean_a", mean_a)?;
    check_finite("mean_b", mean_b)?;
    check_not_negative("sd_a", sd_a)?;
    check_not_negative("sd_b", sd_b)?;
    check_level("alpha", alpha)?;
    check_level("power", power)?;
    let difference = (mean_a - mean_b).abs();
    if difference == 0.0 {
        return Err(Error::new(
            "mean_b",
            mean_b,
            "a mean different from mean_a: equal means never separate",
        ));
    }
    let deviation = sd_a.hypot(sd_b);
    if deviation == 0.0 {
        return Ok(2);
    }
    let effect = difference / deviation;
    let enough = |n: f64| {
        let side = |deviation: f64| Sample {
            mean: 0.0,
            variance: deviation * deviation,
            n,
        };
        let dof = satterthwaite(&side(sd_a / deviation), &side(sd_b / deviation));
        let quantiles =
            student_t::quantile(1.0 - 0.5 * alpha, dof) + student_t::quantile(power, dof);
        quantiles <= effect * n.sqrt()
    };
    let normal_size =
        ((normal::quantile(1.0 - 0.5 * alpha) + normal::quantile(power)).max(0.0) / effect).powi(2);
    if normal_size > 1e15 {
        return Err(Error::new(
            "mean_b",
            mean_b,
            "a mean that 10^15 samples can tell from mean_a",
        ));
    }
    // The t quantiles only add a few samples to the normal answer.
    let mut low = 1.0_f64;
    let mut high = normal_size.ceil().max(2.0);
    while !enough(high) {
        low = high;
        high = (high * 2.0).max(high + 1.0);
    }
    while high - low > 1.0 {
        let middle = ((low + high) / 2.0).floor();
        if enough(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Ok(high as u64)
}
