//! The noncentral t distribution: of (Z + δ) / S, Z standard normal, S² chi-squared over its degrees of freedom.

use std::f64::consts::{LN_2, PI};

use super::normal;
use crate::special::{deviance, stirling_error};

/// What is left out of the integral on each side is below exp(-this).
const LEFT_OUT: f64 = 42.0;
/// Parts of the range of S, and standard deviations of Z around the step that their integrand has.
const PARTS: u32 = 12;
const STEP_WIDTH: i32 = 9;

/// Places in (0, 1) and weights of Gauss and Legendre's rule of 16, one half of it (Abramowitz and Stegun, table 25.4).
const RULE: [(f64, f64); 8] = [
    (0.095_012_509_837_637_44, 0.189_450_610_455_068_5),
    (0.281_603_550_779_258_9, 0.182_603_415_044_923_6),
    (0.458_016_777_657_227_4, 0.169_156_519_395_002_54),
    (0.617_876_244_402_643_7, 0.149_595_988_816_576_73),
    (0.755_404_408_355_003, 0.124_628_971_255_533_87),
    (0.865_631_202_387_831_7, 0.095_158_511_682_492_79),
    (0.944_575_023_073_232_6, 0.062_253_523_938_647_89),
    (0.989_400_934_991_649_9, 0.027_152_459_411_754_096),
];

/// P(T <= x), for 1 to 1e12 degrees of freedom; no number for others, or where an argument is none.
///
/// The mean over S of P(Z <= x S - δ), to 1e-13. The usual series (Lenth, "Algorithm AS 243", Applied Statistics 38,
/// 1989) takes the more terms the larger δ is; this integral takes the same work for any.
pub fn cdf(x: f64, dof: f64, noncentrality: f64) -> f64 {
    if !((1.0..=1e12).contains(&dof) && noncentrality.is_finite()) || x.is_nan() {
        return f64::NAN;
    }
    if x.is_infinite() {
        return if x > 0.0 { 1.0 } else { 0.0 };
    }
    let half = 0.5 * dof;
    // Without what the density of S vanishes by: half (s² - 1 - ln s²).
    let constant = LN_2 + 0.5 * (half / (2.0 * PI)).ln() - stirling_error(half);
    let fading = |s: f64| half * deviance(1.0, s * s);
    let part = |from: f64, to: f64| {
        let (middle, reach) = (0.5 * (from + to), 0.5 * (to - from));
        let at =
            |s: f64| (constant - s.ln() - fading(s)).exp() * normal::cdf(x * s - noncentrality);
        let sum: f64 = RULE
            .iter()
            .map(|&(place, weight)| {
                weight * (at(middle - reach * place) + at(middle + reach * place))
            })
            .sum();
        reach * sum
    };
    let cuts = cuts(x, dof, noncentrality, fading);
    let found: f64 = cuts.windows(2).map(|ends| part(ends[0], ends[1])).sum();
    found.clamp(0.0, 1.0)
}

/// Where the range of S is cut: in equal parts, and around the step of the other factor, which may be steep.
fn cuts(x: f64, dof: f64, noncentrality: f64, fading: impl Fn(f64) -> f64) -> Vec<f64> {
    let stride = 0.5 / (2.0 * dof).sqrt();
    let (mut low, mut high) = (1.0, 1.0);
    while low > 0.0 && fading(low) < LEFT_OUT {
        low -= stride;
    }
    while fading(high) < LEFT_OUT {
        high += stride;
    }
    low = f64::max(low, 0.0);
    let mut found: Vec<f64> = (0..=PARTS)
        .map(|part| low + (high - low) * f64::from(part) / f64::from(PARTS))
        .collect();
    let steps = (-STEP_WIDTH..=STEP_WIDTH).map(|away| (noncentrality + f64::from(away)) / x);
    found.extend(steps.filter(|&place| place > low && place < high));
    found.sort_by(f64::total_cmp);
    found
}
