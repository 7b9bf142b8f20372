//! Factors against what they are factors of; minima against the conditions that a minimum within bounds meets.

use std::convert::Infallible;

use ascar_numerics::bounded::{Bounds, minimize};
use ascar_numerics::cholesky::{factor, solve, solve_and_invert, solve_transposed};
use ascar_random::Random;
use ndarray::Array2;

/// A covariance of points on a line, with a little on its diagonal.
fn covariance(n: usize, random: &mut Random) -> Array2<f64> {
    let places: Vec<f64> = (0..n).map(|_| random.unit()).collect();
    Array2::from_shape_fn((n, n), |(row, column)| {
        let apart = places[row] - places[column];
        (-4.0 * apart * apart).exp() + if row == column { 1e-6 } else { 0.0 }
    })
}

fn largest(matrix: &Array2<f64>) -> f64 {
    matrix
        .iter()
        .fold(0.0, |most, value| f64::max(most, value.abs()))
}

#[test]
fn a_factor_makes_its_matrix_again_and_solves_with_it() {
    let mut random = Random::new(1);
    for n in [0, 1, 5, 16, 17, 33, 64, 100, 150] {
        let matrix = covariance(n, &mut random);
        let right: Vec<f64> = (0..n).map(|_| random.normal()).collect();
        let mut upper = matrix.clone();
        assert!(factor(&mut upper.view_mut()));
        assert!(largest(&(upper.t().dot(&upper) - &matrix)) < 1e-13);
        let solution = solve(&upper.view(), &right);
        let told = matrix.dot(&ndarray::Array1::from(solution.clone()));
        for (found, expected) in told.iter().zip(&right) {
            assert!((found - expected).abs() < 1e-7, "n = {n}");
        }
        let mut columns = matrix.clone();
        solve_transposed(&upper.view(), &mut columns.view_mut());
        assert!(largest(&(columns - &upper)) < 1e-8, "n = {n}");
        let mut inverse = matrix.clone();
        let solved = solve_and_invert(&mut inverse.view_mut(), &right).expect("it is definite");
        assert_eq!(solved.solution, solution);
        let whole = Array2::from_shape_fn((n, n), |(row, column)| {
            inverse[(row.min(column), row.max(column))]
        });
        assert!(largest(&(matrix.dot(&whole) - Array2::<f64>::eye(n))) < 1e-6);
    }
}

#[test]
fn what_is_not_positive_definite_is_told() {
    let mut random = Random::new(2);
    for n in [1, 16, 40, 90] {
        for pivot in [0.0, -1.0, f64::NAN, f64::NEG_INFINITY] {
            let mut matrix = covariance(n, &mut random);
            matrix[(n - 1, n - 1)] = pivot;
            assert!(!factor(&mut matrix.view_mut()));
        }
    }
}

#[test]
fn a_minimum_within_bounds_cannot_be_left_downhill() {
    let mut random = Random::new(3);
    for count in [1, 2, 7, 25] {
        let hessian = {
            let base = Array2::from_shape_fn((count, count), |_| random.normal());
            base.t().dot(&base) + Array2::<f64>::eye(count)
        };
        let middle: Vec<f64> = (0..count).map(|_| 2.0 * random.normal()).collect();
        let function = |x: &[f64]| -> Result<(f64, Vec<f64>), Infallible> {
            let apart: ndarray::Array1<f64> = x.iter().zip(&middle).map(|(a, b)| a - b).collect();
            let slope = hessian.dot(&apart);
            Ok((0.5 * apart.dot(&slope), slope.to_vec()))
        };
        let (low, high) = (vec![-1.0; count], vec![0.5; count]);
        let bounds = Bounds {
            low: &low,
            high: &high,
        };
        let Ok(found) = minimize(&vec![9.0; count], bounds, 200, function);
        let Ok((value, slope)) = function(&found.place);
        assert_eq!(value, found.value);
        for (&place, slope) in found.place.iter().zip(slope) {
            assert!((-1.0..=0.5).contains(&place));
            let downhill = if slope > 0.0 {
                place > -1.0
            } else {
                place < 0.5
            };
            assert!(!downhill || slope.abs() < 1e-3, "{place} {slope}");
        }
        assert!(found.iterations <= 200 && found.evaluations >= found.iterations);
    }
}

#[test]
fn an_error_of_the_function_ends_the_search() {
    let bounds = Bounds {
        low: &[-1.0],
        high: &[1.0],
    };
    let mut asked = 0;
    let found = minimize(&[0.5], bounds, 40, |x| {
        asked += 1;
        if asked < 3 {
            Ok((x[0] * x[0], vec![2.0 * x[0]]))
        } else {
            Err("lost")
        }
    });
    assert!(found == Err("lost") || asked < 3);
}
