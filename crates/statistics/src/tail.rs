//! What remains of a warm-up after the last change of level: tails fitted to the series.
//!
//! A warm-up that fades slowly ends in a part that no test tells from noise and that still moves the mean. Its size
//! follows from the part that is seen. Tails of six families are fitted to the series from its beginning and from each
//! change of level on: mean + amplitude f(t / time) + autoregressive noise. Each is one explanation of the series. Their
//! likelihoods, with a price for each parameter and for each level before the tail (Schwarz 1978, "Estimating the
//! dimension of a model"), are their weights (Hoeting, Madigan, Raftery and Volinsky 1999, "Bayesian model averaging").
//! What is left of the weighted tails after a cut is the bias that the mean of the rest must be expected to have. The
//! cut is the one for which the standard error of the rest and that bias together are least, as MSER does for the
//! standard error alone (White 1997, "An effective truncation heuristic for bias reduction in simulation output").

use crate::autoregression::{Autoregression, burg};
use crate::moments::mean;
use crate::subsession::merge;

/// How the warm-up of a series ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tail {
    /// Nothing is left that the series shows.
    None,
    /// From the reading at `cut` on, what is left moves the mean by `bias`, negative where the warm-up lies below.
    Until {
        /// Index of the first reading to keep.
        cut: usize,
        /// The expected bias of the mean of the rest, with an allowance for what is not known of it.
        bias: f64,
    },
    /// After every cut that leaves enough readings the bias is too large beside the standard error.
    Unsteady,
}

/// Shorter series show no tail.
const READINGS_MIN: usize = 40;
/// The series is averaged over equal blocks, this many at most.
const BLOCKS_MAX: usize = 128;
/// Time constants grow by this factor.
const TIME_GROWTH: f64 = 1.3;
/// Price of a tail in the criterion: its amplitude.
const TAIL_PRICE: f64 = 6.0;
/// Price of a family other than the exponential.
const FAMILY_PRICE: f64 = 4.0;
/// Price of one level before the tail, times ln n: as that of a change (`change_points`).
const LEVEL_PRICE: f64 = 3.0;
/// The autoregression's largest order; blocks show little more.
const ORDER_MAX: usize = 3;
/// Explanations this far above the best one's criterion have no weight (e^-6).
const CRITERION_REACH: f64 = 12.0;
/// Standard deviations of the expected bias that are added to it.
const ALLOWANCE: f64 = 0.5;
/// Width of an interval in standard errors, about.
const WIDTH: f64 = 4.0;
/// At most this share of the series is cut off.
const CUT_MAX: f64 = 0.8;
/// A bias of more standard errors than this has no interval: the series is not steady yet.
const BIAS_MAX: f64 = 2.0;
/// A bias of fewer standard errors is left alone where the best explanation has no tail.
const BIAS_MIN: f64 = 0.3;

/// Tails of one shape.
struct Family {
    /// What is left of the warm-up at u time constants.
    decay: fn(f64) -> f64,
    /// The shortest time constant, in blocks.
    time_min: f64,
    /// The longest, over the series.
    time_max: f64,
    price: f64,
}

const fn family(decay: fn(f64) -> f64) -> Family {
    Family {
        decay,
        time_min: 1.5,
        time_max: 0.6,
        price: TAIL_PRICE + FAMILY_PRICE,
    }
}

const fn slow(decay: fn(f64) -> f64) -> Family {
    Family {
        time_min: 0.5,
        time_max: 0.3,
        ..family(decay)
    }
}

/// Exponential; slower ones, as of several time constants or of a power; faster ones, as of ramps.
const FAMILIES: [Family; 6] = [
    Family {
        price: TAIL_PRICE,
        ..family(|u| (-u).exp())
    },
    slow(|u| (-u.sqrt()).exp()),
    slow(|u| 1.0 / (1.0 + u)),
    slow(|u| 1.0 / ((1.0 + u) * (1.0 + u))),
    family(|u| (-u * u).exp()),
    family(|u| (-u * u * u * u).exp()),
];

/// A family's tail with one time constant, at each block.
struct Form {
    family: usize,
    values: Vec<f64>,
}

/// A form fitted to a stretch: its amplitude, and the sum of squares that it leaves.
#[derive(Clone, Copy)]
struct Fit {
    amplitude: f64,
    left: f64,
}

/// One explanation of the whole series.
struct Explanation<'a> {
    criterion: f64,
    /// The first block of the tail.
    start: usize,
    amplitude: f64,
    /// None: no tail.
    form: Option<&'a Form>,
}

/// The best explanation, as far as the cut depends on it.
struct Best {
    criterion: f64,
    start: usize,
    long_run_variance: f64,
    has_tail: bool,
}

/// What remains of the warm-up in a series whose changes of level are known.
pub fn tail(values: &[f64], changes: &[usize]) -> Tail {
    if values.len() < READINGS_MIN {
        return Tail::None;
    }
    let block = values.len().div_ceil(BLOCKS_MAX);
    // What does not fill a block is left out at the beginning, where it matters least.
    let skipped = values.len() % block;
    let merged = merge(&values[skipped..], block);
    let forms = forms(merged.len());
    let order = ORDER_MAX.min(merged.len() / 8).max(1);
    let mut starts = vec![0];
    starts.extend(
        changes
            .iter()
            .map(|&at| at.saturating_sub(skipped).div_ceil(block))
            .filter(|&start| start > 0 && start + 4 * ORDER_MAX <= merged.len()),
    );
    starts.dedup();
    let mut explanations = Vec::new();
    let mut best: Option<Best> = None;
    for number in 0..starts.len() {
        explain(
            &merged,
            &starts[..=number],
            &forms,
            order,
            &mut explanations,
            &mut best,
        );
    }
    let Some(best) = best.filter(|best| best.criterion.is_finite()) else {
        return Tail::None;
    };
    match cut(&explanations, &best, merged.len()) {
        Tail::Until { cut, bias } => Tail::Until {
            cut: skipped + cut * block,
            bias,
        },
        other => other,
    }
}

fn forms(count: usize) -> Vec<Form> {
    let mut found = Vec::new();
    for (number, family) in FAMILIES.iter().enumerate() {
        let mut time = family.time_min;
        while time < family.time_max * count as f64 {
            let values = (0..count)
                .map(|at| (family.decay)((at as f64 + 0.5) / time))
                .collect();
            found.push(Form {
                family: number,
                values,
            });
            time *= TIME_GROWTH;
        }
    }
    found
}

/// All explanations with levels between the given starts and a tail, or none, from the last of them on.
fn explain<'a>(
    merged: &[f64],
    starts: &[usize],
    forms: &'a [Form],
    order: usize,
    explanations: &mut Vec<Explanation<'a>>,
    best: &mut Option<Best>,
) {
    let start = starts[starts.len() - 1];
    let stretch = &merged[start..];
    let levels: Vec<f64> = starts
        .windows(2)
        .flat_map(|pair| centered(merged[pair[0]..pair[1]].to_vec()))
        .collect();
    let with_levels = |residuals: Vec<f64>| {
        let mut all = levels.clone();
        all.extend(residuals);
        burg(&all, order)
    };
    let price = LEVEL_PRICE * (starts.len() - 1) as f64 * (merged.len() as f64).ln();
    let mut note = |model: &Autoregression, criterion: f64, has_tail: bool| {
        if best.as_ref().is_none_or(|best| criterion < best.criterion) {
            *best = Some(Best {
                criterion,
                start,
                long_run_variance: model.long_run_variance(),
                has_tail,
            });
        }
    };
    let constant = with_levels(centered(stretch.to_vec()));
    let criterion = constant.criterion + price;
    note(&constant, criterion, false);
    explanations.push(Explanation {
        criterion,
        start,
        amplitude: 0.0,
        form: None,
    });
    let rough = fits(stretch, &[], forms);
    let Some(first) = least(&rough, forms, None) else {
        return;
    };
    let noise = burg(&without(stretch, rough[first], &forms[first]), order);
    let fitted = fits(stretch, &noise.coefficients, forms);
    for (number, family) in FAMILIES.iter().enumerate() {
        let Some(top) = least(&fitted, forms, Some(number)) else {
            continue;
        };
        let model = with_levels(without(stretch, fitted[top], &forms[top]));
        let criterion = model.criterion + price + family.price;
        note(&model, criterion, true);
        let own = || (0..forms.len()).filter(|&index| forms[index].family == number);
        // The time constants of a family share the weight of one explanation.
        let shared = (own().count() as f64).ln();
        explanations.extend(own().map(|index| {
            let worse = stretch.len() as f64 * (fitted[index].left / fitted[top].left).ln();
            Explanation {
                criterion: criterion + shared + worse,
                start,
                amplitude: fitted[index].amplitude,
                form: Some(&forms[index]),
            }
        }));
    }
}

/// Least squares of mean + amplitude form, for each form, where an autoregression has whitened both.
fn fits(stretch: &[f64], coefficients: &[f64], forms: &[Form]) -> Vec<Fit> {
    let wanted = centered(whitened(stretch, coefficients));
    let total: f64 = wanted.iter().map(|value| value * value).sum();
    forms
        .iter()
        .map(|form| {
            let shape = centered(whitened(&form.values[..stretch.len()], coefficients));
            let square: f64 = shape.iter().map(|value| value * value).sum();
            let product: f64 = shape.iter().zip(&wanted).map(|(a, b)| a * b).sum();
            if square <= f64::EPSILON {
                return Fit {
                    amplitude: 0.0,
                    left: total,
                };
            }
            let amplitude = product / square;
            Fit {
                amplitude,
                left: (total - product * amplitude).max(f64::MIN_POSITIVE),
            }
        })
        .collect()
}

/// The index of the best fit, of one family or of all.
fn least(fits: &[Fit], forms: &[Form], family: Option<usize>) -> Option<usize> {
    (0..forms.len())
        .filter(|&index| family.is_none_or(|wanted| forms[index].family == wanted))
        .min_by(|&a, &b| fits[a].left.total_cmp(&fits[b].left))
}

fn without(stretch: &[f64], fit: Fit, form: &Form) -> Vec<f64> {
    let rest = stretch.iter().zip(&form.values);
    centered(rest.map(|(value, f)| value - fit.amplitude * f).collect())
}

fn centered(mut values: Vec<f64>) -> Vec<f64> {
    let center = mean(&values);
    values.iter_mut().for_each(|value| *value -= center);
    values
}

fn whitened(values: &[f64], coefficients: &[f64]) -> Vec<f64> {
    (coefficients.len()..values.len())
        .map(|at| {
            let earlier = values[..at].iter().rev();
            let carried: f64 = coefficients.iter().zip(earlier).map(|(c, v)| c * v).sum();
            values[at] - carried
        })
        .collect()
}

/// The cut, in blocks, after which standard error and bias together are least.
fn cut(explanations: &[Explanation<'_>], best: &Best, count: usize) -> Tail {
    let weighted: Vec<(f64, Vec<f64>)> = explanations
        .iter()
        .filter(|one| one.criterion < best.criterion + CRITERION_REACH)
        .map(|one| {
            let weight = (-0.5 * (one.criterion - best.criterion)).exp();
            (weight, one.remaining(count))
        })
        .collect();
    let total: f64 = weighted.iter().map(|(weight, _)| weight).sum();
    let expected = |at: usize| {
        let sum = |of: &dyn Fn(f64) -> f64| {
            let parts = weighted.iter().map(|(weight, left)| weight * of(left[at]));
            parts.sum::<f64>() / total
        };
        let middle = sum(&|left| left);
        let spread = sum(&|left| (left - middle) * (left - middle)).sqrt();
        middle + (ALLOWANCE * spread).copysign(middle)
    };
    let last = ((CUT_MAX * count as f64) as usize).min(count - 1);
    let found = (best.start..=last)
        .map(|at| {
            let error = (best.long_run_variance / (count - at) as f64).sqrt();
            (at, expected(at), error)
        })
        .min_by(|a, b| (WIDTH * a.2 + a.1.abs()).total_cmp(&(WIDTH * b.2 + b.1.abs())));
    match found {
        None => Tail::Unsteady,
        Some((_, bias, error)) if bias.abs() > BIAS_MAX * error => Tail::Unsteady,
        Some((_, bias, error)) if !best.has_tail && bias.abs() < BIAS_MIN * error => Tail::None,
        Some((at, bias, _)) => Tail::Until { cut: at, bias },
    }
}

impl Explanation<'_> {
    /// By how much the tail moves the mean of the blocks from each on.
    fn remaining(&self, count: usize) -> Vec<f64> {
        let mut left = vec![0.0; count];
        let Some(form) = self.form else {
            return left;
        };
        let mut sum = 0.0;
        for at in (0..count).rev() {
            // Before its start the tail is not known; no cut is made there that matters.
            sum += at
                .checked_sub(self.start)
                .map_or(1.0, |since| form.values[since]);
            left[at] = self.amplitude * sum / (count - at) as f64;
        }
        left
    }
}

#[cfg(test)]
mod tests {
    use ascar_random::Random;

    use super::*;
    use crate::analysis::{Options, analyze};

    /// AR(1) of mean 100 and deviation 10 that warms up as `lean` says, in standard deviations below its mean.
    fn series(seed: u64, n: usize, rho: f64, lean: impl Fn(f64) -> f64) -> Vec<f64> {
        let mut random = Random::new(seed);
        let mut level = random.normal();
        (0..n)
            .map(|at| {
                level = rho * level + (1.0 - rho * rho).sqrt() * random.normal();
                100.0 + 10.0 * (level - lean(at as f64 / n as f64))
            })
            .collect()
    }

    /// How many of 200 sessions have an interval, and how many of these hold 100.
    fn covered(n: usize, rho: f64, lean: impl Fn(f64) -> f64) -> (usize, usize) {
        let limits: Vec<(f64, f64)> = (0..200)
            .filter_map(|seed| {
                let values = series(seed, n, rho, &lean);
                analyze(&values, &Options::default()).unwrap().limits
            })
            .collect();
        let held = limits
            .iter()
            .filter(|(low, high)| (*low..=*high).contains(&100.0));
        (limits.len(), held.count())
    }

    #[test]
    fn an_exponential_of_an_eighth_of_the_record_leaves_intervals_that_hold() {
        for (n, rho) in [(300, 0.0), (1000, 0.6), (1000, 0.9)] {
            let (given, held) = covered(n, rho, |share| 3.0 * (-8.0 * share).exp());
            assert!(given >= 130, "{n}, {rho}: {given}");
            assert!(held * 100 >= 90 * given, "{n}, {rho}: {held} of {given}");
        }
    }

    #[test]
    fn steady_series_keep_their_intervals() {
        for (n, rho) in [(300, 0.0), (1000, 0.6), (3000, 0.9)] {
            let (given, held) = covered(n, rho, |_| 0.0);
            assert!(given >= 194, "{n}, {rho}: {given}");
            assert!(held * 100 >= 90 * given, "{n}, {rho}: {held} of {given}");
        }
    }

    #[test]
    fn a_warm_up_as_long_as_the_record_is_not_steady_and_says_so() {
        for lean in [
            |share: f64| 10.0 * (-2.0 * share).exp(),
            |share: f64| 5.0 - 5.0 * share,
        ] {
            let found = analyze(&series(1, 1000, 0.0, lean), &Options::default()).unwrap();
            assert_eq!(found.limits, None);
            let reason = found.reason.unwrap();
            assert!(reason.contains("measure longer"), "{reason}");
        }
        let slow = series(3, 1000, 0.6, |share| 2.0 * (-2.5 * share).exp());
        assert_eq!(tail(&slow, &[]), Tail::Unsteady);
    }

    #[test]
    fn the_interval_reaches_further_away_from_the_warm_up() {
        let mut lower = 0;
        for seed in 0..50 {
            let values = series(seed, 600, 0.0, |share| 3.0 * (-10.0 * share).exp());
            let found = analyze(&values, &Options::default()).unwrap();
            let Some((low, high)) = found.limits else {
                continue;
            };
            lower += usize::from(found.bias < 0.0);
            if found.bias < -0.2 {
                assert!(high - found.mean > found.mean - low, "{seed}: {found:?}");
            }
        }
        assert!(lower >= 34, "{lower}");
    }

    #[test]
    fn few_readings_constant_ones_and_extreme_ones_have_no_tail() {
        assert_eq!(tail(&[1.0; 39], &[]), Tail::None);
        assert_eq!(tail(&[7.0; 1000], &[]), Tail::None);
        assert_eq!(tail(&[0.0; 1000], &[500]), Tail::None);
        let huge = series(2, 500, 0.0, |_| 0.0)
            .iter()
            .map(|v| v * 1e146)
            .collect::<Vec<_>>();
        assert!(!matches!(tail(&huge, &[100, 499]), Tail::Until { bias, .. } if bias.is_nan()));
    }
}
