//! When a measurement is good enough: the goals behind quick, normal and strict.

use crate::measurement::Measurement;
use crate::stopping::INDEPENDENT_MIN;
use crate::{Error, Result};

/// How intervals are computed, and which of them may be stopped at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    /// Allows for correlation and for having looked again and again.
    Corrected,
    /// As published (section 4.2): readings merge into subsessions until the magnitude of their autocorrelation is at
    /// most this limit, and the first interval that is narrow enough ends the session.
    Published {
        /// Above 0 and below 1.
        autocorrelation_limit: f64,
    },
}

/// What a measurement must reach.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Goal {
    /// Total width of the mean's interval, over the mean.
    pub interval_width: f64,
    /// The fewest readings in the stable phase; by the published rule, the fewest subsessions.
    pub readings_min: usize,
    /// Of the interval.
    pub confidence: f64,
    /// The fewest rounds of a session; between rounds systems differ more than inside one.
    pub rounds_min: usize,
    /// How the interval is computed.
    pub rule: Rule,
}

/// The figures of a preset of the released Pilot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Published {
    /// Its name.
    pub name: &'static str,
    /// What it asks for.
    pub goal: Goal,
    /// The shortest round that counts.
    pub short_round_s: f64,
}

impl Goal {
    /// Interval of 20% of the mean, at least 12 readings.
    pub const QUICK: Self = Self {
        interval_width: 0.20,
        readings_min: 12,
        confidence: 0.95,
        rounds_min: 1,
        rule: Rule::Corrected,
    };
    /// Interval of 10% of the mean, at least 50 readings in 3 rounds.
    pub const NORMAL: Self = Self {
        interval_width: 0.10,
        readings_min: 50,
        confidence: 0.95,
        rounds_min: 3,
        rule: Rule::Corrected,
    };
    /// Interval of 10% of the mean, at least 200 readings in 5 rounds.
    pub const STRICT: Self = Self {
        interval_width: 0.10,
        readings_min: 200,
        confidence: 0.95,
        rounds_min: 5,
        rule: Rule::Corrected,
    };

    /// Pilot's presets by name. The limit on autocorrelation of its own is not copied: loosening it breaks the
    /// interval's promise instead of widening it. `PUBLISHED` has it.
    pub const PRESETS: [(&'static str, Self); 3] = [
        ("quick", Self::QUICK),
        ("normal", Self::NORMAL),
        ("strict", Self::STRICT),
    ];

    /// The presets as the released Pilot has them: width, subsessions, limit on autocorrelation, shortest round.
    pub const PUBLISHED: [Published; 3] = [
        Self::published("quick", (0.20, 30), 0.8, 3.0),
        Self::published("normal", (0.10, 50), 0.2, 10.0),
        Self::published("strict", (0.10, 200), 0.1, 20.0),
    ];

    const fn published(
        name: &'static str,
        (interval_width, readings_min): (f64, usize),
        autocorrelation_limit: f64,
        short_round_s: f64,
    ) -> Published {
        Published {
            name,
            goal: Self {
                interval_width,
                readings_min,
                confidence: 0.95,
                rounds_min: 1,
                rule: Rule::Published {
                    autocorrelation_limit,
                },
            },
            short_round_s,
        }
    }

    /// Refuses numbers out of their ranges.
    pub fn check(&self) -> Result<()> {
        if !(self.interval_width > 0.0 && self.interval_width.is_finite()) {
            let allowed = "a number above 0, e.g. 0.1 for 10% of the mean";
            return Err(Error::new("interval width", self.interval_width, allowed));
        }
        if !(self.confidence > 0.0 && self.confidence < 1.0) {
            let allowed = "a number above 0 and below 1, e.g. 0.95";
            return Err(Error::new("confidence", self.confidence, allowed));
        }
        if let Rule::Published {
            autocorrelation_limit: limit,
        } = self.rule
            && !(limit > 0.0 && limit < 1.0)
        {
            let allowed = "a number above 0 and below 1, e.g. 0.1";
            return Err(Error::new("autocorrelation limit", limit, allowed));
        }
        for (name, value) in [
            ("readings_min", self.readings_min),
            ("rounds_min", self.rounds_min),
        ] {
            if value < 1 {
                return Err(Error::new(name, value, "at least 1"));
            }
        }
        Ok(())
    }

    /// Whether a measurement reaches this goal, and may be stopped at; one without an interval never does.
    pub fn met_by(&self, found: &Measurement) -> bool {
        let narrow = found
            .width_relative()
            .is_some_and(|width| width <= self.interval_width);
        let enough = match self.rule {
            Rule::Corrected => {
                found.n >= self.readings_min && found.independent_samples >= INDEPENDENT_MIN
            }
            Rule::Published { .. } => found.subsessions() >= self.readings_min,
        };
        narrow && enough
    }
}
