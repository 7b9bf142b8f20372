//! Formulas, over mappings of names.

use std::hash::{DefaultHasher, Hash, Hasher};

use ascar_expression::{Expression as Core, Value, literal, unknown};
use pyo3::exceptions::{PyKeyError, PyOverflowError};
use pyo3::import_exception;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyString, PyTuple};

import_exception!(ascar.errors, ExpressionError);

/// What the crate refuses, or what the mapping raised.
struct Fault(PyErr);

impl From<String> for Fault {
    fn from(message: String) -> Self {
        Self(ExpressionError::new_err(message))
    }
}

impl From<PyErr> for Fault {
    fn from(error: PyErr) -> Self {
        Self(error)
    }
}

impl From<Fault> for PyErr {
    fn from(fault: Fault) -> Self {
        fault.0
    }
}

/// A parsed formula.
#[pyclass(frozen, module = "ascar._core")]
pub struct Expression {
    formula: Core,
    names: Vec<Py<PyString>>,
}

#[pymethods]
impl Expression {
    #[new]
    fn new(py: Python<'_>, text: &Bound<'_, PyAny>) -> PyResult<Self> {
        let readable = text.cast::<PyString>().ok().map(|it| it.to_cow());
        let Some(Ok(text)) = readable else {
            let shown = text.repr()?;
            return Err(ExpressionError::new_err(format!(
                "{shown} is not a formula: write it as a string"
            )));
        };
        let formula = Core::parse(&text).map_err(Fault::from)?;
        Ok(Self::of(py, formula))
    }

    #[getter]
    fn names<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.names)
    }

    /// Its value; None where it is n/a.
    fn evaluate_or_none<'py>(
        &self,
        values: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let found = self.formula.evaluate_or_none(&self.lookup(values))?;
        to_python(values.py(), found)
    }

    /// Its value, where n/a is an error.
    fn evaluate<'py>(&self, values: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let found = self.formula.evaluate(&self.lookup(values))?;
        to_python(values.py(), found)
    }

    /// Its value, which must be a number.
    fn number(&self, values: &Bound<'_, PyAny>) -> PyResult<f64> {
        Ok(self.formula.number(&self.lookup(values))?)
    }

    /// Whether it is true; None where it is n/a.
    fn holds(&self, values: &Bound<'_, PyAny>) -> PyResult<Option<bool>> {
        Ok(self.formula.holds(&self.lookup(values))?)
    }

    /// Of a comparison, its sign and its signed terms; None where it is none.
    fn terms(&self, py: Python<'_>) -> Option<(&'static str, Vec<(f64, Self)>)> {
        let (sign, terms) = self.formula.terms()?;
        let terms = terms.into_iter();
        Some((
            sign,
            terms.map(|(one, term)| (one, Self::of(py, term))).collect(),
        ))
    }

    fn __str__(&self) -> String {
        self.formula.to_string()
    }

    fn __repr__(&self) -> String {
        let text = ascar_expression::quoted(&self.formula.to_string());
        format!("Expression({text})")
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.formula == other.formula
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.formula.hash(&mut hasher);
        hasher.finish()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> (Bound<'py, PyAny>, (String,)) {
        let this = py.get_type::<Self>().into_any();
        (this, (self.formula.to_string(),))
    }
}

impl Expression {
    fn of(py: Python<'_>, formula: Core) -> Self {
        let names = formula.names().iter();
        let names = names.map(|name| PyString::intern(py, name).unbind());
        Self {
            names: names.collect(),
            formula,
        }
    }

    /// A name's value in a mapping.
    fn lookup<'a>(
        &'a self,
        values: &'a Bound<'_, PyAny>,
    ) -> impl Fn(&str) -> Result<Value, Fault> + 'a {
        move |name| {
            let py = values.py();
            let known = self.formula.names().iter().position(|it| it == name);
            let key = known.map(|index| self.names[index].bind(py));
            let found = match key {
                Some(key) => values.get_item(key),
                None => values.get_item(name),
            };
            match found {
                Ok(value) => value_of(name, &value),
                Err(error) if error.is_instance_of::<PyKeyError>(py) => {
                    let keys = values.try_iter()?.map(|key| key?.extract::<String>());
                    let known = keys.collect::<PyResult<Vec<String>>>()?;
                    Err(Fault::from(unknown(name, known)))
                }
                Err(error) => Err(Fault(error)),
            }
        }
    }
}

fn value_of(name: &str, value: &Bound<'_, PyAny>) -> Result<Value, Fault> {
    if let Ok(number) = value.cast_exact::<PyFloat>() {
        return finite(name, value, number.extract()?);
    }
    if value.is_none() {
        return Ok(Value::None);
    }
    if let Ok(truth) = value.cast::<PyBool>() {
        return Ok(Value::Boolean(truth.is_true()));
    }
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(Value::Text(text.to_string_lossy().into_owned()));
    }
    match value.extract::<f64>() {
        Err(error) if error.is_instance_of::<PyOverflowError>(value.py()) => {
            finite(name, value, f64::INFINITY)
        }
        number => finite(name, value, number?),
    }
}

fn finite(name: &str, value: &Bound<'_, PyAny>, number: f64) -> Result<Value, Fault> {
    if number.is_finite() {
        return Ok(Value::Number(number));
    }
    let shown = value.repr()?;
    Err(Fault::from(format!(
        "{name} = {shown} is not a finite number; measure it again or leave it out"
    )))
}

fn to_python(py: Python<'_>, value: Value) -> PyResult<Option<Bound<'_, PyAny>>> {
    Ok(Some(match value {
        Value::Number(number) => number.into_pyobject(py)?.into_any(),
        Value::Text(text) => text.into_pyobject(py)?.into_any(),
        Value::Boolean(truth) => truth.into_pyobject(py)?.to_owned().into_any(),
        Value::None => return Ok(None),
    }))
}

/// A value as the text that parses to it.
#[pyfunction]
pub fn expression_literal(value: &Bound<'_, PyAny>) -> PyResult<String> {
    Ok(literal(&value_of("value", value)?))
}
