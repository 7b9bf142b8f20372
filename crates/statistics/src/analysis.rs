//! The whole analysis of a series of readings: stable phase, mean, interval, and what was removed and why.

use crate::autocorrelation::{check_limit, coefficient};
use crate::change_points::{ChangePoint, MIN_SEGMENT, change_points};
use crate::error::{Result, check_level, check_values};
use crate::mean_interval::{CorrelatedMean, READINGS_MIN};
use crate::moments::mean;
use crate::stable_phase::stable_phase;
use crate::subsession::{Subsessions, faithful_interval, smallest_uncorrelated};

/// How the interval is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// The variance corrected for correlation: the default.
    Corrected,
    /// The published subsession rule.
    Faithful,
}

/// What an analysis may be told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Two-sided confidence level of the interval.
    pub confidence: f64,
    /// The largest |lag-1 autocorrelation| of subsession means.
    pub autocorrelation_limit: f64,
    /// How the interval is computed.
    pub method: Method,
    /// The shortest phase that is told apart.
    pub min_segment: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            confidence: 0.95,
            autocorrelation_limit: 0.1,
            method: Method::Corrected,
            min_segment: MIN_SEGMENT,
        }
    }
}

/// What a series of readings says.
#[derive(Clone, Debug, PartialEq)]
pub struct Analysis {
    /// Readings in the stable phase, which everything below is about.
    pub n: usize,
    /// Their mean.
    pub mean: f64,
    /// The interval of the mean; None where no honest one exists.
    pub limits: Option<(f64, f64)>,
    /// Confidence level of the interval.
    pub confidence: f64,
    /// Lag-1 autocorrelation of the readings.
    pub autocorrelation: f64,
    /// How readings merge into nearly uncorrelated ones; None where no merging achieves it.
    pub subsessions: Option<Subsessions>,
    /// How many independent readings the stable phase is worth.
    pub effective_n: f64,
    /// Index of the first stable reading.
    pub stable_start: usize,
    /// Index after the last stable reading.
    pub stable_end: usize,
    /// All changes of level.
    pub change_points: Vec<ChangePoint>,
    /// How the interval was computed.
    pub method: Method,
    /// Why there is no interval, or why the stable phase is not the whole; None where there is nothing to say.
    pub reason: Option<String>,
}

/// Fewer independent readings than this bear no interval.
const EFFECTIVE_MIN: f64 = 3.0;

/// Analyses a series of readings.
pub fn analyze(values: &[f64], options: &Options) -> Result<Analysis> {
    check_values("values", values, 1)?;
    check_level("confidence", options.confidence)?;
    check_limit(options.autocorrelation_limit)?;
    let n = values.len();
    let changes = change_points(values, options.min_segment)?;
    let phase = stable_phase(values, &changes);
    let (start, end, dominant) = (phase.start, phase.end, phase.dominant);
    let stable = &values[start..end];
    let subsessions = smallest_uncorrelated(stable, options.autocorrelation_limit)?;
    let estimated = if stable.len() >= READINGS_MIN {
        Some(CorrelatedMean::of(stable)?)
    } else {
        None
    };
    let effective_n = estimated.map_or(stable.len() as f64, |found| found.effective_n);
    let interval = match options.method {
        Method::Corrected => match estimated.filter(|found| found.effective_n >= EFFECTIVE_MIN) {
            Some(found) => Some(found.limits(options.confidence)?),
            None => None,
        },
        Method::Faithful => {
            faithful_interval(stable, options.autocorrelation_limit, options.confidence)?
                .map(|(_, interval)| (interval.low, interval.high))
        }
    };
    let reason = if !dominant {
        let share = 100.0 * phase.longest as f64 / n as f64;
        Some(format!(
            "no stable phase: the level changes {} times and the longest phase holds {share:.0}% of the readings, not more than half",
            changes.len()
        ))
    } else if interval.is_none() {
        Some(format!(
            "too few independent readings: {n} readings are worth {effective_n:.1}"
        ))
    } else {
        None
    };
    Ok(Analysis {
        n: stable.len(),
        mean: mean(stable),
        limits: interval.filter(|_| dominant),
        confidence: options.confidence,
        autocorrelation: coefficient(stable, 1),
        subsessions,
        effective_n,
        stable_start: start,
        stable_end: end,
        change_points: changes,
        method: options.method,
        reason,
    })
}
