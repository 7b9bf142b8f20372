//! The chi-squared distribution.

use super::{normal, solve_increasing};
use crate::special::{gamma_regularized, ln_gamma};

/// P(X <= x).
pub fn cdf(x: f64, dof: f64) -> f64 {
    gamma_regularized(0.5 * dof, 0.5 * x).0
}

/// P(X > x).
pub fn survival(x: f64, dof: f64) -> f64 {
    gamma_regularized(0.5 * dof, 0.5 * x).1
}

/// The density at x > 0.
pub fn density(x: f64, dof: f64) -> f64 {
    let half = 0.5 * dof;
    ((half - 1.0) * (0.5 * x).ln() - 0.5 * x - ln_gamma(half)).exp() * 0.5
}

/// The x with P(X <= x) = p, for p in (0, 1).
pub fn quantile(p: f64, dof: f64) -> f64 {
    if p <= 0.0 {
        return 0.0;
    }
    if p >= 1.0 {
        return f64::INFINITY;
    }
    // Wilson and Hilferty 1931 as the start.
    let spread = 2.0 / (9.0 * dof);
    let root = 1.0 - spread + normal::quantile(p) * spread.sqrt();
    let guess = if root > 0.1 {
        dof * root.powi(3)
    } else {
        dof * 0.01
    };
    if p < 0.5 {
        solve_increasing(guess, |x| {
            let lower = cdf(x, dof);
            (lower.ln() - p.ln(), density(x, dof) / lower)
        })
    } else {
        solve_increasing(guess, |x| {
            let upper = survival(x, dof);
            ((1.0 - p).ln() - upper.ln(), density(x, dof) / upper)
        })
    }
}
