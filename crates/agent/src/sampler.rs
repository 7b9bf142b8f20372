//! What samples: collectors, knobs, derived indicators.

use std::time::Instant;

use crate::clock::wall;
use crate::config::Config;
use crate::derive::{Averages, calendar};
use crate::readers::{LIMIT, Readers};
use crate::sample::Sample;

/// Makes the sample of a tick.
#[derive(Debug)]
pub struct Sampler {
    /// The collectors.
    pub readers: Readers,
    averages: Averages,
    calendar: bool,
    /// The tick's indicators.
    pub sample: Sample,
}

impl Sampler {
    /// Starts the collectors.
    pub fn new(config: &Config) -> Self {
        Self {
            readers: Readers::start(config),
            averages: Averages::new(config.averages.clone()),
            calendar: config.calendar,
            sample: Sample::new(
                config.indicators.clone(),
                config.without.clone(),
                config.significant_digits,
            ),
        }
    }

    /// A tick begins: collectors are read.
    pub fn begin(&mut self) {
        self.sample.begin(Instant::now());
        self.readers.take(&mut self.sample, LIMIT);
    }

    /// What belongs to the tick besides: knobs, and what is made from all.
    pub fn finish(&mut self, knobs: &[(String, f64)]) {
        for (name, value) in knobs {
            self.sample.level(name, *value);
        }
        if self.calendar {
            calendar(&mut self.sample, wall().as_secs() as i64);
        }
        self.averages.sample(&mut self.sample);
    }
}
