//! Intervals of independent samples, as (estimate, low, high).

use ascar_statistics::Error;
use ascar_statistics::intervals::{self as core, Interval};
use pyo3::prelude::*;

use crate::convert::{Array, refuse, slice};

type Triple = (f64, f64, f64);

fn triple(interval: Interval) -> Triple {
    (interval.estimate, interval.low, interval.high)
}

#[pyfunction]
#[pyo3(signature = (values, confidence=0.95))]
pub fn mean_interval(values: Array<'_>, confidence: f64) -> PyResult<Triple> {
    core::mean_t(slice("values", &values)?, confidence)
        .map(triple)
        .map_err(refuse)
}

#[pyfunction]
#[pyo3(signature = (values, confidence=0.95))]
pub fn harmonic_mean_interval(values: Array<'_>, confidence: f64) -> PyResult<Triple> {
    core::harmonic_mean(slice("values", &values)?, confidence)
        .map(triple)
        .map_err(refuse)
}

#[pyfunction]
#[pyo3(signature = (successes, trials, confidence=0.95, *, method="wilson"))]
pub fn proportion_interval(
    successes: u64,
    trials: u64,
    confidence: f64,
    method: &str,
) -> PyResult<Triple> {
    let found = match method {
        "wilson" => core::proportion_wilson(successes, trials, confidence),
        "exact" => core::proportion_exact(successes, trials, confidence),
        other => Err(Error::new(
            "method",
            format!("{other:?}"),
            "'wilson' or 'exact'",
        )),
    };
    found.map(triple).map_err(refuse)
}

#[pyfunction]
#[pyo3(signature = (values, quantile, confidence=0.95))]
pub fn percentile_interval(
    values: Array<'_>,
    quantile: f64,
    confidence: f64,
) -> PyResult<Option<Triple>> {
    let found =
        core::percentile(slice("values", &values)?, quantile, confidence).map_err(refuse)?;
    Ok(found.map(triple))
}
