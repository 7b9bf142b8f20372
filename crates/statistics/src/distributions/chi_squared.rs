//! The chi-squared distribution.

use super::{normal, solve_increasing};
use crate::special::{gamma_regularized, ln_gamma};

/// P(X <= x).
pub fn cdf(x: f64, dof: f64) -> f64 {
    gamma_regularized(0.5 * dof, 0.5 * x).0
}

/// P(X > x); no number where x is none, or the degrees of freedom are not above 0.
pub fn survival(x: f64, dof: f64) -> f64 {
    if !(dof > 0.0 && dof.is_finite()) || x.is_nan() {
        return f64::NAN;
    }
    if x == f64::INFINITY {
        return 0.0;
    }
    gamma_regularized(0.5 * dof, 0.5 * x).1
}

/// The density at x > 0.
pub fn density(x: f64, dof: f64) -> f64 {
    let half = 0.5 * dof;
    ((half - 1.0) * (0.5 * x).ln() - 0.5 * x - ln_gamma(half)).exp() * 0.5
}

/// The x with P(X <= x) = p, for p in [0, 1]; no number for other p or dof.
pub fn quantile(p: f64, dof: f64) -> f64 {
    quantile_between(p, 1.0 - p, dof)
}

/// The x with P(X > x) = q, for q in [0, 1]; no number for other q or dof.
pub fn quantile_above(q: f64, dof: f64) -> f64 {
    quantile_between(1.0 - q, q, dof)
}

/// The x with p below and q above it; the smaller of the two tells it.
fn quantile_between(p: f64, q: f64, dof: f64) -> f64 {
    let both_are_probabilities = [p, q].iter().all(|one| (0.0..=1.0).contains(one));
    if !(dof > 0.0 && dof.is_finite() && both_are_probabilities) {
        return f64::NAN;
    }
    if p == 0.0 {
        return 0.0;
    }
    if q == 0.0 {
        return f64::INFINITY;
    }
    // Wilson and Hilferty 1931 as the start.
    let spread = 2.0 / (9.0 * dof);
    let z = if p < q {
        normal::quantile(p)
    } else {
        -normal::quantile(q)
    };
    let root = 1.0 - spread + z * spread.sqrt();
    let guess = if root > 0.1 {
        dof * root.powi(3)
    } else {
        dof * 0.01
    };
    if p < q {
        solve_increasing(guess, |x| {
            let lower = cdf(x, dof);
            (lower.ln() - p.ln(), density(x, dof) / lower)
        })
    } else {
        solve_increasing(guess, |x| {
            let upper = survival(x, dof);
            (q.ln() - upper.ln(), density(x, dof) / upper)
        })
    }
}
