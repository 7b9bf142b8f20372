//! Change points, of a whole series and as readings arrive.

use ascar_statistics::{change_points as core, edm};
use pyo3::prelude::*;

use crate::convert::{Array, refuse, slice};

fn indices(found: &[core::ChangePoint]) -> Vec<usize> {
    found.iter().map(|change| change.index).collect()
}

#[pyfunction]
#[pyo3(signature = (values, *, min_segment=30))]
pub fn change_points(
    py: Python<'_>,
    values: Array<'_>,
    min_segment: usize,
) -> PyResult<Vec<usize>> {
    let values = slice("values", &values)?;
    let found = py
        .detach(|| core::change_points(values, min_segment))
        .map_err(refuse)?;
    Ok(indices(&found))
}

#[pyfunction]
#[pyo3(signature = (values, *, min_segment=30, percent=0.25, degree=1))]
pub fn edm_change_points(
    py: Python<'_>,
    values: Array<'_>,
    min_segment: usize,
    percent: f64,
    degree: u32,
) -> PyResult<Vec<usize>> {
    let values = slice("values", &values)?;
    let options = edm::Options {
        min_segment,
        percent,
        degree,
    };
    py.detach(|| edm::change_points(values, &options))
        .map_err(refuse)
}

/// Takes readings one by one and knows the change points so far.
#[pyclass(module = "ascar._core")]
pub struct ChangePointDetector(core::ChangePointDetector);

#[pymethods]
impl ChangePointDetector {
    #[new]
    #[pyo3(signature = (*, min_segment=30))]
    fn new(min_segment: usize) -> PyResult<Self> {
        core::ChangePointDetector::new(min_segment)
            .map(Self)
            .map_err(refuse)
    }

    fn push(&mut self, value: f64) -> PyResult<()> {
        self.0.push(value).map_err(refuse)
    }

    fn extend(&mut self, py: Python<'_>, values: Array<'_>) -> PyResult<()> {
        let values = slice("values", &values)?;
        let detector = &mut self.0;
        py.detach(|| values.iter().try_for_each(|&value| detector.push(value)))
            .map_err(refuse)
    }

    fn change_points(&mut self) -> Vec<usize> {
        indices(self.0.change_points())
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }
}
