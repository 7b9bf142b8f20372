//! Snedecor's F distribution.

use super::solve_increasing;
use crate::special::{beta_regularized, ln_gamma};

fn beta_arguments(x: f64, dof1: f64, dof2: f64) -> (f64, f64) {
    let total = dof1 * x + dof2;
    (dof1 * x / total, dof2 / total)
}

/// P(X <= x).
pub fn cdf(x: f64, dof1: f64, dof2: f64) -> f64 {
    let (inside, outside) = beta_arguments(x.max(0.0), dof1, dof2);
    beta_regularized(0.5 * dof1, 0.5 * dof2, inside, outside).0
}

/// P(X > x); no number where x is none, or degrees of freedom are not above 0.
pub fn survival(x: f64, dof1: f64, dof2: f64) -> f64 {
    if !(dof1 > 0.0 && dof2 > 0.0 && dof1.is_finite() && dof2.is_finite()) || x.is_nan() {
        return f64::NAN;
    }
    if x == f64::INFINITY {
        return 0.0;
    }
    let (inside, outside) = beta_arguments(x.max(0.0), dof1, dof2);
    beta_regularized(0.5 * dof1, 0.5 * dof2, inside, outside).1
}

/// The density at x > 0.
pub fn density(x: f64, dof1: f64, dof2: f64) -> f64 {
    let (a, b) = (0.5 * dof1, 0.5 * dof2);
    let (inside, outside) = beta_arguments(x, dof1, dof2);
    let log =
        a * inside.ln() + b * outside.ln() - x.ln() - ln_gamma(a) - ln_gamma(b) + ln_gamma(a + b);
    log.exp()
}

/// The x with P(X <= x) = p, for p in (0, 1).
pub fn quantile(p: f64, dof1: f64, dof2: f64) -> f64 {
    if p <= 0.0 {
        return 0.0;
    }
    if p >= 1.0 {
        return f64::INFINITY;
    }
    if p < 0.5 {
        solve_increasing(1.0, |x| {
            let lower = cdf(x, dof1, dof2);
            (lower.ln() - p.ln(), density(x, dof1, dof2) / lower)
        })
    } else {
        solve_increasing(1.0, |x| {
            let upper = survival(x, dof1, dof2);
            ((1.0 - p).ln() - upper.ln(), density(x, dof1, dof2) / upper)
        })
    }
}
