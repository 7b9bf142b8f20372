//! The service level: where a floor is broken the last good setting comes back, and is held.

use std::collections::{BTreeMap, VecDeque};

use crate::config::Floor;
use crate::setting::Values;

/// Watches the floors.
#[derive(Debug)]
pub struct Guard {
    floors: Vec<(Floor, VecDeque<f64>)>,
    last_good: Option<Values>,
    last_change: i64,
    hold: Option<(i64, String)>,
}

/// A floor that was broken.
#[derive(Clone, Debug, PartialEq)]
pub struct Breach {
    /// Of which metric.
    pub metric: String,
    /// Its mean.
    pub mean: f64,
    /// The floor.
    pub minimum: f64,
}

impl Guard {
    /// As configured.
    pub fn new(floors: Vec<Floor>) -> Self {
        Self {
            floors: floors
                .into_iter()
                .map(|floor| (floor, VecDeque::new()))
                .collect(),
            last_good: None,
            last_change: i64::MIN,
            hold: None,
        }
    }

    /// The setting to come back to: the last that kept every floor for a whole window.
    pub fn last_good(&self) -> Option<&Values> {
        self.last_good.as_ref()
    }

    /// Why nothing may be changed at this tick.
    pub fn holding(&self, tick: i64) -> Option<&str> {
        self.hold
            .as_ref()
            .filter(|(until, _)| tick < *until)
            .map(|(_, why)| why.as_str())
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

    /// Looks at a tick. Returns a breach once; then the windows are filled anew.
    pub fn look(
        &mut self,
        tick: i64,
        metrics: &BTreeMap<String, f64>,
        current: &Values,
    ) -> Option<Breach> {
        let mut breach = None;
        let mut all_kept = true;
        let mut longest = 0;
        for (floor, window) in &mut self.floors {
            window.push_back(metrics.get(&floor.metric).copied().unwrap_or(f64::NAN));
            while window.len() as u64 > floor.window_ticks {
                window.pop_front();
            }
            longest = longest.max(floor.window_ticks);
            let found: Vec<f64> = window.iter().copied().filter(|it| it.is_finite()).collect();
            // Half of the ticks must tell something.
            if (window.len() as u64) < floor.window_ticks || found.len() * 2 < window.len() {
                all_kept = false;
                continue;
            }
            let mean = found.iter().sum::<f64>() / found.len() as f64;
            if mean < floor.minimum {
                all_kept = false;
                let until = tick.saturating_add(floor.hold_ticks as i64);
                let why = format!(
                    "holding until tick {until}: the mean of {} was {mean:.6}, less than {}",
                    floor.metric, floor.minimum
                );
                self.hold = Some((until, why));
                breach = Some(Breach {
                    metric: floor.metric.clone(),
                    mean,
                    minimum: floor.minimum,
                });
            }
        }
        if breach.is_some() {
            self.floors.iter_mut().for_each(|it| it.1.clear());
        } else if all_kept && tick.saturating_sub(self.last_change) >= longest as i64 {
            self.last_good = Some(current.clone());
        }
        breach
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn guard() -> Guard {
        Guard::new(vec![Floor {
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
        let mut guard = guard();
        let (first, second) = (
            Values::from([("k".to_owned(), json!(1))]),
            Values::from([("k".to_owned(), json!(2))]),
        );
        for tick in 0..5 {
            assert_eq!(guard.look(tick, &metrics(12.0), &first), None);
        }
        assert_eq!(guard.last_good(), Some(&first));
        guard.changed(5);
        let breaches: Vec<i64> = (5..12)
            .filter(|tick| guard.look(*tick, &metrics(5.0), &second).is_some())
            .collect();
        assert_eq!(guard.last_good(), Some(&first));
        // 12, 12, 12, 5 has a mean of 10.25; 12, 12, 5, 5 of 8.5. Then the window is filled anew.
        assert_eq!(breaches, [6, 10]);
        assert!(guard.holding(29).unwrap().contains("less than 10"));
        assert_eq!(guard.holding(30), None);
    }

    #[test]
    fn no_values_are_no_breach_and_no_proof() {
        let mut guard = guard();
        for tick in 0..20 {
            assert_eq!(guard.look(tick, &metrics(f64::NAN), &Values::new()), None);
        }
        assert_eq!(guard.last_good(), None);
        guard.set_floor("m", None);
        assert_eq!(guard.floors().count(), 0);
    }
}
