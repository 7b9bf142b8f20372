//! Incomplete beta and gamma functions.
//!
//! Both are a leading term times a continued fraction or series (Press et al., Numerical Recipes, 3rd ed.,
//! sections 6.2 and 6.4). The leading terms are the binomial and Poisson densities in Loader's saddle-point
//! form (Loader 2000, "Fast and accurate computation of binomial probabilities"), which keeps full precision
//! where the difference of large log-gammas would lose it.

use std::f64::consts::PI;

const TINY: f64 = 1e-300;
const CONVERGED: f64 = 1e-16;
/// The fractions need about sqrt(max(a, b)) steps: these are enough for 1e10, more degrees of freedom than anybody has
/// readings. Student's t switches to its limit before.
const STEPS_MAX: usize = 200_000;

/// Natural logarithm of the gamma function, x > 0.
pub(crate) fn ln_gamma(x: f64) -> f64 {
    libm::lgamma(x)
}

/// ln(n!) minus Stirling's approximation of it (Loader's `stirlerr`).
pub(crate) fn stirling_error(n: f64) -> f64 {
    if n <= 15.0 {
        return libm::lgamma(n + 1.0) - (n + 0.5) * n.ln() + n - 0.5 * (2.0 * PI).ln();
    }
    let square = n * n;
    (1.0 / 12.0
        - (1.0 / 360.0
            - (1.0 / 1260.0 - (1.0 / 1680.0 - 1.0 / (1188.0 * square)) / square) / square)
            / square)
        / n
}

/// Loader's deviance part: x ln(x / m) + m - x, without cancellation for x close to m.
pub(crate) fn deviance(x: f64, m: f64) -> f64 {
    if (x - m).abs() >= 0.1 * (x + m) {
        return x * (x / m).ln() + m - x;
    }
    let ratio = (x - m) / (x + m);
    let mut sum = (x - m) * ratio;
    let mut term = 2.0 * x * ratio;
    let square = ratio * ratio;
    for index in 1..1000 {
        term *= square;
        let next = sum + term / f64::from(2 * index + 1);
        if next == sum {
            break;
        }
        sum = next;
    }
    sum
}

/// x^a y^b / B(a, b) with y = 1 - x.
fn beta_front(a: f64, b: f64, x: f64, y: f64) -> f64 {
    let n = a + b;
    let log = stirling_error(n)
        - stirling_error(a)
        - stirling_error(b)
        - deviance(a, n * x)
        - deviance(b, n * y);
    log.exp() * (a * b / (2.0 * PI * n)).sqrt()
}

/// The regularised incomplete beta function and its complement: (I_x(a, b), 1 - I_x(a, b)).
///
/// `y` is 1 - x, given apart so that neither end loses digits.
pub(crate) fn beta_regularized(a: f64, b: f64, x: f64, y: f64) -> (f64, f64) {
    debug_assert!(a > 0.0 && b > 0.0);
    if x <= 0.0 {
        return (0.0, 1.0);
    }
    if y <= 0.0 {
        return (1.0, 0.0);
    }
    if x > (a + 1.0) / (a + b + 2.0) {
        let (upper, lower) = beta_regularized_lower(b, a, y, x);
        return (lower, upper);
    }
    beta_regularized_lower(a, b, x, y)
}

fn beta_regularized_lower(a: f64, b: f64, x: f64, y: f64) -> (f64, f64) {
    let value = beta_front(a, b, x, y) * beta_fraction(a, b, x) / a;
    (value, 1.0 - value)
}

/// Lentz's evaluation of the continued fraction of I_x(a, b).
fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    let keep = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / keep(1.0 - (a + b) * x / (a + 1.0));
    let mut h = d;
    for step in 1..STEPS_MAX {
        let m = step as f64;
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / keep(1.0 + even * d);
        c = keep(1.0 + even / c);
        h *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / keep(1.0 + odd * d);
        c = keep(1.0 + odd / c);
        h *= d * c;
        if (d * c - 1.0).abs() < CONVERGED {
            break;
        }
    }
    h
}

/// The regularised incomplete gamma functions: (P(a, x), Q(a, x)).
pub(crate) fn gamma_regularized(a: f64, x: f64) -> (f64, f64) {
    debug_assert!(a > 0.0);
    if x <= 0.0 {
        return (0.0, 1.0);
    }
    // x^a e^-x / Gamma(a + 1), as a Poisson density of a at mean x.
    let front = (-stirling_error(a) - deviance(a, x)).exp() / (2.0 * PI * a).sqrt();
    if x < a + 1.0 {
        let mut term = 1.0;
        let mut sum = 1.0;
        for step in 1..STEPS_MAX {
            term *= x / (a + step as f64);
            sum += term;
            if term < sum * CONVERGED {
                break;
            }
        }
        let lower = front * sum;
        return (lower, 1.0 - lower);
    }
    let mut b = x + 1.0 - a;
    let mut c = 1.0 / TINY;
    let mut d = 1.0 / b;
    let mut h = d;
    for step in 1..STEPS_MAX {
        let i = step as f64;
        let numerator = -i * (i - a);
        b += 2.0;
        d = 1.0 / (numerator * d + b);
        c = b + numerator / c;
        h *= d * c;
        if (d * c - 1.0).abs() < CONVERGED {
            break;
        }
    }
    let upper = front * a * h;
    (1.0 - upper, upper)
}
