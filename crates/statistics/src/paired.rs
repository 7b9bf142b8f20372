//! Pairs of runs compared after every pair: exact from the second pair on, however often one looks.
//!
//! Two systems are run in turns. What both runs of a pair share (a drift of the machine) cancels in their
//! difference, and differences of normal runs are normal whatever the two variances are. So the mixture of
//! Student t likelihood ratios of `sequential` holds for them exactly and for any number of pairs: under the right
//! Haar prior on the scale it is a martingale (Lai 1976; Wang and Ramdas 2025, "Anytime-valid t-tests and
//! confidence sequences for Gaussian means with unknown variance").
//!
//! The ratio's limits are all r for which the mean of a - r b is not told from zero (Fieller 1954, for pairs).

use crate::error::{Error, Result, check_level, check_scale, check_values};
use crate::moments::mean;
use crate::sequential::{
    Comparison, Options, PRIOR_SAMPLES_LARGE, Verdict, critical_under, log_factor,
};

/// Fresh runs differ by a few percent, and gains worth having by tens of them; with the priors for small effects
/// no number of pairs below seven could decide.
const PRIOR_PAIRS: [f64; 3] = PRIOR_SAMPLES_LARGE;
const PAIRS_MIN: usize = 2;

/// Compares runs of a and b, the i-th of a with the i-th of b; may be called after every pair.
///
/// At least two pairs; one side's runs beyond the other's number are left aside.
pub fn compare_pairs(a: &[f64], b: &[f64], options: &Options) -> Result<Comparison> {
    options.check()?;
    check_values("a", a, PAIRS_MIN)?;
    check_values("b", b, PAIRS_MIN)?;
    check_scale("a", a)?;
    check_scale("b", b)?;
    let n = a.len().min(b.len());
    let (a, b) = (&a[..n], &b[..n]);
    let moments = Moments::of(a, b);
    let (count, dof) = (n as f64, n as f64 - 1.0);
    let difference = moments.mean_a - moments.mean_b;
    let critical = critical_under(&PRIOR_PAIRS, count, dof, options.alpha);
    let error = moments.squared_error(1.0).sqrt();
    let (half, p_value) = match () {
        () if error <= 0.0 && difference == 0.0 => (0.0, 1.0),
        () if error <= 0.0 => (0.0, 0.0),
        () => {
            let factor = log_factor(&PRIOR_PAIRS, difference.abs() / error, count, dof);
            (critical * error, (-factor).exp().min(1.0))
        }
    };
    let limits = (difference - half, difference + half);
    let ratio_limits = moments.ratio_limits(critical);
    Ok(Comparison {
        difference,
        difference_limits: limits,
        ratio: moments.mean_a / moments.mean_b,
        ratio_limits,
        p_value,
        effective_n: count,
        verdict: Verdict::of(limits, ratio_limits, options.margin),
    })
}

/// Half of the interval of a mean of pairs, in standard deviations of a pair; infinite where nothing can be said.
///
/// `dof` are the degrees of freedom of the standard deviation: one less than the pairs, or more where it is known from
/// other pairs too. `prior` is the number of pairs whose mean has the scatter of the effects that are looked for; None:
/// that of `compare_pairs`.
pub fn half_width(pairs: usize, dof: f64, alpha: f64, prior: Option<f64>) -> Result<f64> {
    check_level("alpha", alpha)?;
    if pairs < 1 {
        return Err(Error::new("pairs", pairs, "1 or more"));
    }
    for (name, value) in [("dof", dof), ("prior", prior.unwrap_or(1.0))] {
        if !(value.is_finite() && value > 0.0) {
            return Err(Error::new(name, value, "a finite number above 0"));
        }
    }
    let one = prior.map(|samples| [samples]);
    let priors = one.as_ref().map_or(&PRIOR_PAIRS[..], |one| &one[..]);
    let count = pairs as f64;
    Ok(critical_under(priors, count, dof, alpha) / count.sqrt())
}

/// Means of both sides, with the variances and the covariance of these means.
struct Moments {
    mean_a: f64,
    mean_b: f64,
    error_a: f64,
    error_b: f64,
    shared: f64,
}

impl Moments {
    fn of(a: &[f64], b: &[f64]) -> Self {
        let (mean_a, mean_b) = (mean(a), mean(b));
        let scale = 1.0 / (a.len() as f64 * (a.len() as f64 - 1.0));
        let mut sums = (0.0, 0.0, 0.0);
        for (x, y) in a.iter().zip(b) {
            let (x, y) = (x - mean_a, y - mean_b);
            sums = (sums.0 + x * x, sums.1 + y * y, sums.2 + x * y);
        }
        Self {
            mean_a,
            mean_b,
            error_a: sums.0 * scale,
            error_b: sums.1 * scale,
            shared: sums.2 * scale,
        }
    }

    /// Squared standard error of mean(a) - r mean(b).
    fn squared_error(&self, r: f64) -> f64 {
        (self.error_a - 2.0 * r * self.shared + r * r * self.error_b).max(0.0)
    }

    /// All r with |mean(a) - r mean(b)| within `critical` standard errors; None where they have no end.
    fn ratio_limits(&self, critical: f64) -> Option<(f64, f64)> {
        let ratio = self.mean_a / self.mean_b;
        if self.error_a <= 0.0 && self.error_b <= 0.0 {
            return ratio.is_finite().then_some((ratio, ratio));
        }
        // In units of b's mean the equation A r^2 - 2 B r + C = 0 is free of overflow.
        let unit = critical / self.mean_b;
        let unit = unit * unit;
        let square = 1.0 - unit * self.error_b;
        if !ratio.is_finite() || square.is_nan() || square <= 0.0 {
            return None;
        }
        let middle = ratio - unit * self.shared;
        let constant = ratio * ratio - unit * self.error_a;
        let root = (middle * middle - square * constant).max(0.0).sqrt();
        Some(((middle - root) / square, (middle + root) / square))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(margin: Option<f64>) -> Options {
        Options {
            alpha: 0.01,
            margin,
        }
    }

    /// Normal deviates from a linear congruential generator (Numerical Recipes) and Box-Muller.
    fn normals(seed: u64, n: usize) -> Vec<f64> {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut uniform = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            ((state >> 11) as f64 + 0.5) / (1u64 << 53) as f64
        };
        (0..n)
            .map(|_| {
                (-2.0 * uniform().ln()).sqrt() * (2.0 * std::f64::consts::PI * uniform()).cos()
            })
            .collect()
    }

    #[test]
    fn the_half_width_is_that_of_a_comparison_and_narrower_with_a_known_scatter() {
        let a: Vec<f64> = normals(7, 12).iter().map(|x| 100.0 + x).collect();
        let b = vec![100.0; 12];
        let found = compare_pairs(&a, &b, &options(None)).unwrap();
        let sd = Moments::of(&a, &b).squared_error(0.0).sqrt() * 12f64.sqrt();
        let half = half_width(12, 11.0, 0.01, None).unwrap() * sd;
        let (low, high) = found.difference_limits;
        assert!((half - (high - low) / 2.0).abs() < 1e-9 * half);
        let known = half_width(12, 60.0, 0.01, None).unwrap();
        assert!(known < 0.95 * half / sd);
        assert!(half_width(12, 60.0, 0.01, Some(2.0)).unwrap() < known);
        assert_eq!(half_width(1, 1e-3, 1e-9, None).unwrap(), f64::INFINITY);
        for (pairs, dof, alpha, prior) in [
            (0, 1.0, 0.01, None),
            (2, 0.0, 0.01, None),
            (2, f64::NAN, 0.01, None),
            (2, 1.0, 0.0, None),
            (2, 1.0, 0.01, Some(-1.0)),
        ] {
            assert!(half_width(pairs, dof, alpha, prior).is_err());
        }
    }

    #[test]
    fn a_clear_gain_is_decided_within_five_pairs() {
        let a = [1380.0, 1401.0, 1362.0, 1390.0, 1377.0];
        let b = [1000.0, 1012.0, 985.0, 1003.0, 991.0];
        let found = compare_pairs(&a, &b, &options(None)).unwrap();
        assert_eq!(found.verdict, Verdict::Greater);
        assert!(found.p_value < 0.01);
        let (low, high) = found.ratio_limits.unwrap();
        assert!(1.3 < low && low < found.ratio && found.ratio < high && high < 1.46);
        let turned = compare_pairs(&b, &a, &options(None)).unwrap();
        assert_eq!(turned.verdict, Verdict::Less);
        assert!((turned.p_value - found.p_value).abs() < 1e-15);
    }

    #[test]
    fn two_pairs_decide_nothing_at_a_strict_level() {
        let found = compare_pairs(&[2.0, 2.1], &[1.0, 1.01], &options(None)).unwrap();
        assert_eq!(found.verdict, Verdict::Undecided);
        assert!(found.p_value > 0.01);
    }

    #[test]
    fn what_both_sides_share_cancels() {
        let drift = [0.0, 300.0, -200.0, 500.0, 100.0, -400.0];
        let noise = normals(3, 12);
        let a: Vec<f64> = (0..6).map(|i| 1100.0 + drift[i] + noise[i]).collect();
        let b: Vec<f64> = (0..6).map(|i| 1000.0 + drift[i] + noise[6 + i]).collect();
        assert_eq!(
            compare_pairs(&a, &b, &options(None)).unwrap().verdict,
            Verdict::Greater
        );
    }

    #[test]
    fn equal_sides_are_shown_to_be_equivalent() {
        let noise = normals(11, 60);
        let a: Vec<f64> = noise[..30].iter().map(|z| 100.0 + 0.5 * z).collect();
        let b: Vec<f64> = noise[30..].iter().map(|z| 100.0 + 0.5 * z).collect();
        assert_eq!(
            compare_pairs(&a, &b, &options(Some(0.02))).unwrap().verdict,
            Verdict::Equivalent
        );
        assert_eq!(
            compare_pairs(&a, &b, &options(None)).unwrap().verdict,
            Verdict::Undecided
        );
    }

    #[test]
    fn the_limits_and_the_p_value_agree_and_the_ratio_solves_its_equation() {
        let noise = normals(5, 16);
        let a: Vec<f64> = noise[..8].iter().map(|z| 110.0 + 4.0 * z).collect();
        let b: Vec<f64> = noise[8..].iter().map(|z| 100.0 + 4.0 * z).collect();
        let found = compare_pairs(&a, &b, &options(None)).unwrap();
        assert_eq!(found.p_value < 0.01, found.difference_limits.0 > 0.0);
        let (low, high) = found.ratio_limits.unwrap();
        for r in [low, high] {
            let scaled: Vec<f64> = b.iter().map(|value| r * value).collect();
            let at = compare_pairs(&a, &scaled, &options(None)).unwrap();
            assert!((at.p_value - 0.01).abs() < 1e-9, "{}", at.p_value);
        }
    }

    #[test]
    fn looks_after_every_pair_keep_the_level() {
        let mut wrong = 0;
        for seed in 0..2000 {
            let noise = normals(seed, 60);
            let (a, b) = noise.split_at(30);
            // The sides' variances differ by a factor of nine.
            let a: Vec<f64> = a.iter().map(|z| 100.0 + 3.0 * z).collect();
            let b: Vec<f64> = b.iter().map(|z| 100.0 + z).collect();
            wrong += usize::from((2..=30).any(|n| {
                let found = compare_pairs(
                    &a[..n],
                    &b[..n],
                    &Options {
                        alpha: 0.05,
                        margin: None,
                    },
                );
                matches!(found.unwrap().verdict, Verdict::Less | Verdict::Greater)
            }));
        }
        // 5% of 2,000 is 100, with a standard deviation of 10.
        assert!((10..=120).contains(&wrong), "{wrong} of 2000");
    }

    #[test]
    fn constant_sides_are_taken_at_their_word() {
        let equal = compare_pairs(&[5.0; 3], &[5.0; 3], &options(Some(0.02))).unwrap();
        assert_eq!((equal.verdict, equal.p_value), (Verdict::Equivalent, 1.0));
        let apart = compare_pairs(&[6.0; 3], &[5.0; 3], &options(None)).unwrap();
        assert_eq!((apart.verdict, apart.p_value), (Verdict::Greater, 0.0));
        assert!(compare_pairs(&[1.0], &[1.0], &options(None)).is_err());
        assert!(compare_pairs(&[1.0, f64::NAN], &[1.0, 2.0], &options(None)).is_err());
        let zero = compare_pairs(&[1.0, 2.0, 3.0], &[0.0, 0.0, 0.0], &options(None)).unwrap();
        assert_eq!(zero.ratio_limits, None);
    }
}
