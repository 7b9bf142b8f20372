//! When a measurement is good enough: the goals behind quick, normal and strict.

use crate::measurement::Measurement;
use crate::{Error, Result};

/// What a measurement must reach.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Goal {
    /// Total width of the mean's interval, over the mean.
    pub interval_width: f64,
    /// The fewest readings in the stable phase.
    pub readings_min: usize,
    /// Of the interval.
    pub confidence: f64,
    /// The fewest rounds of a session; between rounds systems differ more than inside one.
    pub rounds_min: usize,
}

impl Goal {
    /// Interval of 20% of the mean, at least 12 readings.
    pub const QUICK: Self = Self {
        interval_width: 0.20,
        readings_min: 12,
        confidence: 0.95,
        rounds_min: 1,
    };
    /// Interval of 10% of the mean, at least 50 readings in 3 rounds.
    pub const NORMAL: Self = Self {
        interval_width: 0.10,
        readings_min: 50,
        confidence: 0.95,
        rounds_min: 3,
    };
    /// Interval of 10% of the mean, at least 200 readings in 5 rounds.
    pub const STRICT: Self = Self {
        interval_width: 0.10,
        readings_min: 200,
        confidence: 0.95,
        rounds_min: 5,
    };

    /// Pilot's presets by name. The third number of its own, the limit on autocorrelation, is not copied: loosening
    /// it breaks the interval's promise instead of widening it.
    pub const PRESETS: [(&'static str, Self); 3] = [
        ("quick", Self::QUICK),
        ("normal", Self::NORMAL),
        ("strict", Self::STRICT),
    ];

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

    /// Whether a measurement reaches this goal; one without an interval never does.
    pub fn met_by(&self, found: &Measurement) -> bool {
        found
            .width_relative()
            .is_some_and(|width| width <= self.interval_width)
            && found.n >= self.readings_min
    }
}
