//! Cholesky factors and what is solved with them; minimisation within bounds.

use ascar_numerics::bounded::{self, Bounds};
use ascar_numerics::cholesky;
use numpy::ndarray::{Array2, ArrayView2};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyReadonlyArray2, PyReadwriteArray2, ToPyArray};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::convert::Array;

type Vector<'py> = Bound<'py, PyArray1<f64>>;
type Matrix<'py> = Bound<'py, PyArray2<f64>>;

#[pyfunction]
pub fn cholesky_factor<'py>(
    py: Python<'py>,
    covariance: PyReadonlyArray2<'py, f64>,
) -> PyResult<Option<Matrix<'py>>> {
    let mut factor = rows(&covariance.as_array());
    square("covariance", &factor.view())?;
    let found = cholesky::factor(&mut factor.view_mut());
    Ok(found.then(|| factor.into_pyarray(py)))
}

#[pyfunction]
pub fn cholesky_solve<'py>(
    py: Python<'py>,
    factor: PyReadonlyArray2<'py, f64>,
    right: Array<'py>,
) -> PyResult<Vector<'py>> {
    let (factor, right) = (factor.as_array(), numbers(&right));
    fits(&factor, right.len())?;
    Ok(cholesky::solve(&factor, &right).into_pyarray(py))
}

#[pyfunction]
pub fn cholesky_solve_transposed<'py>(
    py: Python<'py>,
    factor: PyReadonlyArray2<'py, f64>,
    right: PyReadonlyArray2<'py, f64>,
) -> PyResult<Matrix<'py>> {
    let (factor, mut found) = (factor.as_array(), rows(&right.as_array()));
    fits(&factor, found.nrows())?;
    cholesky::solve_transposed(&factor, &mut found.view_mut());
    Ok(found.into_pyarray(py))
}

#[pyfunction]
pub fn cholesky_solve_and_invert<'py>(
    py: Python<'py>,
    mut covariance: PyReadwriteArray2<'py, f64>,
    right: Array<'py>,
) -> PyResult<Option<(f64, Vector<'py>)>> {
    let (mut covariance, right) = (covariance.as_array_mut(), numbers(&right));
    fits(&covariance.view(), right.len())?;
    let solved = cholesky::solve_and_invert(&mut covariance, &right);
    Ok(solved.map(|one| (one.half_log_determinant, one.solution.into_pyarray(py))))
}

#[pyfunction]
pub fn minimize_bounded<'py>(
    function: &Bound<'py, PyAny>,
    start: Array<'py>,
    low: Array<'py>,
    high: Array<'py>,
    iterations_max: usize,
) -> PyResult<(f64, Vector<'py>)> {
    let py = function.py();
    let [start, low, high] = [&start, &low, &high].map(numbers);
    let bounds = Bounds {
        low: &low,
        high: &high,
    };
    let sides = [bounds.low.len(), bounds.high.len()];
    let apart = low.iter().zip(&high).any(|(low, high)| low > high);
    let mut known = start.iter().chain(&low).chain(&high);
    if sides != [start.len(); 2] || apart || known.any(|value| value.is_nan()) {
        return Err(PyValueError::new_err(format!(
            "start, low and high have {}, {} and {} numbers; allowed: as many, no low one above its high one, no NaN",
            start.len(),
            sides[0],
            sides[1],
        )));
    }
    let found = bounded::minimize(&start, bounds, iterations_max, |place| {
        let told = function.call1((place.to_pyarray(py),))?;
        let (value, gradient): (f64, Array<'_>) = told.extract()?;
        let gradient = numbers(&gradient);
        if gradient.len() == place.len() {
            Ok((value, gradient))
        } else {
            Err(PyValueError::new_err(format!(
                "the gradient has {} numbers; allowed: {}",
                gradient.len(),
                place.len()
            )))
        }
    })?;
    Ok((found.value, found.place.into_pyarray(py)))
}

/// A copy of an array, whatever its place in memory.
fn numbers(array: &Array<'_>) -> Vec<f64> {
    array.as_array().to_vec()
}

/// A copy, row by row in memory.
fn rows(matrix: &ArrayView2<'_, f64>) -> Array2<f64> {
    matrix.as_standard_layout().into_owned()
}

fn square(name: &str, matrix: &ArrayView2<'_, f64>) -> PyResult<()> {
    if matrix.is_square() {
        return Ok(());
    }
    let (height, width) = matrix.dim();
    Err(PyValueError::new_err(format!(
        "{name} has {height} rows and {width} columns; allowed: as many"
    )))
}

fn fits(factor: &ArrayView2<'_, f64>, count: usize) -> PyResult<()> {
    square("the matrix", factor)?;
    if factor.nrows() == count {
        return Ok(());
    }
    Err(PyValueError::new_err(format!(
        "the right side has {count} rows; allowed: {}, as the matrix",
        factor.nrows()
    )))
}
