//! Speed from rounds of different lengths.

use ascar_statistics::Error;
use ascar_statistics::work_per_second::{self as core, Round};
use pyo3::prelude::*;

use crate::convert::{Array, refuse, slice};

/// What rounds of different lengths say about the stable speed.
#[pyclass(frozen, get_all, module = "ascar._core")]
pub struct WorkPerSecond {
    speed: f64,
    ci_low: Option<f64>,
    ci_high: Option<f64>,
    confidence: f64,
    overhead_s: f64,
    dof: f64,
    rounds: usize,
    autocorrelation: f64,
    reason: Option<String>,
}

#[pymethods]
impl WorkPerSecond {
    fn predict_duration_s(&self, work: f64) -> f64 {
        self.overhead_s + work / self.speed
    }

    fn __repr__(&self) -> String {
        format!(
            "WorkPerSecond(speed={}, {:?} to {:?}, rounds={})",
            self.speed, self.ci_low, self.ci_high, self.rounds
        )
    }
}

#[pyfunction]
#[pyo3(signature = (work, duration_s, *, confidence=0.95, autocorrelation_limit=0.1))]
pub fn work_per_second(
    work: Array<'_>,
    duration_s: Array<'_>,
    confidence: f64,
    autocorrelation_limit: f64,
) -> PyResult<WorkPerSecond> {
    let (work, duration_s) = (slice("work", &work)?, slice("duration_s", &duration_s)?);
    if work.len() != duration_s.len() {
        let allowed = format!("as many as rounds of work, {}", work.len());
        return Err(refuse(Error::new(
            "duration_s",
            format!("a series of {}", duration_s.len()),
            allowed,
        )));
    }
    let rounds: Vec<Round> = work
        .iter()
        .zip(duration_s)
        .map(|(&work, &duration_s)| Round { work, duration_s })
        .collect();
    let found =
        core::work_per_second(&rounds, confidence, autocorrelation_limit).map_err(refuse)?;
    Ok(WorkPerSecond {
        speed: found.speed,
        ci_low: found.limits.map(|limits| limits.0),
        ci_high: found.limits.map(|limits| limits.1),
        confidence,
        overhead_s: found.overhead_s,
        dof: found.dof,
        rounds: found.rounds,
        autocorrelation: found.autocorrelation,
        reason: found.reason,
    })
}
