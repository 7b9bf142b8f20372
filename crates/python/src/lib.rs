//! `ascar._core`: the Rust half of the Python package. Conversions only.

use pyo3::prelude::*;

/// The Rust half of the Python package.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}
