//! Work per second from rounds of different work amounts (WPS; ASCAR thesis, section 4.2.1, eq. 4.1-4.4).

use std::collections::BTreeSet;

use ascar_statistics::work_per_second::{self as wps, WorkPerSecond};

use crate::Result;
use crate::goal::{Goal, Rule};
use crate::round::Done;

/// Stopped at the first interval that is narrow enough, fewer rounds cover less than they promise; the thesis
/// asks for 50 where it says that a result can be believed.
pub const ROUNDS_MIN: usize = 40;
/// Of the residuals of rounds, in absolute value.
const AUTOCORRELATION_LIMIT: f64 = 0.1;

/// The speed that rounds of different work amounts tell; None where they make no rising line.
pub fn speed_of<'a>(
    rounds: impl Iterator<Item = &'a Done>,
    confidence: f64,
    rule: Rule,
) -> Result<Option<WorkPerSecond>> {
    let rounds: Vec<wps::Round> = rounds
        .filter_map(|done| {
            done.work_amount.map(|work| wps::Round {
                work,
                duration_s: done.seconds,
            })
        })
        .collect();
    let amounts: BTreeSet<u64> = rounds.iter().map(|round| round.work.to_bits()).collect();
    if amounts.len() < 2 {
        return Ok(None);
    }
    let limit = match rule {
        Rule::Corrected => AUTOCORRELATION_LIMIT,
        Rule::Published {
            autocorrelation_limit,
        } => autocorrelation_limit,
    };
    let found = wps::work_per_second(&rounds, confidence, limit)?;
    Ok((found.speed.is_finite() && found.speed > 0.0).then_some(found))
}

/// Width of the interval over the speed; None where there is none.
pub fn width_relative(speed: &WorkPerSecond) -> Option<f64> {
    speed.limits.map(|(low, high)| (high - low) / speed.speed)
}

/// The work that alpha would have had time for: rounds of less tell more of alpha than of speed.
pub fn work_min(speed: &WorkPerSecond) -> f64 {
    (speed.overhead_s * speed.speed).max(0.0)
}

/// Whether the interval is narrow enough, on rounds enough to stop by.
pub fn meets(speed: &WorkPerSecond, goal: &Goal) -> bool {
    width_relative(speed).is_some_and(|width| width <= goal.interval_width)
        && speed.rounds >= rounds_min(goal)
}

/// The rounds that a speed must rest on to be stopped at.
pub fn rounds_min(goal: &Goal) -> usize {
    match goal.rule {
        Rule::Corrected => ROUNDS_MIN,
        Rule::Published { .. } => goal.readings_min,
    }
}
