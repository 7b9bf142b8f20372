//! Distribution functions and quantiles, of numbers or of whole arrays.

use ascar_statistics::distributions::{beta, chi_squared, f, noncentral_t, normal, student_t};
use numpy::{PyArray1, PyArrayMethods, PyReadonlyArrayDyn, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyInt};

/// A number, or an array of float64.
pub enum Numbers<'py> {
    One(f64),
    Many(PyReadonlyArrayDyn<'py, f64>),
}

impl<'a, 'py> FromPyObject<'a, 'py> for Numbers<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        // Whether it is a number is asked first: to look for an array loads NumPy.
        if object.is_instance_of::<PyFloat>() || object.is_instance_of::<PyInt>() {
            return object.extract().map(Numbers::One);
        }
        match object.extract() {
            Ok(array) => Ok(Numbers::Many(array)),
            Err(_) => object.extract().map(Numbers::One),
        }
    }
}

/// The function of each element; numbers stand for arrays of one value. A number where no argument is an array.
fn each<'py, const N: usize>(
    py: Python<'py>,
    arguments: [Numbers<'py>; N],
    function: impl Fn([f64; N]) -> f64,
) -> PyResult<Bound<'py, PyAny>> {
    let mut shape: Option<Vec<usize>> = None;
    for argument in &arguments {
        if let Numbers::Many(array) = argument {
            match &shape {
                Some(known) if known.as_slice() != array.shape() => {
                    return Err(PyValueError::new_err(format!(
                        "an array has the shape {:?}, another {known:?}; allowed: arrays of one shape",
                        array.shape()
                    )));
                }
                _ => shape = Some(array.shape().to_vec()),
            }
        }
    }
    let Some(shape) = shape else {
        let values = arguments.map(|argument| match argument {
            Numbers::One(value) => value,
            Numbers::Many(_) => unreachable!("there is no array"),
        });
        return Ok(function(values).into_pyobject(py)?.into_any());
    };
    let count = shape.iter().product();
    let columns = arguments.map(|argument| match argument {
        Numbers::One(value) => vec![value; count],
        Numbers::Many(array) => array.as_array().iter().copied().collect(),
    });
    let found: Vec<f64> = (0..count)
        .map(|index| function(std::array::from_fn(|column| columns[column][index])))
        .collect();
    Ok(PyArray1::from_vec(py, found).reshape(shape)?.into_any())
}

type Found<'py> = PyResult<Bound<'py, PyAny>>;

#[pyfunction]
pub fn normal_below<'py>(py: Python<'py>, x: Numbers<'py>) -> Found<'py> {
    each(py, [x], |[x]| normal::cdf(x))
}

#[pyfunction]
pub fn normal_below_log<'py>(py: Python<'py>, x: Numbers<'py>) -> Found<'py> {
    each(py, [x], |[x]| normal::log_cdf(x))
}

#[pyfunction]
pub fn normal_quantile<'py>(py: Python<'py>, p: Numbers<'py>) -> Found<'py> {
    each(py, [p], |[p]| normal::quantile(p))
}

#[pyfunction]
pub fn mills_ratio<'py>(py: Python<'py>, x: Numbers<'py>) -> Found<'py> {
    each(py, [x], |[x]| normal::mills_ratio(x))
}

#[pyfunction]
pub fn student_t_quantile<'py>(py: Python<'py>, p: Numbers<'py>, dof: Numbers<'py>) -> Found<'py> {
    each(py, [p, dof], |[p, dof]| student_t::quantile(p, dof))
}

#[pyfunction]
pub fn chi_squared_above<'py>(py: Python<'py>, x: Numbers<'py>, dof: Numbers<'py>) -> Found<'py> {
    each(py, [x, dof], |[x, dof]| chi_squared::survival(x, dof))
}

#[pyfunction]
pub fn chi_squared_quantile_above<'py>(
    py: Python<'py>,
    p: Numbers<'py>,
    dof: Numbers<'py>,
) -> Found<'py> {
    each(py, [p, dof], |[p, dof]| chi_squared::quantile_above(p, dof))
}

#[pyfunction]
pub fn f_above<'py>(
    py: Python<'py>,
    x: Numbers<'py>,
    dof1: Numbers<'py>,
    dof2: Numbers<'py>,
) -> Found<'py> {
    each(py, [x, dof1, dof2], |[x, dof1, dof2]| {
        f::survival(x, dof1, dof2)
    })
}

#[pyfunction]
pub fn beta_quantile<'py>(
    py: Python<'py>,
    p: Numbers<'py>,
    a: Numbers<'py>,
    b: Numbers<'py>,
) -> Found<'py> {
    each(py, [p, a, b], |[p, a, b]| beta::quantile(p, a, b))
}

#[pyfunction]
pub fn noncentral_t_below<'py>(
    py: Python<'py>,
    x: Numbers<'py>,
    dof: Numbers<'py>,
    noncentrality: Numbers<'py>,
) -> Found<'py> {
    each(py, [x, dof, noncentrality], |[x, dof, noncentrality]| {
        noncentral_t::cdf(x, dof, noncentrality)
    })
}
