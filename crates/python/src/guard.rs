//! `[guard]` of a study.

use ascar_guard::{Guard as Core, Limit, opens_in_minutes};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// What protects a system while it is tuned, checked.
#[pyclass(frozen, module = "ascar._core")]
pub struct Guard(Core);

#[pymethods]
impl Guard {
    /// Of a table in JSON.
    #[new]
    fn new(table: &str) -> PyResult<Self> {
        Core::from_json(table)
            .map(Self)
            .map_err(PyValueError::new_err)
    }

    /// Floors and ceilings, as formulas that a mean has to fulfil.
    fn limits(&self) -> Vec<String> {
        self.0.limits().iter().map(Limit::formula).collect()
    }

    /// Minutes from a moment to the next at which something may be changed; None where there never is one.
    fn opens_in_minutes(&self, day: usize, minute: u32) -> Option<u32> {
        opens_in_minutes(&self.0.windows, day % 7, minute % (24 * 60))
    }
}
