//! The standard normal distribution.

use std::f64::consts::{PI, SQRT_2};

/// P(Z <= x).
pub fn cdf(x: f64) -> f64 {
    0.5 * libm::erfc(-x / SQRT_2)
}

/// P(Z > x).
pub fn survival(x: f64) -> f64 {
    0.5 * libm::erfc(x / SQRT_2)
}

/// The density at x.
pub fn density(x: f64) -> f64 {
    (-0.5 * x * x).exp() / (2.0 * PI).sqrt()
}

/// The x with P(Z <= x) = p, for p in (0, 1); infinite at the ends.
///
/// A rational start (Acklam's coefficients would do; here Abramowitz and Stegun 26.2.23) polished by Halley's
/// method on the smaller tail, which doubles correct digits until none are wrong.
pub fn quantile(p: f64) -> f64 {
    if p <= 0.0 {
        return f64::NEG_INFINITY;
    }
    if p >= 1.0 {
        return f64::INFINITY;
    }
    let tail = p.min(1.0 - p);
    let t = (-2.0 * tail.ln()).sqrt();
    let mut x = t
        - (2.515_517 + t * (0.802_853 + t * 0.010_328))
            / (1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308)));
    for _ in 0..4 {
        let step = (survival(x) - tail) / density(x);
        x += step / (1.0 - 0.5 * x * step);
    }
    if p < 0.5 { -x } else { x }
}
