//! Cholesky factors: A = Uᵀ U, U upper triangular.
//!
//! Each operation halves its matrix until what is left is small; between the halves there are only products of
//! matrices, which are fast (Gustavson, "Recursion leads to automatic variable blocking for dense linear-algebra
//! algorithms", IBM Journal of Research and Development 41, 1997). Matrices are row by row in memory: the inner
//! loops run along rows.

use ndarray::linalg::general_mat_mul;
use ndarray::{Array2, ArrayView2, ArrayViewMut2, Axis, s};

/// Matrices of this many rows are no longer halved.
const SMALL: usize = 8;
/// A square of this many rows is computed as a whole, although only its upper triangle is needed.
const WHOLE: usize = 48;

/// What the evidence of a normal model needs of a covariance.
#[derive(Debug, Clone, PartialEq)]
pub struct Solved {
    /// Half the logarithm of its determinant.
    pub half_log_determinant: f64,
    /// Its inverse times the right side.
    pub solution: Vec<f64>,
}

/// Turn a symmetric positive definite matrix into its upper factor U; only its upper triangle is read.
///
/// Below the diagonal there are zeros afterwards. False where it is not positive definite, not finite, or too close
/// to singular to be told from it; what is in the matrix then means nothing.
///
/// # Panics
///
/// The matrix is not square.
#[must_use]
pub fn factor(matrix: &mut ArrayViewMut2<'_, f64>) -> bool {
    assert!(matrix.is_square(), "a square matrix");
    let found = factor_upper(matrix);
    for (index, mut row) in matrix.rows_mut().into_iter().enumerate() {
        row.iter_mut().take(index).for_each(|value| *value = 0.0);
    }
    found
}

/// Turn a right side B into U⁻ᵀ B: what a factor's transpose maps to B.
///
/// # Panics
///
/// U is not square, or B has other rows.
pub fn solve_transposed(factor: &ArrayView2<'_, f64>, right: &mut ArrayViewMut2<'_, f64>) {
    let n = factor.nrows();
    assert!(
        factor.is_square() && right.nrows() == n,
        "as many rows as the factor"
    );
    if n > SMALL {
        let half = halved(n);
        let (first, across, last) = upper_parts(factor, half);
        let (mut above, mut below) = right.view_mut().split_at(Axis(0), half);
        solve_transposed(&first, &mut above);
        general_mat_mul(-1.0, &across.t(), &above, 1.0, &mut below);
        solve_transposed(&last, &mut below);
        return;
    }
    for index in 0..n {
        let (before, mut rest) = right.view_mut().split_at(Axis(0), index);
        let mut row = rest.row_mut(0);
        for (known, &share) in before.rows().into_iter().zip(factor.column(index)) {
            row.scaled_add(-share, &known);
        }
        let scale = 1.0 / factor[(index, index)];
        row.map_inplace(|value| *value *= scale);
    }
}

/// (Uᵀ U)⁻¹ b.
///
/// # Panics
///
/// U is not square, or b has another length.
#[must_use]
pub fn solve(factor: &ArrayView2<'_, f64>, right: &[f64]) -> Vec<f64> {
    let n = factor.nrows();
    assert!(
        factor.is_square() && right.len() == n,
        "as many numbers as the factor has rows"
    );
    let mut found = right.to_vec();
    for (index, row) in factor.rows().into_iter().enumerate() {
        let (known, rest) = found.split_at_mut(index + 1);
        known[index] /= row[index];
        for (value, &share) in rest.iter_mut().zip(row.iter().skip(index + 1)) {
            *value -= share * known[index];
        }
    }
    for index in (0..n).rev() {
        let row = factor.row(index);
        let (left, known) = found.split_at_mut(index + 1);
        let told: f64 = row
            .iter()
            .skip(index + 1)
            .zip(known.iter())
            .map(|(share, value)| share * value)
            .sum();
        left[index] = (left[index] - told) / row[index];
    }
    found
}

/// Solve with a symmetric positive definite matrix, which gives way to its inverse; only upper triangles are read and
/// mean anything afterwards.
///
/// None where it is not positive definite, as [`factor`] has it.
///
/// # Panics
///
/// The matrix is not square, or the right side has another length.
#[must_use]
pub fn solve_and_invert(matrix: &mut ArrayViewMut2<'_, f64>, right: &[f64]) -> Option<Solved> {
    if !factor(matrix) {
        return None;
    }
    let solved = Solved {
        half_log_determinant: matrix.diag().iter().map(|pivot| pivot.ln()).sum(),
        solution: solve(&matrix.view(), right),
    };
    invert_triangle(matrix);
    square(matrix);
    Some(solved)
}

/// Where a matrix is cut in two.
fn halved(n: usize) -> usize {
    (n / 2).next_multiple_of(SMALL)
}

/// The parts of an upper triangle: the first triangle, what is right of it, the last triangle.
fn upper_parts<'a>(
    matrix: &'a ArrayView2<'_, f64>,
    half: usize,
) -> (
    ArrayView2<'a, f64>,
    ArrayView2<'a, f64>,
    ArrayView2<'a, f64>,
) {
    let (above, below) = matrix.view().split_at(Axis(0), half);
    let (first, across) = above.split_at(Axis(1), half);
    (first, across, below.split_at(Axis(1), half).1)
}

/// The same parts, to be changed.
fn upper_parts_mut<'a>(
    matrix: &'a mut ArrayViewMut2<'_, f64>,
    half: usize,
) -> (
    ArrayViewMut2<'a, f64>,
    ArrayViewMut2<'a, f64>,
    ArrayViewMut2<'a, f64>,
) {
    let (above, below) = matrix.view_mut().split_at(Axis(0), half);
    let (first, across) = above.split_at(Axis(1), half);
    (first, across, below.split_at(Axis(1), half).1)
}

/// The factor in the upper triangle; what is below the diagonal is lost.
fn factor_upper(matrix: &mut ArrayViewMut2<'_, f64>) -> bool {
    let n = matrix.nrows();
    if n > SMALL {
        let (mut first, mut across, mut last) = upper_parts_mut(matrix, halved(n));
        if !factor_upper(&mut first) {
            return false;
        }
        solve_transposed(&first.view(), &mut across);
        add_square(-1.0, &across.t(), &mut last);
        return factor_upper(&mut last);
    }
    for index in 0..n {
        let (mut above, mut below) = matrix.view_mut().split_at(Axis(0), index + 1);
        let mut row = above.row_mut(index);
        let pivot = row[index];
        if pivot.is_nan() || pivot <= 0.0 {
            return false;
        }
        let scale = 1.0 / pivot.sqrt();
        row.iter_mut().skip(index).for_each(|value| *value *= scale);
        for (place, mut later) in below.rows_mut().into_iter().enumerate() {
            let from = index + 1 + place;
            later
                .slice_mut(s![from..])
                .scaled_add(-row[from], &row.slice(s![from..]));
        }
    }
    true
}

/// The upper triangle of C + sign A Aᵀ in C; what is below its diagonal is lost.
fn add_square(sign: f64, rows: &ArrayView2<'_, f64>, target: &mut ArrayViewMut2<'_, f64>) {
    let n = target.nrows();
    if n <= WHOLE {
        general_mat_mul(sign, rows, &rows.t(), 1.0, target);
        return;
    }
    let half = halved(n);
    let (mut first, mut across, mut last) = upper_parts_mut(target, half);
    let (above, below) = rows.view().split_at(Axis(0), half);
    add_square(sign, &above, &mut first);
    general_mat_mul(sign, &above, &below.t(), 1.0, &mut across);
    add_square(sign, &below, &mut last);
}

/// U⁻¹ in place of U, which has zeros below the diagonal and keeps them.
fn invert_triangle(factor: &mut ArrayViewMut2<'_, f64>) {
    let n = factor.nrows();
    if n > SMALL {
        let (mut first, mut across, mut last) = upper_parts_mut(factor, halved(n));
        invert_triangle(&mut first);
        invert_triangle(&mut last);
        let mut product = Array2::zeros(across.dim());
        general_mat_mul(1.0, &across, &last, 0.0, &mut product);
        general_mat_mul(-1.0, &first, &product, 0.0, &mut across);
        return;
    }
    for column in 0..n {
        let own = 1.0 / factor[(column, column)];
        factor[(column, column)] = own;
        for row in 0..column {
            let told: f64 = (row..column)
                .map(|index| factor[(row, index)] * factor[(index, column)])
                .sum();
            // What is below is not needed for the rows that follow.
            factor[(row, column)] = -told * own;
        }
    }
}

/// The upper triangle of V Vᵀ in place of V, which has zeros below the diagonal; these are lost.
fn square(triangle: &mut ArrayViewMut2<'_, f64>) {
    let n = triangle.nrows();
    if n > SMALL {
        let (mut first, mut across, mut last) = upper_parts_mut(triangle, halved(n));
        square(&mut first);
        add_square(1.0, &across.view(), &mut first);
        let product = across.dot(&last.t());
        across.assign(&product);
        square(&mut last);
        return;
    }
    for row in 0..n {
        for column in row..n {
            let told = triangle
                .slice(s![row, column..])
                .dot(&triangle.slice(s![column, column..]));
            triangle[(row, column)] = told;
        }
    }
}
