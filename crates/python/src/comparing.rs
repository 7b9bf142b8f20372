//! Welch's comparison, and the one that may be repeated.

use ascar_statistics::paired;
use ascar_statistics::sequential::{self, Options, Verdict};
use ascar_statistics::welch::{self as core, Sample};
use pyo3::prelude::*;

use crate::convert::{Array, refuse, slice};

/// The result of Welch's test of a against b.
#[pyclass(frozen, get_all, module = "ascar._core")]
pub struct Welch {
    difference: f64,
    ci_low: f64,
    ci_high: f64,
    ratio: f64,
    ratio_ci_low: Option<f64>,
    ratio_ci_high: Option<f64>,
    p_value: f64,
    dof: f64,
    t: f64,
    confidence: f64,
}

#[pymethods]
impl Welch {
    fn __repr__(&self) -> String {
        format!(
            "Welch(difference={}, {} to {}, p_value={})",
            self.difference, self.ci_low, self.ci_high, self.p_value
        )
    }
}

impl Welch {
    fn new(found: core::Welch, confidence: f64) -> Self {
        Self {
            difference: found.difference,
            ci_low: found.difference_low,
            ci_high: found.difference_high,
            ratio: found.ratio,
            ratio_ci_low: found.ratio_limits.map(|limits| limits.0),
            ratio_ci_high: found.ratio_limits.map(|limits| limits.1),
            p_value: found.p_value,
            dof: found.dof,
            t: found.t,
            confidence,
        }
    }
}

#[pyfunction]
#[pyo3(signature = (a, b, confidence=0.95))]
pub fn welch(a: Array<'_>, b: Array<'_>, confidence: f64) -> PyResult<Welch> {
    let found = core::welch(slice("a", &a)?, slice("b", &b)?, confidence).map_err(refuse)?;
    Ok(Welch::new(found, confidence))
}

/// The same from recorded (mean, variance, n) of independent samples.
#[pyfunction]
#[pyo3(signature = (a, b, confidence=0.95))]
pub fn welch_samples(a: (f64, f64, f64), b: (f64, f64, f64), confidence: f64) -> PyResult<Welch> {
    let sample = |(mean, variance, n): (f64, f64, f64)| Sample { mean, variance, n };
    let found = core::welch_samples(&sample(a), &sample(b), confidence).map_err(refuse)?;
    Ok(Welch::new(found, confidence))
}

#[pyfunction]
#[pyo3(signature = (mean_a, sd_a, mean_b, sd_b, alpha=0.05, power=0.8))]
pub fn welch_sample_size(
    mean_a: f64,
    sd_a: f64,
    mean_b: f64,
    sd_b: f64,
    alpha: f64,
    power: f64,
) -> PyResult<u64> {
    core::sample_size((mean_a, sd_a), (mean_b, sd_b), alpha, power).map_err(refuse)
}

/// The state of an always-valid comparison at one look.
#[pyclass(frozen, get_all, module = "ascar._core")]
pub struct SequentialComparison {
    difference: f64,
    ci_low: f64,
    ci_high: f64,
    ratio: f64,
    ratio_ci_low: Option<f64>,
    ratio_ci_high: Option<f64>,
    p_value: f64,
    effective_n: f64,
    verdict: &'static str,
}

#[pymethods]
impl SequentialComparison {
    fn __repr__(&self) -> String {
        format!(
            "SequentialComparison({}, difference={}, {} to {}, p_value={})",
            self.verdict, self.difference, self.ci_low, self.ci_high, self.p_value
        )
    }
}

impl SequentialComparison {
    fn new(found: sequential::Comparison) -> Self {
        Self {
            difference: found.difference,
            ci_low: found.difference_limits.0,
            ci_high: found.difference_limits.1,
            ratio: found.ratio,
            ratio_ci_low: found.ratio_limits.map(|limits| limits.0),
            ratio_ci_high: found.ratio_limits.map(|limits| limits.1),
            p_value: found.p_value,
            effective_n: found.effective_n,
            verdict: verdict_name(found.verdict),
        }
    }
}

fn verdict_name(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Undecided => "undecided",
        Verdict::Less => "less",
        Verdict::Greater => "greater",
        Verdict::Equivalent => "equivalent",
    }
}

#[pyfunction]
#[pyo3(signature = (a, b, *, alpha=0.05, margin=None))]
pub fn sequential_compare(
    py: Python<'_>,
    a: Array<'_>,
    b: Array<'_>,
    alpha: f64,
    margin: Option<f64>,
) -> PyResult<SequentialComparison> {
    let (a, b) = (slice("a", &a)?, slice("b", &b)?);
    let found = py
        .detach(|| sequential::compare(a, b, &Options { alpha, margin }))
        .map_err(refuse)?;
    Ok(SequentialComparison::new(found))
}

/// The same of runs made in turns, the i-th of a beside the i-th of b.
#[pyfunction]
#[pyo3(signature = (a, b, *, alpha=0.05, margin=None))]
pub fn sequential_pairs(
    a: Array<'_>,
    b: Array<'_>,
    alpha: f64,
    margin: Option<f64>,
) -> PyResult<SequentialComparison> {
    let (a, b) = (slice("a", &a)?, slice("b", &b)?);
    let found = paired::compare_pairs(a, b, &Options { alpha, margin }).map_err(refuse)?;
    Ok(SequentialComparison::new(found))
}

/// Half of the interval of a mean of pairs, in standard deviations of a pair.
#[pyfunction]
#[pyo3(signature = (pairs, dof, *, alpha=0.05, prior=None))]
pub fn pairs_half_width(pairs: usize, dof: f64, alpha: f64, prior: Option<f64>) -> PyResult<f64> {
    paired::half_width(pairs, dof, alpha, prior).map_err(refuse)
}

#[pyfunction]
#[pyo3(signature = (values, *, alpha=0.05, large_effects=false))]
pub fn sequential_mean(
    py: Python<'_>,
    values: Array<'_>,
    alpha: f64,
    large_effects: bool,
) -> PyResult<Option<(f64, f64)>> {
    let values = slice("values", &values)?;
    py.detach(|| sequential::mean_limits(values, alpha, large_effects))
        .map_err(refuse)
}

#[pyfunction]
#[pyo3(signature = (a, b, *, first, every, alpha=0.05, margin=None))]
pub fn sequential_first_decision(
    py: Python<'_>,
    a: Array<'_>,
    b: Array<'_>,
    first: usize,
    every: usize,
    alpha: f64,
    margin: Option<f64>,
) -> PyResult<Option<(usize, &'static str)>> {
    let (a, b) = (slice("a", &a)?, slice("b", &b)?);
    let options = Options { alpha, margin };
    let found = py
        .detach(|| sequential::first_decision(a, b, (first, every), &options))
        .map_err(refuse)?;
    Ok(found.map(|(n, verdict)| (n, verdict_name(verdict))))
}
