//! Indicators made from the time and from other indicators: calendar and moving averages (thesis 5.1.1).

use std::time::Instant;

use serde::Deserialize;

use crate::glob;
use crate::sample::Sample;

/// A moving average, `[[average]]` in the file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AverageOptions {
    /// Of which indicators.
    pub of: String,
    /// After so many seconds a change has half its effect.
    pub half_life_s: f64,
}

/// Exponentially weighted moving averages: `NAME.ewma` and the half-life.
#[derive(Debug)]
pub struct Averages {
    options: Vec<AverageOptions>,
    states: Vec<Vec<(f64, Option<Instant>)>>,
}

impl Averages {
    /// As told.
    pub fn new(options: Vec<AverageOptions>) -> Self {
        let states = options.iter().map(|_| Vec::new()).collect();
        Self { options, states }
    }

    /// Adds an average for each indicator that is asked for. A missing value leaves the average as it is.
    pub fn sample(&mut self, sample: &mut Sample) {
        let count = sample.names().len();
        for (options, states) in self.options.iter().zip(&mut self.states) {
            let mut told = Vec::new();
            states.resize(count.max(states.len()), (f64::NAN, None));
            for (index, name) in sample.names().iter().enumerate() {
                if name.contains(".ewma") || !glob::fits(&options.of, name) {
                    continue;
                }
                let value = f64::from(sample.values()[index]);
                let (average, at) = &mut states[index];
                if !value.is_nan() {
                    *average = match at {
                        None => value,
                        Some(before) => {
                            let seconds = sample.now().duration_since(*before).as_secs_f64();
                            value + (*average - value) * (-seconds / options.half_life_s).exp2()
                        }
                    };
                    *at = Some(sample.now());
                }
                if at.is_some() {
                    told.push((format!("{name}.ewma{}", options.half_life_s), *average));
                }
            }
            for (name, average) in told {
                sample.level(&name, average);
            }
        }
    }
}

/// Month, day of the week, hour and minute as four numbers, so that cycles can be learned.
pub fn calendar(sample: &mut Sample, unix_s: i64) {
    // SAFETY: localtime_r writes into the struct that it is given, and nothing else.
    let now = unsafe {
        let mut now: libc::tm = std::mem::zeroed();
        if libc::localtime_r(&unix_s, &mut now).is_null() {
            return;
        }
        now
    };
    sample.level("calendar.month", f64::from(now.tm_mon + 1));
    sample.level("calendar.weekday", f64::from(now.tm_wday));
    sample.level("calendar.hour", f64::from(now.tm_hour));
    sample.level("calendar.minute", f64::from(now.tm_min));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn an_average_goes_half_the_way_in_its_half_life() {
        let mut sample = Sample::new(vec![], vec![], None);
        let options = AverageOptions {
            of: "a".to_owned(),
            half_life_s: 4.0,
        };
        let mut averages = Averages::new(vec![options]);
        let start = Instant::now();
        for (second, value, expected) in [
            (0, 8.0, 8.0),
            (4, 0.0, 4.0),
            (8, f64::NAN, 4.0),
            (12, 0.0, 1.0),
        ] {
            sample.begin(start + Duration::from_secs(second));
            sample.level("a", value);
            averages.sample(&mut sample);
            assert_eq!(sample.value("a.ewma4"), expected as f32, "{second}");
        }
    }

    #[test]
    fn the_calendar_is_four_numbers() {
        let mut sample = Sample::new(vec![], vec![], None);
        sample.begin(Instant::now());
        calendar(&mut sample, 1_700_000_000);
        assert_eq!(sample.value("calendar.month"), 11.0);
        assert!((0.0..60.0).contains(&sample.value("calendar.minute")));
    }
}
