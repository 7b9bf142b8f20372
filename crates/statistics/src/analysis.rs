//! The whole analysis of a series of readings: stable phase, mean, interval, and what was removed and why.

use crate::autocorrelation::{check_limit, coefficient};
use crate::change_points::{MIN_SEGMENT, change_points};
use crate::edm;
use crate::error::{Result, check_level, check_scale, check_values};
use crate::mean_interval::{CorrelatedMean, READINGS_MIN};
use crate::moments::mean;
use crate::stable_phase::{Removed, StablePhase, dominant_segment, stable_phase};
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
    /// What remains of a warm-up may move the mean by up to this much, negative where the warm-up lies below; the
    /// interval reaches further by as much on the other side.
    pub bias: f64,
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
    /// All changes of level: indices of the first reading of each new one.
    pub change_points: Vec<usize>,
    /// What is outside the stable phase, and why.
    pub removed: Vec<Removed>,
    /// How the interval was computed.
    pub method: Method,
    /// Why there is no interval; None where there is one.
    pub reason: Option<String>,
}

/// Fewer independent readings than this bear no interval.
const EFFECTIVE_MIN: f64 = 3.0;
/// Nor do fewer degrees of freedom: even Student's t has no scale below one.
const DOF_MIN: f64 = 1.0;

/// Analyses a series of readings.
pub fn analyze(values: &[f64], options: &Options) -> Result<Analysis> {
    check_values("values", values, 1)?;
    check_scale("values", values)?;
    check_level("confidence", options.confidence)?;
    check_limit(options.autocorrelation_limit)?;
    let (changes, phase) = phases(values, options)?;
    let stable = &values[phase.start..phase.end];
    let estimated = if stable.len() >= READINGS_MIN {
        Some(CorrelatedMean::of(stable)?)
    } else {
        None
    };
    let effective_n = estimated.map_or(stable.len() as f64, |found| found.effective_n());
    let limits = match options.method {
        _ if phase.unsteady => Err(not_steady(&phase, values.len())),
        _ if !phase.found => Err(no_phase(&phase, &changes, values.len())),
        Method::Corrected => corrected(estimated, stable.len(), options.confidence)?,
        Method::Faithful => faithful(stable, options)?,
    };
    Ok(Analysis {
        n: stable.len(),
        mean: mean(stable),
        reason: limits.as_ref().err().cloned(),
        limits: limits
            .ok()
            .map(|(low, high)| (low - phase.bias.max(0.0), high - phase.bias.min(0.0))),
        bias: phase.bias,
        confidence: options.confidence,
        autocorrelation: coefficient(stable, 1),
        subsessions: smallest_uncorrelated(stable, options.autocorrelation_limit)?,
        effective_n,
        stable_start: phase.start,
        stable_end: phase.end,
        change_points: changes,
        removed: phase.removed,
        method: options.method,
    })
}

/// The changes of level and the stable phase, by the method's own rules.
fn phases(values: &[f64], options: &Options) -> Result<(Vec<usize>, StablePhase)> {
    match options.method {
        Method::Corrected => {
            let found = change_points(values, options.min_segment)?;
            let changes: Vec<usize> = found.iter().map(|change| change.index).collect();
            let phase = stable_phase(values, &changes);
            Ok((changes, phase))
        }
        Method::Faithful => {
            let published = edm::Options {
                min_segment: options.min_segment,
                ..edm::Options::default()
            };
            let changes = edm::change_points(values, &published)?;
            let phase = dominant_segment(values.len(), &changes);
            Ok((changes, phase))
        }
    }
}

/// Limits, or why there are none.
type Limits = std::result::Result<(f64, f64), String>;

fn corrected(estimated: Option<CorrelatedMean>, n: usize, confidence: f64) -> Result<Limits> {
    let Some(found) = estimated else {
        return Ok(Err(format!(
            "too few readings: {n}, and at least {READINGS_MIN} are needed; measure longer"
        )));
    };
    if found.effective_n() < EFFECTIVE_MIN || found.dof() < DOF_MIN {
        let worth = found.effective_n();
        return Ok(Err(format!(
            "too few independent readings: {n} readings are worth {worth:.1}; measure longer"
        )));
    }
    Ok(Ok(found.limits(confidence)?))
}

fn faithful(stable: &[f64], options: &Options) -> Result<Limits> {
    let limit = options.autocorrelation_limit;
    Ok(
        match faithful_interval(stable, limit, options.confidence)? {
            Some((_, interval)) => Ok((interval.low, interval.high)),
            None => Err(format!(
                "no subsession size brings the autocorrelation down to {limit}; measure longer"
            )),
        },
    )
}

fn not_steady(phase: &StablePhase, n: usize) -> String {
    format!(
        "not yet steady: the warm-up has not faded enough in {n} readings, of which the last level holds {}; measure longer",
        phase.end - phase.start
    )
}

fn no_phase(phase: &StablePhase, changes: &[usize], n: usize) -> String {
    let share = 100.0 * phase.longest as f64 / n as f64;
    format!(
        "no stable phase: of {} levels the longest holds {share:.0}% of the readings, not more than half; measure longer",
        changes.len() + 1
    )
}
