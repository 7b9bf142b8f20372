//! Extremely randomised trees.

use ascar_forest::{Fault, Forest as Core, Prediction, Sample, Shape};
use numpy::{PyArray1, PyReadonlyArray2, PyUntypedArrayMethods, ToPyArray};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::convert::{Array, slice};

type Vector<'py> = Bound<'py, PyArray1<f64>>;

/// A forest of extremely randomised regression trees.
#[pyclass(frozen, module = "ascar._core")]
pub struct Forest(Core);

#[pymethods]
impl Forest {
    /// Grow one; each node tries `tries` features, at one random threshold each.
    #[staticmethod]
    #[pyo3(signature = (features, values, weights, seed, *, trees, leaf_min, tries, bootstrap))]
    #[allow(clippy::too_many_arguments)]
    fn grow(
        features: PyReadonlyArray2<'_, f64>,
        values: Array<'_>,
        weights: Array<'_>,
        seed: u64,
        trees: usize,
        leaf_min: usize,
        tries: usize,
        bootstrap: bool,
    ) -> PyResult<Self> {
        let sample = Sample {
            features: rows(&features)?,
            width: features.shape()[1],
            values: slice("values", &values)?,
            weights: slice("weights", &weights)?,
        };
        let shape = Shape {
            trees,
            leaf_min,
            tries,
            bootstrap,
        };
        Core::grow(sample, shape, seed).map(Self).map_err(refuse)
    }

    /// Mean, variance between the trees and mean variance inside their leaves, one a row.
    fn predict<'py>(
        &self,
        py: Python<'py>,
        features: PyReadonlyArray2<'py, f64>,
    ) -> PyResult<(Vector<'py>, Vector<'py>, Vector<'py>)> {
        let told = if features.shape()[1] == self.0.width() {
            self.0.predict(rows(&features)?)
        } else {
            Err(Fault::Shape)
        };
        let told = told.map_err(refuse)?;
        let column = |field: fn(&Prediction) -> f64| {
            told.iter().map(field).collect::<Vec<f64>>().to_pyarray(py)
        };
        Ok((
            column(|one| one.mean),
            column(|one| one.between),
            column(|one| one.within),
        ))
    }
}

fn rows<'a>(features: &'a PyReadonlyArray2<'_, f64>) -> PyResult<&'a [f64]> {
    if !features.is_c_contiguous() {
        return Err(PyValueError::new_err(
            "features is not row by row in memory; allowed: pass numpy.ascontiguousarray(features)",
        ));
    }
    features
        .as_slice()
        .map_err(|error| PyValueError::new_err(error.to_string()))
}

fn refuse(fault: Fault) -> PyErr {
    PyValueError::new_err(fault.to_string())
}
