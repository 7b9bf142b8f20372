//! The beta distribution: for Clopper and Pearson's interval and binomial tails.

use crate::special::beta_regularized;

/// P(X <= x).
pub fn cdf(x: f64, a: f64, b: f64) -> f64 {
    let inside = x.clamp(0.0, 1.0);
    beta_regularized(a, b, inside, 1.0 - inside).0
}

/// More of a or b takes longer than anybody waits; counts are fewer.
const COUNT_MAX: f64 = 1e10;

/// The x with P(X <= x) = p, by halving: 60 steps leave no bit of a number in [0, 1] undecided. No number for p
/// outside [0, 1], or where a or b is not above 0 and at most 1e10.
pub fn quantile(p: f64, a: f64, b: f64) -> f64 {
    let counts = a > 0.0 && b > 0.0 && a <= COUNT_MAX && b <= COUNT_MAX;
    if !(counts && (0.0..=1.0).contains(&p)) {
        return f64::NAN;
    }
    if p == 0.0 || p == 1.0 {
        return p;
    }
    let (mut low, mut high) = (0.0_f64, 1.0_f64);
    while high - low > f64::EPSILON * high && high > 1e-300 {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if cdf(middle, a, b) < p {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

/// P(Binomial(n, p) <= k), from the beta integral (Abramowitz and Stegun 26.5.24).
pub fn binomial_cdf(k: u64, n: u64, p: f64) -> f64 {
    if k >= n {
        return 1.0;
    }
    beta_regularized((n - k) as f64, k as f64 + 1.0, 1.0 - p, p).0
}
