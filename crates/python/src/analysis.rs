//! The whole analysis of a series.

use ascar_statistics::analysis::{self as core, Method, Options};
use ascar_statistics::stable_phase::Why;
use ascar_statistics::{Error, autocorrelation as correlation, subsession};
use pyo3::prelude::*;

use crate::convert::{Array, refuse, slice};

/// What a series of readings says.
#[pyclass(frozen, get_all, module = "ascar._core")]
pub struct Analysis {
    n: usize,
    mean: f64,
    ci_low: Option<f64>,
    ci_high: Option<f64>,
    confidence: f64,
    autocorrelation: f64,
    subsession_size: Option<usize>,
    subsessions: Option<usize>,
    subsession_variance: Option<f64>,
    effective_n: f64,
    stable_start: usize,
    stable_end: usize,
    change_points: Vec<usize>,
    removed: Vec<(usize, usize, &'static str)>,
    method: &'static str,
    reason: Option<String>,
}

#[pymethods]
impl Analysis {
    fn __repr__(&self) -> String {
        let interval = match (self.ci_low, self.ci_high) {
            (Some(low), Some(high)) => format!("{low} to {high}"),
            _ => "no interval".to_owned(),
        };
        format!(
            "Analysis(mean={}, {interval}, n={}, stable {}..{})",
            self.mean, self.n, self.stable_start, self.stable_end
        )
    }
}

impl From<core::Analysis> for Analysis {
    fn from(found: core::Analysis) -> Self {
        Self {
            n: found.n,
            mean: found.mean,
            ci_low: found.limits.map(|limits| limits.0),
            ci_high: found.limits.map(|limits| limits.1),
            confidence: found.confidence,
            autocorrelation: found.autocorrelation,
            subsession_size: found.subsessions.map(|merged| merged.size),
            subsessions: found.subsessions.map(|merged| merged.count),
            subsession_variance: found.subsessions.map(|merged| merged.variance),
            effective_n: found.effective_n,
            stable_start: found.stable_start,
            stable_end: found.stable_end,
            change_points: found.change_points,
            removed: found
                .removed
                .iter()
                .map(|part| (part.start, part.end, why_name(part.why)))
                .collect(),
            method: method_name(found.method),
            reason: found.reason,
        }
    }
}

fn why_name(why: Why) -> &'static str {
    match why {
        Why::Level => "level",
        Why::Settling => "settling",
        Why::Edge => "edge",
    }
}

fn method_name(method: Method) -> &'static str {
    match method {
        Method::Corrected => "corrected",
        Method::Faithful => "faithful",
    }
}

fn method_of(name: &str) -> PyResult<Method> {
    match name {
        "corrected" => Ok(Method::Corrected),
        "faithful" => Ok(Method::Faithful),
        other => Err(refuse(Error::new(
            "method",
            format!("{other:?}"),
            "'corrected' or 'faithful'",
        ))),
    }
}

#[pyfunction]
#[pyo3(signature = (values, *, confidence=0.95, autocorrelation_limit=0.1, method="corrected", min_segment=30))]
pub fn analyze(
    py: Python<'_>,
    values: Array<'_>,
    confidence: f64,
    autocorrelation_limit: f64,
    method: &str,
    min_segment: usize,
) -> PyResult<Analysis> {
    let options = Options {
        confidence,
        autocorrelation_limit,
        method: method_of(method)?,
        min_segment,
    };
    let values = slice("values", &values)?;
    py.detach(|| core::analyze(values, &options))
        .map(Analysis::from)
        .map_err(refuse)
}

#[pyfunction]
#[pyo3(signature = (values, lag=1))]
pub fn autocorrelation(values: Array<'_>, lag: usize) -> PyResult<f64> {
    correlation::autocorrelation(slice("values", &values)?, lag).map_err(refuse)
}

#[pyfunction]
pub fn effective_sample_size(py: Python<'_>, values: Array<'_>) -> PyResult<f64> {
    let values = slice("values", &values)?;
    py.detach(|| correlation::effective_sample_size(values))
        .map_err(refuse)
}

#[pyfunction]
#[pyo3(signature = (values, autocorrelation_limit=0.1))]
pub fn subsession_size(
    py: Python<'_>,
    values: Array<'_>,
    autocorrelation_limit: f64,
) -> PyResult<Option<usize>> {
    let values = slice("values", &values)?;
    let found = py
        .detach(|| subsession::smallest_uncorrelated(values, autocorrelation_limit))
        .map_err(refuse)?;
    Ok(found.map(|merged| merged.size))
}
