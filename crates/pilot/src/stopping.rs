//! When a session may stop: an interval that was looked at again and again until it was narrow enough.
//!
//! Stopped at the first look that meets a goal, the interval of a correlated series covers far less often than it
//! promises: the look is the one at which the variance happened to be underestimated. Three things keep the
//! promise: looks are few (readings have grown by a tenth since the last one); there are at least 20 independent
//! samples (Law and Carson 1979, "A sequential procedure for determining the length of a steady-state
//! simulation", have such a minimum too); and the wider of two intervals counts, that of the analysis, which
//! holds for any correlation but whose variance is itself uncertain, and that of an AR(1), which is precise.

use ascar_statistics::distributions::student_t;
use ascar_statistics::moments::mean;

use crate::goal::Rule;
use crate::measurement::Measurement;

/// Fewer independent samples than this are not stopped at.
pub const INDEPENDENT_MIN: usize = 20;
/// Readings grow by this factor from look to look.
const LOOK_GROWTH: f64 = 1.1;
/// By the published rule, which looks after every round: of thousands of readings each look takes longer than a round.
const PUBLISHED_LOOK_GROWTH: f64 = 1.01;

/// Whether readings have grown enough since the last look to look again.
pub fn may_look(readings: usize, looked_at: usize, rule: Rule) -> bool {
    let growth = match rule {
        Rule::Corrected => LOOK_GROWTH,
        Rule::Published { .. } => PUBLISHED_LOOK_GROWTH,
    };
    readings as f64 >= growth * looked_at as f64
}

const CORRELATION_MAX: f64 = 0.99;
const SAMPLES_MIN: f64 = 2.5;

/// The measurement of these readings of a stable phase with the wider of its own interval and that of an AR(1).
#[must_use]
pub fn cautious(mut found: Measurement, stable: &[f64]) -> Measurement {
    let Some((low, high)) = found.limits else {
        return found;
    };
    if stable.len() < 3 {
        return found;
    }
    let (half, independent) = first_order(stable, found.confidence);
    found.limits = Some((low.min(found.mean - half), high.max(found.mean + half)));
    found.independent_samples = found.independent_samples.min(independent as usize);
    found.method.push_str(", for stopping");
    found
}

/// Half the interval of the mean of an AR(1), and the independent samples that it is worth.
///
/// The lag-1 coefficient is corrected for its bias, -(1 + 4 rho)/n (Kendall 1954, "Note on bias in the estimation
/// of autocorrelation"), and not taken below 0.
fn first_order(values: &[f64], confidence: f64) -> (f64, f64) {
    let n = values.len() as f64;
    let center = mean(values);
    let deviations: Vec<f64> = values.iter().map(|value| value - center).collect();
    let total: f64 = deviations.iter().map(|value| value * value).sum();
    if total <= 0.0 {
        return (0.0, n);
    }
    let found = deviations
        .windows(2)
        .map(|pair| pair[0] * pair[1])
        .sum::<f64>()
        / total;
    let rho = (found + (1.0 + 4.0 * found) / n).clamp(0.0, CORRELATION_MAX);
    let independent = (n * (1.0 - rho) / (1.0 + rho)).max(SAMPLES_MIN);
    let quantile = student_t::quantile(0.5 + 0.5 * confidence, independent - 1.0);
    let half = quantile * (total / (n - 1.0) / independent).sqrt();
    (half, independent)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An AR(1) of mean 100 and standard deviation 10.
    fn correlated(seed: u64, n: usize, rho: f64) -> Vec<f64> {
        let mut random = ascar_random::Random::new(seed);
        let mut level = random.normal();
        (0..n)
            .map(|_| {
                level = rho * level + (1.0 - rho * rho).sqrt() * random.normal();
                100.0 + 10.0 * level
            })
            .collect()
    }

    fn whole(values: &[f64]) -> Measurement {
        Measurement::of(values, 0.95, true, Rule::Corrected).unwrap()
    }

    #[test]
    fn the_interval_for_stopping_is_never_narrower() {
        for rho in [0.0, 0.5, 0.9] {
            for seed in 0..20 {
                let values = correlated(seed, 400, rho);
                let plain = whole(&values);
                let told = cautious(plain.clone(), &values[plain.stable_start..plain.stable_end]);
                let Some((low, high)) = plain.limits else {
                    assert_eq!(told, plain);
                    continue;
                };
                let (told_low, told_high) = told.limits.unwrap();
                assert!(told_low <= low && told_high >= high, "{rho}, {seed}");
                assert!(told.independent_samples <= plain.independent_samples);
            }
        }
    }

    #[test]
    fn an_ar1_is_worth_as_many_independent_samples_as_theory_says() {
        let values = correlated(5, 20_000, 0.8);
        let told = cautious(whole(&values), &values);
        let theory = 20_000.0 * 0.2 / 1.8;
        let worth = told.independent_samples as f64;
        assert!((worth / theory - 1.0).abs() < 0.15, "{worth} of {theory}");
    }

    #[test]
    fn constant_readings_are_known_exactly() {
        let values = [7.0; 100];
        let told = cautious(whole(&values), &values);
        assert_eq!(told.limits, Some((7.0, 7.0)));
        assert!(told.independent_samples >= INDEPENDENT_MIN);
    }
}
