//! The service level: limits, each of the mean of a metric over a window of ticks, and the last setting that kept them.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::{self, Display, Formatter};

use serde_json::Value;

use crate::limit::{Limit, Side};

/// Values by key.
pub type Values = BTreeMap<String, Value>;

/// The limits, with their windows.
#[derive(Debug)]
pub struct ServiceLevel {
    limits: Vec<(Limit, VecDeque<f64>)>,
    last_good: Option<Values>,
    last_change: i64,
}

/// A limit that was violated.
#[derive(Clone, Debug, PartialEq)]
pub struct Violation {
    /// Which one.
    pub limit: Limit,
    /// The metric's mean.
    pub mean: f64,
}

impl Display for Violation {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self {
            limit:
                Limit {
                    metric,
                    side,
                    value,
                    ..
                },
            mean,
        } = self;
        write!(f, "the mean of {metric} was {mean:.6}, {side} {value}")
    }
}

impl ServiceLevel {
    /// As configured.
    pub fn new(limits: Vec<Limit>) -> Self {
        let empty = |limit| (limit, VecDeque::new());
        Self {
            limits: limits.into_iter().map(empty).collect(),
            last_good: None,
            last_change: i64::MIN,
        }
    }

    /// The last setting that kept every limit for a complete window.
    pub fn last_good(&self) -> Option<&Values> {
        self.last_good.as_ref()
    }

    /// The setting was changed.
    pub fn changed(&mut self, tick: i64) {
        self.last_change = tick;
    }

    /// Another limit of a metric on one side, or none.
    pub fn set(&mut self, metric: &str, side: Side, value: Option<f64>) {
        let is_it = |limit: &Limit| limit.metric == metric && limit.side == side;
        let Some(value) = value else {
            self.limits.retain(|(limit, _)| !is_it(limit));
            return;
        };
        match self.limits.iter_mut().find(|(limit, _)| is_it(limit)) {
            Some((limit, _)) => limit.value = value,
            None => self
                .limits
                .push((Limit::new(metric, side, value), VecDeque::new())),
        }
    }

    /// The limits on one side.
    pub fn limits(&self, side: Side) -> impl Iterator<Item = &Limit> {
        let all = self.limits.iter().map(|it| &it.0);
        all.filter(move |limit| limit.side == side)
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
        for (limit, window) in &mut self.limits {
            window.push_back(metrics.get(&limit.metric).copied().unwrap_or(f64::NAN));
            while window.len() as u64 > limit.window_ticks {
                window.pop_front();
            }
            longest = longest.max(limit.window_ticks);
            let found: Vec<f64> = window.iter().copied().filter(|it| it.is_finite()).collect();
            // Half of the ticks must have a value.
            if (window.len() as u64) < limit.window_ticks || found.len() * 2 < window.len() {
                all_kept = false;
                continue;
            }
            let mean = found.iter().sum::<f64>() / found.len() as f64;
            if limit.is_violated(mean) {
                all_kept = false;
                violation = Some(Violation {
                    limit: limit.clone(),
                    mean,
                });
            }
        }
        if violation.is_some() {
            self.limits.iter_mut().for_each(|it| it.1.clear());
        } else if all_kept && tick.saturating_sub(self.last_change) >= longest as i64 {
            // Of hundreds of thousands of values a copy takes far longer than a look.
            if self.last_good.as_ref() != Some(current) {
                self.last_good = Some(current.clone());
            }
        }
        violation
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn level() -> ServiceLevel {
        ServiceLevel::new(vec![Limit {
            window_ticks: 4,
            ..Limit::new("m", Side::Floor, 10.0)
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
        level.set("m", Side::Ceiling, None);
        assert_eq!(level.limits(Side::Floor).count(), 1);
        level.set("m", Side::Floor, None);
        assert_eq!(level.limits(Side::Floor).count(), 0);
    }

    #[test]
    fn a_ceiling_is_violated_by_a_mean_above_it() {
        let mut level = ServiceLevel::new(vec![]);
        level.set("m", Side::Ceiling, Some(10.0));
        level.set("m", Side::Floor, Some(1.0));
        let found = (0..40)
            .find_map(|tick| level.take(tick, &metrics(12.0), &Values::new()))
            .expect("12 is above 10");
        assert_eq!(
            found.to_string(),
            "the mean of m was 12.000000, more than 10"
        );
        assert_eq!(level.limits(Side::Ceiling).count(), 1);
    }
}
