//! Student's t distribution with any positive number of degrees of freedom.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

use super::{normal, solve_increasing};
use crate::special::{beta_regularized, ln_gamma};

/// Beyond this many degrees of freedom the second-order expansion around the normal is exact to 1e-13.
const DOF_NORMAL: f64 = 1e8;

/// P(T > x).
pub fn survival(x: f64, dof: f64) -> f64 {
    debug_assert!(dof > 0.0);
    if x < 0.0 {
        return 1.0 - survival(-x, dof);
    }
    if x.is_infinite() {
        return 0.0;
    }
    if dof > DOF_NORMAL {
        return normal::survival(normal_point(x, dof));
    }
    let square = x * x;
    0.5 * beta_regularized(
        0.5 * dof,
        0.5,
        dof / (dof + square),
        square / (dof + square),
    )
    .0
}

/// The point of the normal distribution that stands for x where degrees of freedom are many (Abramowitz and Stegun
/// 26.7.8).
fn normal_point(x: f64, dof: f64) -> f64 {
    x * (1.0 - 0.25 / dof) / (1.0 + x * x / (2.0 * dof)).sqrt()
}

/// P(T <= x).
pub fn cdf(x: f64, dof: f64) -> f64 {
    survival(-x, dof)
}

/// P(|T| > |x|), the two-sided p-value.
pub fn two_sided(x: f64, dof: f64) -> f64 {
    (2.0 * survival(x.abs(), dof)).min(1.0)
}

/// The density at x.
pub fn density(x: f64, dof: f64) -> f64 {
    if dof > DOF_NORMAL {
        return normal::density(x);
    }
    let log = ln_gamma(0.5 * (dof + 1.0))
        - ln_gamma(0.5 * dof)
        - 0.5 * (dof * PI).ln()
        - 0.5 * (dof + 1.0) * (x * x / dof).ln_1p();
    log.exp()
}

/// P(|T| <= x) for x >= 0, without a wrong digit where it is small.
fn within(x: f64, dof: f64) -> f64 {
    if dof > DOF_NORMAL {
        return libm::erf(normal_point(x, dof) * FRAC_1_SQRT_2);
    }
    let square = x * x;
    beta_regularized(
        0.5 * dof,
        0.5,
        dof / (dof + square),
        square / (dof + square),
    )
    .1
}

/// The x with P(T <= x) = p, for p in [0, 1]; infinite at the ends, no number for other p or dof.
pub fn quantile(p: f64, dof: f64) -> f64 {
    if !(dof > 0.0 && (0.0..=1.0).contains(&p)) {
        return f64::NAN;
    }
    if p == 0.5 || p == 0.0 || p == 1.0 || dof.is_infinite() {
        return normal::quantile(p);
    }
    let beside = p - 0.5;
    // Solved in the logarithm of a probability: of the tail, nearly straight in ln x for the heavy tails of few
    // degrees; or of what is between -x and x.
    let x = if beside.abs() < 0.25 {
        let between = 2.0 * beside.abs();
        let log_between = between.ln();
        solve_increasing(0.5 * between / density(0.0, dof), |x| {
            let inside = within(x, dof);
            (inside.ln() - log_between, 2.0 * density(x, dof) / inside)
        })
    } else {
        let tail = p.min(1.0 - p);
        let z = -normal::quantile(tail);
        // Cornish-Fisher's first term (Abramowitz and Stegun 26.7.5) as the start.
        let guess = z + (z * z * z + z) / (4.0 * dof);
        let log_tail = tail.ln();
        solve_increasing(guess, |x| {
            let upper = survival(x, dof);
            (log_tail - upper.ln(), density(x, dof) / upper)
        })
    };
    x.copysign(beside)
}
