//! Between NumPy and slices, between the crate's errors and Python's.

use numpy::PyReadonlyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// A one-dimensional array of float64, looked at in place.
pub type Array<'py> = PyReadonlyArray1<'py, f64>;

/// The array's memory; refused when it is not contiguous.
pub fn slice<'a>(name: &str, array: &'a Array<'_>) -> PyResult<&'a [f64]> {
    array.as_slice().map_err(|_| {
        PyValueError::new_err(format!(
            "{name} is a strided array; allowed: a contiguous array: pass numpy.ascontiguousarray({name})"
        ))
    })
}

/// The crate's refusal as a ValueError that names argument, value and what is allowed.
pub fn refuse(error: ascar_statistics::Error) -> PyErr {
    PyValueError::new_err(error.to_string())
}
