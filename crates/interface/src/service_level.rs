//! The service level: floors, each for the mean of a metric over a window of ticks, and the last setting that kept them.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::{self, Display, Formatter};

use crate::config::Floor;
use crate::setting::Values;

/// The floors, with their windows.
#[derive(Debug)]
pub struct ServiceLevel {
    floors: Vec<(Floor, VecDeque<f64>)>,
    last_good: Option<Values>,
    last_change: i64,
}

/// A floor that was violated.
#[derive(Clone, Debug, PartialEq)]
pub struct Violation {
    /// Of which metric.
    pub metric: String,
    /// Its mean.
    pub mean: f64,
    /// The floor.
    pub minimum: f64,
    /// For so long nothing is changed.
    pub hold_ticks: u64,
}

impl Display for Violation {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self {
            metric,
            mean,
            minimum,
            ..
        } = self;
        write!(f, "the mean of {metric} was {mean:.6}, less than {minimum}")
    }
}

impl ServiceLevel {
    /// As configured.
    pub fn new(floors: Vec<Floor>) -> Self {
        Self {
            floors: floors
                .into_iter()
                .map(|floor| (floor, VecDeque::new()))
                .collect(),
            last_good: None,
            last_change: i64::MIN,
        }
    }

    /// The last setting that kept every floor for a complete window.
    pub fn last_good(&self) -> Option<&Values> {
        self.last_good.as_ref()
    }

    /// The setting was changed.
    pub fn changed(&mut self, tick: i64) {
        self.last_change = tick;
    }

    /// A new floor for a metric, or none.
    pub fn set_floor(&mut self, metric: &str, minimum: Option<f64>) {
        self.floors
            .retain(|(floor, _)| floor.metric != metric || minimum.is_some());
        let Some(minimum) = minimum else {
            return;
        };
        match self
            .floors
            .iter_mut()
            .find(|(floor, _)| floor.metric == metric)
        {
            Some((floor, _)) => floor.minimum = minimum,
            None => {
                let floor = Floor {
                    metric: metric.to_owned(),
                    minimum,
                    window_ticks: 30,
                    hold_ticks: 300,
                };
                self.floors.push((floor, VecDeque::new()));
            }
        }
    }

    /// The floors.
    pub fn floors(&self) -> impl Iterator<Item = &Floor> {
        self.floors.iter().map(|it| &it.0)
    }

    /// Takes in a closed tick. Returns a violation once; then the windows are filled anew.
    pub fn take(
        &mut self,
        tick: i64,
        metrics: &BTreeMap<String, f64>,
        current: &Values,
    ) -> Option<Violation> {
        let mut violation = None;
        let mut all_kept = true;
        let mut longest = 0;
        for (floor, window) in &mut self.floors {
            window.push_back(metrics.get(&floor.metric).copied().unwrap_or(f64::NAN));
            while window.len() as u64 > floor.window_ticks {
                window.pop_front();
            }
            longest = longest.max(floor.window_ticks);
            let found: Vec<f64> = window.iter().copied().filter(|it| it.is_finite()).collect();
            // Half of the ticks must have a value.
            if (window.len() as u64) < floor.window_ticks || found.len() * 2 < window.len() {
                all_kept = false;
                continue;
            }
            let mean = found.iter().sum::<f64>() / found.len() as f64;
            if mean < floor.minimum {
                all_kept = false;
                violation = Some(Violation {
                    metric: floor.metric.clone(),
                    mean,
                    minimum: floor.minimum,
                    hold_ticks: floor.hold_ticks,
                });
            }
        }
        if violation.is_some() {
            self.floors.iter_mut().for_each(|it| it.1.clear());
        } else if all_kept && tick.saturating_sub(self.last_change) >= longest as i64 {
            self.last_good = Some(current.clone());
        }
        violation
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn level() -> ServiceLevel {
        ServiceLevel::new(vec![Floor {
            metric: "m".to_owned(),
            minimum: 10.0,
            window_ticks: 4,
            hold_ticks: 20,
        }])
    }

    fn metrics(value: f64) -> BTreeMap<String, f64> {
        BTreeMap::from([("m".to_owned(), value)])
    }

    #[test]
    fn the_last_setting_that_kept_the_floor_for_a_window_is_good() {
        let mut level = level();
        let (first, second) = (
            Values::from([("k".to_owned(), json!(1))]),
            Values::from([("k".to_owned(), json!(2))]),
        );
        for tick in 0..5 {
            assert_eq!(level.take(tick, &metrics(12.0), &first), None);
        }
        assert_eq!(level.last_good(), Some(&first));
        level.changed(5);
        let violations: Vec<i64> = (5..12)
            .filter(|tick| level.take(*tick, &metrics(5.0), &second).is_some())
            .collect();
        assert_eq!(level.last_good(), Some(&first));
        // 12, 12, 12, 5 has a mean of 10.25; 12, 12, 5, 5 of 8.5. Then the window is filled anew.
        assert_eq!(violations, [6, 10]);
    }

    #[test]
    fn missing_values_neither_violate_nor_keep_a_floor() {
        let mut level = level();
        for tick in 0..20 {
            assert_eq!(level.take(tick, &metrics(f64::NAN), &Values::new()), None);
        }
        assert_eq!(level.last_good(), None);
        level.set_floor("m", None);
        assert_eq!(level.floors().count(), 0);
    }
}
