//! Measures of variation.

use ascar_statistics::variation as core;
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;

use crate::convert::{Array, refuse, slice};

#[pyfunction]
pub fn relative_standard_deviation(values: Array<'_>) -> PyResult<f64> {
    core::relative_standard_deviation(slice("values", &values)?).map_err(refuse)
}

#[pyfunction]
pub fn relative_range(values: Array<'_>) -> PyResult<f64> {
    core::relative_range(slice("values", &values)?).map_err(refuse)
}

#[pyfunction]
pub fn throughput_windows<'py>(
    py: Python<'py>,
    values: Array<'py>,
    window: usize,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let means = core::throughput_windows(slice("values", &values)?, window).map_err(refuse)?;
    Ok(means.into_pyarray(py))
}

#[pyfunction]
pub fn kolmogorov_smirnov(a: Array<'_>, b: Array<'_>) -> PyResult<f64> {
    core::kolmogorov_smirnov(slice("a", &a)?, slice("b", &b)?).map_err(refuse)
}

#[pyfunction]
pub fn distribution_range(samples: Vec<Array<'_>>) -> PyResult<f64> {
    let slices = samples
        .iter()
        .map(|sample| slice("samples", sample))
        .collect::<PyResult<Vec<_>>>()?;
    core::distribution_range(&slices).map_err(refuse)
}

#[pyfunction]
pub fn pearson(x: Array<'_>, y: Array<'_>) -> PyResult<Option<f64>> {
    core::pearson(slice("x", &x)?, slice("y", &y)?).map_err(refuse)
}
