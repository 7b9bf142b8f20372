//! Comparisons that may be looked at as often as one likes.
//!
//! A confidence sequence covers the true value at all times at once, so stopping at the first look that separates
//! two configurations keeps the stated error (Robbins 1970; Howard, Ramdas, McAuliffe and Sekhon 2021,
//! "Time-uniform, nonparametric, nonasymptotic confidence sequences"). This one is the mixture of Student t
//! likelihood ratios over normal effect sizes (Lai 1976; Wang and Ramdas 2025, "Anytime-valid t-tests and
//! confidence sequences for Gaussian means with unknown variance"): the Bayes factor
//!
//!   sqrt(g / (n + g)) ((1 + t^2/v) / (1 + t^2/v g / (n + g)))^((v + 1) / 2)
//!
//! of v degrees of freedom, n independent samples and prior effects N(0, 1/g) standard deviations, or its average
//! over several g, reaches 1/alpha with probability at most alpha under the null. Means of correlated readings
//! enter with their long-run standard error and its degrees of freedom (`mean_interval`), the asymptotic form of
//! Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas 2024, "Time-uniform central limit theory and asymptotic
//! confidence sequences".

use crate::error::{Error, Result, check_level};
use crate::mean_interval::{CorrelatedMean, READINGS_MIN};
use crate::welch::fieller;

/// Samples that each of the averaged priors on effects is worth: one for effects around a standard deviation (a
/// configuration to be abandoned at once), one around a third, one around a tenth.
const PRIOR_SAMPLES: [f64; 3] = [1.0, 10.0, 100.0];

/// The same for large effects, around one, three and ten standard deviations: with the priors above a handful of
/// samples never decides.
pub(crate) const PRIOR_SAMPLES_LARGE: [f64; 3] = [0.01, 0.1, 1.0];

/// What a comparison may be told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Probability, over all looks together, that the sequence ever misses the true difference.
    pub alpha: f64,
    /// Relative difference that does not matter; None never calls two sides equal.
    pub margin: Option<f64>,
}

impl Options {
    pub(crate) fn check(&self) -> Result<()> {
        check_level("alpha", self.alpha)?;
        match self.margin {
            Some(margin) if !(margin > 0.0 && margin < 1.0) => Err(Error::new(
                "margin",
                margin,
                "a relative difference above 0 and below 1, or none",
            )),
            _ => Ok(()),
        }
    }
}

/// What is decided at a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Not enough is known yet.
    Undecided,
    /// The mean of a is below that of b.
    Less,
    /// The mean of a is above that of b.
    Greater,
    /// The ratio of the means differs from 1 by less than the margin.
    Equivalent,
}

impl Verdict {
    /// What limits of the difference and of the ratio decide.
    pub(crate) fn of(
        limits: (f64, f64),
        ratio_limits: Option<(f64, f64)>,
        margin: Option<f64>,
    ) -> Self {
        let near =
            |(low, high)| margin.is_some_and(|margin| low > 1.0 - margin && high < 1.0 + margin);
        match () {
            () if limits.0 > 0.0 => Self::Greater,
            () if limits.1 < 0.0 => Self::Less,
            () if ratio_limits.is_some_and(near) => Self::Equivalent,
            () => Self::Undecided,
        }
    }
}

/// The state of a comparison at one look.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// mean(a) - mean(b).
    pub difference: f64,
    /// Limits of the difference, valid at all looks together; infinite while nothing can be said.
    pub difference_limits: (f64, f64),
    /// mean(a) / mean(b).
    pub ratio: f64,
    /// Limits of the ratio, valid at all looks together; None while they are unbounded.
    pub ratio_limits: Option<(f64, f64)>,
    /// Always-valid p-value of equal means: the smallest alpha that separates them at this look.
    pub p_value: f64,
    /// Independent samples a side that the readings are worth.
    pub effective_n: f64,
    /// What is decided.
    pub verdict: Verdict,
}

/// Compares the readings of two sides so far; may be called after every reading.
///
/// Sides may have any numbers of readings (at least 6 each) and need not grow together: a finished incumbent is
/// compared with a running candidate the same way. A finding "less" alone errs with about half of `alpha`.
pub fn compare(a: &[f64], b: &[f64], options: &Options) -> Result<Comparison> {
    compare_means(
        &CorrelatedMean::cautious(a)?,
        &CorrelatedMean::cautious(b)?,
        options,
    )
}

/// Compares two means whose uncertainty is known.
pub fn compare_means(
    a: &CorrelatedMean,
    b: &CorrelatedMean,
    options: &Options,
) -> Result<Comparison> {
    options.check()?;
    let (error_a, error_b) = (a.squared_error(), b.squared_error());
    let squared_error = error_a + error_b;
    let difference = a.mean() - b.mean();
    let n = 2.0 / (1.0 / a.effective_n() + 1.0 / b.effective_n());
    let dof = if squared_error > 0.0 {
        let (share_a, share_b) = (error_a / squared_error, error_b / squared_error);
        1.0 / (share_a * share_a / a.dof() + share_b * share_b / b.dof())
    } else {
        a.dof() + b.dof()
    };
    let critical = critical_value(n, dof, options.alpha);
    let half = if critical.is_finite() {
        critical * squared_error.sqrt()
    } else {
        f64::INFINITY
    };
    let limits = (difference - half, difference + half);
    let ratio_limits = fieller((a.mean(), error_a), (b.mean(), error_b), critical);
    Ok(Comparison {
        difference,
        difference_limits: limits,
        ratio: a.mean() / b.mean(),
        ratio_limits,
        p_value: p_value(difference, squared_error, n, dof),
        effective_n: n,
        verdict: Verdict::of(limits, ratio_limits, options.margin),
    })
}

/// The limits of one series' mean that hold at all looks together; None while nothing can be said.
///
/// For differences of interleaved rounds, paired so that what both sides share cancels. For large effects
/// (`large`) the limits are narrower while there are few readings, and wider when there are many.
pub fn mean_limits(values: &[f64], alpha: f64, large: bool) -> Result<Option<(f64, f64)>> {
    check_level("alpha", alpha)?;
    let found = CorrelatedMean::cautious(values)?;
    let priors = if large {
        &PRIOR_SAMPLES_LARGE
    } else {
        &PRIOR_SAMPLES
    };
    let critical = critical_under(priors, found.effective_n(), found.dof(), alpha);
    let half = critical * found.squared_error().sqrt();
    Ok(half
        .is_finite()
        .then(|| (found.mean() - half, found.mean() + half)))
}

/// The first look at which two recorded series, read side by side, are decided: (readings a side, verdict).
///
/// Looks after `first` readings a side (at least 6) and then after every `every` more, to the shorter's end.
pub fn first_decision(
    a: &[f64],
    b: &[f64],
    looks: (usize, usize),
    options: &Options,
) -> Result<Option<(usize, Verdict)>> {
    let (first, every) = looks;
    if first < READINGS_MIN {
        return Err(Error::new(
            "first",
            first,
            format!("{READINGS_MIN} or more readings"),
        ));
    }
    if every == 0 {
        return Err(Error::new("every", every, "1 or more readings"));
    }
    options.check()?;
    for n in (first..=a.len().min(b.len())).step_by(every) {
        let found = compare(&a[..n], &b[..n], options)?;
        if found.verdict != Verdict::Undecided {
            return Ok(Some((n, found.verdict)));
        }
    }
    Ok(None)
}

/// The |t| beyond which a mean of `n` independent samples is separated from its null at any time.
///
/// Infinite while there are too few samples for any decision.
pub fn critical_value(n: f64, dof: f64, alpha: f64) -> f64 {
    critical_under(&PRIOR_SAMPLES, n, dof, alpha)
}

/// The same under priors that are worth so many samples each.
pub(crate) fn critical_under(priors: &[f64], n: f64, dof: f64, alpha: f64) -> f64 {
    let goal = -alpha.ln();
    // Beyond 10^12 the factor has reached its limit.
    let (mut low, mut high) = (1e-6_f64, 1e12_f64);
    if log_factor(priors, high, n, dof) <= goal {
        return f64::INFINITY;
    }
    while high > low * (1.0 + 1e-12) {
        let middle = (low * high).sqrt();
        if log_factor(priors, middle, n, dof) < goal {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// Logarithm of the mean Bayes factor over the priors.
pub(crate) fn log_factor(priors: &[f64], t: f64, n: f64, dof: f64) -> f64 {
    let square = t * t / dof;
    let log = |prior: &f64| {
        let share = prior / (n + prior);
        0.5 * share.ln() + 0.5 * (dof + 1.0) * (square.ln_1p() - (square * share).ln_1p())
    };
    let largest = priors.iter().map(log).fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = priors
        .iter()
        .map(|prior| (log(prior) - largest).exp())
        .sum();
    largest + (sum / priors.len() as f64).ln()
}

/// The reciprocal of the Bayes factor, at most 1.
fn p_value(difference: f64, squared_error: f64, n: f64, dof: f64) -> f64 {
    if squared_error <= 0.0 {
        return if difference == 0.0 { 1.0 } else { 0.0 };
    }
    let t = difference.abs() / squared_error.sqrt();
    (-log_factor(&PRIOR_SAMPLES, t, n, dof)).exp().min(1.0)
}
