//! A mean with what is known about it.

use ascar_statistics::analysis::{self, Method, Options};
use ascar_statistics::distributions::student_t;

use crate::Result;
use crate::goal::Rule;

/// A mean with what is known about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// Over the stable phase.
    pub mean: f64,
    /// The interval of the mean; None where no honest one exists.
    pub limits: Option<(f64, f64)>,
    /// Confidence level of the interval.
    pub confidence: f64,
    /// Readings in the stable phase.
    pub n: usize,
    /// Independent samples that the stable phase is worth, whole ones.
    pub independent_samples: usize,
    /// Lag-1 autocorrelation of the stable phase.
    pub autocorrelation: f64,
    /// Readings merged into one subsession (section 4.2.2).
    pub subsession_size: usize,
    /// First reading of the stable phase.
    pub stable_start: usize,
    /// One past its last reading.
    pub stable_end: usize,
    /// Indices at which the mean shifts.
    pub change_points: Vec<usize>,
    /// How the interval was computed.
    pub method: String,
    /// Why there is no interval; empty where there is one.
    pub reason: String,
}

impl Measurement {
    /// Analyses readings; `whole` says that all are from the stable phase, and no change points are looked for.
    pub fn of(values: &[f64], confidence: f64, whole: bool, rule: Rule) -> Result<Self> {
        if let [value] = values {
            return Ok(Self::single(*value, confidence));
        }
        let usual = match rule {
            Rule::Corrected => Options::default(),
            Rule::Published {
                autocorrelation_limit,
            } => Options {
                method: Method::Faithful,
                autocorrelation_limit,
                ..Options::default()
            },
        };
        let min_segment = if whole {
            usual.min_segment.max(values.len())
        } else {
            usual.min_segment
        };
        let found = analysis::analyze(
            values,
            &Options {
                confidence,
                min_segment,
                ..usual
            },
        )?;
        let (method, independent_samples) = match (rule, found.subsessions) {
            (Rule::Published { .. }, Some(merged)) => ("faithful", merged.count),
            (Rule::Published { .. }, None) => ("faithful", 1),
            (Rule::Corrected, _) => ("corrected", found.effective_n as usize),
        };
        Ok(Self {
            mean: found.mean,
            limits: found.limits,
            confidence,
            n: found.n,
            independent_samples,
            autocorrelation: found.autocorrelation,
            subsession_size: found.subsessions.map_or(found.n, |merged| merged.size),
            stable_start: found.stable_start,
            stable_end: found.stable_end,
            change_points: found.change_points,
            method: method.to_owned(),
            reason: found.reason.unwrap_or_default(),
        })
    }

    /// A number that was read once: it has no interval, and says so.
    pub fn single(value: f64, confidence: f64) -> Self {
        Self {
            mean: value,
            limits: None,
            confidence,
            n: 1,
            independent_samples: 1,
            autocorrelation: 0.0,
            subsession_size: 1,
            stable_start: 0,
            stable_end: 1,
            change_points: Vec::new(),
            method: "single".to_owned(),
            reason: "one reading has no interval".to_owned(),
        }
    }

    /// Subsessions the stable phase divides into; what is left over at its end is in none.
    pub fn subsessions(&self) -> usize {
        self.n / self.subsession_size.max(1)
    }

    /// Width of the interval over the absolute mean; None where there is none.
    pub fn width_relative(&self) -> Option<f64> {
        let (low, high) = self.limits?;
        (self.mean != 0.0).then(|| (high - low) / self.mean.abs())
    }

    /// Half the interval over its t quantile: the mean's standard error.
    pub fn standard_error(&self) -> Option<f64> {
        let (low, high) = self.limits?;
        if self.independent_samples < 2 {
            return None;
        }
        let dof = self.independent_samples as f64 - 1.0;
        Some((high - low) / 2.0 / student_t::quantile(0.5 + 0.5 * self.confidence, dof))
    }

    /// The mean speed from the mean time: the interval's ends change places, where both are above zero.
    #[must_use]
    pub fn inverted(mut self) -> Self {
        self.mean = 1.0 / self.mean;
        self.limits = match self.limits {
            Some((low, high)) if low > 0.0 => Some((1.0 / high, 1.0 / low)),
            Some(_) => {
                "the interval of the mean reciprocal reaches 0; measure longer"
                    .clone_into(&mut self.reason);
                None
            }
            None => None,
        };
        self.method = format!("harmonic, {}", self.method);
        self
    }
}
