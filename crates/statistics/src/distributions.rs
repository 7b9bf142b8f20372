//! Normal, Student's t (central and not), chi-squared, F and beta distributions: cumulative probabilities and
//! quantiles.
//!
//! Degrees of freedom may be any positive number, as Welch-Satterthwaite's are. Checked against
//! SciPy 1.17 to ten digits in `tests/reference.rs`, and to twelve over wide ranges by the tests of the Python package.

pub mod beta;
pub mod chi_squared;
pub mod f;
pub mod noncentral_t;
pub mod normal;
pub mod student_t;

/// The point at which an increasing function of a non-negative number reaches a target.
///
/// Newton's step where it stays inside the bracket, halving otherwise (Numerical Recipes, 9.4 `rtsafe`).
/// `value_and_slope` returns (f(x) - target, f'(x)); `guess` is any positive start.
pub(crate) fn solve_increasing(
    guess: f64,
    mut value_and_slope: impl FnMut(f64) -> (f64, f64),
) -> f64 {
    let mut low = 0.0;
    let mut high = guess.max(1e-300);
    while value_and_slope(high).0 < 0.0 && high < 1e300 {
        low = high;
        high *= 2.0;
    }
    let mut x = if guess > low && guess < high {
        guess
    } else {
        0.5 * (low + high)
    };
    for _ in 0..200 {
        let (value, slope) = value_and_slope(x);
        if value == 0.0 {
            return x;
        }
        if value < 0.0 {
            low = x;
        } else {
            high = x;
        }
        let newton = x - value / slope;
        let next = if newton > low && newton < high {
            newton
        } else {
            0.5 * (low + high)
        };
        if (next - x).abs() <= 4.0 * f64::EPSILON * x.abs()
            || high - low <= 4.0 * f64::EPSILON * high
        {
            return next;
        }
        x = next;
    }
    x
}
