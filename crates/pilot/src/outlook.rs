//! How long a session will still take: intervals narrow with the square root of what was measured.

use ascar_statistics::work_per_second::WorkPerSecond;

use crate::findings::Finding;
use crate::goal::{Goal, Rule};
use crate::speed;
use crate::stopping::INDEPENDENT_MIN;

/// Seconds until the last of the indicators' goals is reached; None while that cannot be told.
///
/// `spent_s` are the seconds of measuring that the findings rest on.
pub fn findings_left_s(findings: &[Finding], spent_s: f64) -> Option<f64> {
    let mut most: Option<f64> = None;
    for finding in findings {
        let Some(goal) = finding.goal else { continue };
        let found = finding.measurement.as_ref()?;
        let width = found.width_relative()?;
        let missing = match goal.rule {
            Rule::Corrected => (goal.readings_min as f64 / found.n as f64)
                .max(INDEPENDENT_MIN as f64 / found.independent_samples.max(1) as f64),
            Rule::Published { .. } => goal.readings_min as f64 / found.subsessions().max(1) as f64,
        };
        let factor = squared(width / goal.interval_width).max(missing);
        most = Some(most.map_or(factor, |other| other.max(factor)));
    }
    most.map(|factor| left_s(factor, spent_s))
}

/// Seconds until the speed's goal is reached; None while that cannot be told.
pub fn speed_left_s(speed: Option<&WorkPerSecond>, goal: &Goal, spent_s: f64) -> Option<f64> {
    let found = speed?;
    let width = speed::width_relative(found)?;
    let rounds = speed::rounds_min(goal) as f64 / found.rounds.max(1) as f64;
    Some(left_s(
        squared(width / goal.interval_width).max(rounds),
        spent_s,
    ))
}

fn squared(value: f64) -> f64 {
    value * value
}

fn left_s(factor: f64, spent_s: f64) -> f64 {
    spent_s * (factor - 1.0).max(0.0)
}
