//! What must hold for every input.

use ascar_statistics::analysis::{Method, Options, analyze};
use ascar_statistics::autocorrelation::{autocorrelation, effective_sample_size, integrated_time};
use ascar_statistics::change_points::{ChangePointDetector, change_points};
use ascar_statistics::distributions::{chi_squared, f, normal, student_t};
use ascar_statistics::error::{MAGNITUDE_MAX, MAGNITUDE_MIN};
use ascar_statistics::intervals::{self, mean_t};
use ascar_statistics::mean_interval::CorrelatedMean;
use ascar_statistics::paired::compare_pairs;
use ascar_statistics::sequential;
use ascar_statistics::subsession;
use ascar_statistics::variation;
use ascar_statistics::welch::{Sample, welch};
use ascar_statistics::work_per_second::{Round, work_per_second};
use proptest::prelude::*;

fn series(sizes: std::ops::Range<usize>) -> impl Strategy<Value = Vec<f64>> {
    prop_oneof![
        prop::collection::vec(-1e3..1e3_f64, sizes.clone()),
        // Few distinct values: ties, constant stretches.
        prop::collection::vec((0_u8..3).prop_map(f64::from), sizes.clone()),
        // Levels: each value repeated.
        prop::collection::vec((-50.0..50.0_f64, 15_usize..60), 1..12).prop_flat_map(
            move |levels| {
                let values: Vec<f64> = levels
                    .iter()
                    .flat_map(|&(level, count)| std::iter::repeat_n(level, count))
                    .collect();
                let noise = prop::collection::vec(-1.0..1.0_f64, values.len());
                (Just(values), noise).prop_map(|(values, noise)| {
                    values.iter().zip(noise).map(|(a, b)| a + b).collect()
                })
            }
        ),
    ]
}

proptest! {
    // Failing inputs become tests of their own; no files of seeds.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn quantiles_undo_cumulative_probabilities(p in 1e-6..0.999_999_f64, dof in 0.5..500.0_f64, dof2 in 0.5..500.0_f64) {
        prop_assert!((normal::cdf(normal::quantile(p)) - p).abs() < 1e-12);
        prop_assert!((student_t::cdf(student_t::quantile(p, dof), dof) - p).abs() < 1e-11);
        prop_assert!((chi_squared::cdf(chi_squared::quantile(p, dof), dof) - p).abs() < 1e-11);
        prop_assert!((f::cdf(f::quantile(p, dof, dof2), dof, dof2) - p).abs() < 1e-11);
    }

    #[test]
    fn readings_one_by_one_give_the_change_points_of_the_whole(values in series(1..600), min_segment in 2_usize..40) {
        let mut detector = ChangePointDetector::new(min_segment).unwrap();
        for &value in &values {
            detector.push(value).unwrap();
        }
        let found = detector.change_points().to_vec();
        prop_assert_eq!(&found, &change_points(&values, min_segment).unwrap());
        prop_assert_eq!(detector.values(), &values[..]);
        prop_assert!(found.windows(2).all(|pair| pair[0].index < pair[1].index));
        prop_assert!(found.iter().all(|change| change.index > 0 && change.index < values.len()));
    }

    #[test]
    fn an_analysis_does_not_depend_on_the_unit(values in series(1..400), exponent in -20_i32..20) {
        let scale = 2.0_f64.powi(exponent);
        let scaled: Vec<f64> = values.iter().map(|value| value * scale).collect();
        for method in [Method::Corrected, Method::Faithful] {
            let options = Options { method, ..Options::default() };
            let (one, other) = (analyze(&values, &options).unwrap(), analyze(&scaled, &options).unwrap());
            prop_assert_eq!(one.change_points, other.change_points);
            prop_assert_eq!((one.stable_start, one.stable_end), (other.stable_start, other.stable_end));
            prop_assert_eq!(one.mean * scale, other.mean);
            prop_assert_eq!(one.limits.is_some(), other.limits.is_some());
        }
    }

    #[test]
    fn an_analysis_is_consistent(values in series(1..500)) {
        for method in [Method::Corrected, Method::Faithful] {
            let found = analyze(&values, &Options { method, ..Options::default() }).unwrap();
            prop_assert_eq!(found.n, found.stable_end - found.stable_start);
            prop_assert!(found.n > 0 && found.stable_end <= values.len());
            prop_assert_eq!(found.limits.is_none(), found.reason.is_some());
            prop_assert!(found.effective_n > 0.0 && found.effective_n <= found.n as f64);
            if let Some((low, high)) = found.limits {
                prop_assert!(low <= found.mean + 1e-9 && found.mean <= high + 1e-9, "{found:?}");
            }
            let removed: usize = found.removed.iter().map(|part| part.end - part.start).sum();
            prop_assert_eq!(removed + found.n, values.len());
        }
    }

    #[test]
    fn more_confidence_is_wider(values in series(6..300)) {
        let found = CorrelatedMean::of(&values).unwrap();
        let (narrow, wide) = (found.limits(0.9).unwrap(), found.limits(0.99).unwrap());
        prop_assert!(wide.0 <= narrow.0 && narrow.1 <= wide.1);
    }

    #[test]
    fn autocorrelation_is_a_coefficient(values in series(2..300), lag in 0_usize..20) {
        let found = autocorrelation(&values, lag).unwrap();
        prop_assert!((-1.0 - 1e-12..=1.0 + 1e-12).contains(&found));
        prop_assert!(integrated_time(&values).unwrap() > 0.0);
        prop_assert!(effective_sample_size(&values).unwrap() <= values.len() as f64);
    }

    #[test]
    fn subsessions_meet_their_limit(values in series(3..300), limit in 0.05..0.9_f64) {
        if let Some(found) = subsession::smallest_uncorrelated(&values, limit).unwrap() {
            prop_assert!(found.autocorrelation.abs() <= limit);
            prop_assert_eq!(found.count, values.len() / found.size);
            prop_assert!(found.size <= (values.len() / 3).max(1));
        }
    }

    #[test]
    fn welch_is_antisymmetric(a in series(2..40), b in series(2..40)) {
        let (one, other) = (welch(&a, &b, 0.95).unwrap(), welch(&b, &a, 0.95).unwrap());
        prop_assert_eq!(one.difference, -other.difference);
        prop_assert_eq!(one.difference_low, -other.difference_high);
        prop_assert!((one.p_value - other.p_value).abs() <= 1e-12);
        prop_assert!((0.0..=1.0).contains(&one.p_value));
        // The interval excludes 0 exactly where p is below alpha.
        if (one.p_value - 0.05).abs() > 1e-9 {
            prop_assert_eq!(one.difference_low > 0.0 || one.difference_high < 0.0, one.p_value < 0.05);
        }
    }

    #[test]
    fn proportions_stay_inside(successes in 0_u64..200, failures in 0_u64..200, confidence in 0.5..0.999_f64) {
        let trials = (successes + failures).max(1);
        for method in [intervals::proportion_wilson, intervals::proportion_exact] {
            let found = method(successes.min(trials), trials, confidence).unwrap();
            prop_assert!(0.0 <= found.low && found.low <= found.estimate + 1e-12);
            prop_assert!(found.estimate <= found.high + 1e-12 && found.high <= 1.0);
        }
    }

    #[test]
    fn percentiles_are_between_readings(values in series(1..200), quantile in 0.01..0.99_f64) {
        if let Some(found) = intervals::percentile(&values, quantile, 0.9).unwrap() {
            prop_assert!(found.low <= found.estimate && found.estimate <= found.high);
            prop_assert!(values.contains(&found.low) && values.contains(&found.high));
        }
    }

    #[test]
    fn distances_and_correlations_are_bounded(a in series(2..100), b in series(2..100)) {
        let distance = variation::kolmogorov_smirnov(&a, &b).unwrap();
        prop_assert!((0.0..=1.0).contains(&distance));
        prop_assert_eq!(distance, variation::kolmogorov_smirnov(&b, &a).unwrap());
        prop_assert_eq!(variation::kolmogorov_smirnov(&a, &a).unwrap(), 0.0);
        let n = a.len().min(b.len());
        if let Some(found) = variation::pearson(&a[..n], &b[..n]).unwrap() {
            prop_assert!((-1.0..=1.0).contains(&found));
        }
    }

    #[test]
    fn the_p_value_crosses_alpha_with_the_limits(a in series(6..200), b in series(6..200), alpha in 0.001..0.3_f64) {
        let found = sequential::compare(&a, &b, &sequential::Options { alpha, margin: None }).unwrap();
        let separated = found.difference_limits.0 > 0.0 || found.difference_limits.1 < 0.0;
        if (found.p_value - alpha).abs() > 1e-9 {
            prop_assert_eq!(separated, found.p_value < alpha, "{:?}", found);
        }
        prop_assert_eq!(separated, found.verdict != sequential::Verdict::Undecided);
    }

    #[test]
    fn exact_lines_give_exact_speeds(speed in 1e-3..1e6_f64, overhead in 0.0..10.0_f64, count in 5_usize..40) {
        let rounds: Vec<Round> = (1..=count)
            .map(|index| {
                let work = speed * (20.0 + index as f64);
                Round { work, duration_s: overhead + work / speed }
            })
            .collect();
        let found = work_per_second(&rounds, 0.95, 0.1).unwrap();
        prop_assert!((found.speed / speed - 1.0).abs() < 1e-9, "{found:?}");
        prop_assert!((found.overhead_s - overhead).abs() < 1e-6 * (1.0 + overhead));
    }

    /// Whatever the bits: an answer or a refusal, never a panic and never a NaN in an interval.
    #[test]
    fn hostile_numbers_are_answered_or_refused(bits in prop::collection::vec(any::<u64>(), 0..200), tame in any::<bool>()) {
        let values: Vec<f64> = bits
            .iter()
            .map(|&bits| f64::from_bits(bits))
            .map(|value| if tame && (value.is_nan() || value.abs() > MAGNITUDE_MAX) { 1.0 } else { value })
            .collect();
        let largest = values.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
        let usable = !values.is_empty()
            && values.iter().all(|value| value.abs() <= MAGNITUDE_MAX)
            && (largest == 0.0 || largest >= MAGNITUDE_MIN);
        for method in [Method::Corrected, Method::Faithful] {
            let found = analyze(&values, &Options { method, ..Options::default() });
            prop_assert_eq!(found.is_ok(), usable);
            if let Ok(Some((low, high))) = found.map(|found| found.limits) {
                prop_assert!(low <= high);
            }
        }
        if usable && values.len() >= 6 {
            let found = sequential::compare(&values, &values, &sequential::Options { alpha: 0.05, margin: Some(0.1) });
            prop_assert!(!found.unwrap().p_value.is_nan());
        }
    }
}

#[test]
fn constant_readings_have_a_mean_and_no_scatter() {
    let found = analyze(&[7.0; 100], &Options::default()).unwrap();
    assert_eq!((found.mean, found.limits), (7.0, Some((7.0, 7.0))));
    assert_eq!((found.stable_start, found.stable_end), (0, 100));
    assert!(found.change_points.is_empty());
}

#[test]
fn scatter_too_small_to_be_squared_does_not_pass_for_none() {
    let scattered = |unit: f64| -> Vec<f64> {
        let step = |i: u32| f64::from(i * 7919 % 101) / 1000.0;
        (0..300).map(|i| unit * (1.0 + step(i))).collect()
    };
    let relative = |unit: f64| {
        let found = analyze(&scattered(unit), &Options::default()).unwrap();
        let (low, high) = found.limits.unwrap();
        (high - low) / found.mean
    };
    assert!((relative(MAGNITUDE_MIN) / relative(1.0) - 1.0).abs() < 1e-9);
    for unit in [1e-150, 1e-310] {
        let values = scattered(unit);
        let said = [
            analyze(&values, &Options::default()).unwrap_err(),
            mean_t(&values, 0.95).unwrap_err(),
            Sample::of("a", &values).unwrap_err(),
            compare_pairs(
                &values,
                &scattered(1.0),
                &sequential::Options {
                    alpha: 0.05,
                    margin: None,
                },
            )
            .unwrap_err(),
        ];
        for error in said {
            assert!(error.to_string().contains("take a smaller unit"), "{error}");
        }
    }
    let zeros = analyze(&[0.0; 100], &Options::default()).unwrap();
    assert_eq!(zeros.limits, Some((0.0, 0.0)));
}

#[test]
fn a_number_too_large_is_named_in_few_digits() {
    let error = analyze(&[1.0, 1e300], &Options::default())
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("values is 1e300 at index 1;"), "{error}");
}

#[test]
fn few_readings_bear_no_interval() {
    for n in 1..6 {
        let values: Vec<f64> = (0..n).map(f64::from).collect();
        let found = analyze(&values, &Options::default()).unwrap();
        assert_eq!(found.limits, None);
        assert!(found.reason.unwrap().contains("too few readings"));
    }
}

#[test]
fn refusals_name_argument_value_and_what_is_allowed() {
    let text = |options: Options| analyze(&[1.0; 10], &options).unwrap_err().to_string();
    let options = Options::default();
    assert_eq!(
        text(Options {
            confidence: 1.0,
            ..options
        }),
        "confidence is 1; allowed: a number above 0 and below 1"
    );
    assert!(
        text(Options {
            autocorrelation_limit: f64::NAN,
            ..options
        })
        .starts_with("autocorrelation_limit is NaN;")
    );
    assert!(
        text(Options {
            min_segment: 1,
            ..options
        })
        .starts_with("min_segment is 1;")
    );
    let error = analyze(&[1.0, f64::INFINITY], &options).unwrap_err();
    assert!(
        error.to_string().starts_with("values is inf at index 1;"),
        "{error}"
    );
}
