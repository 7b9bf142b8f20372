//! `[[metric]]` and `[[floor]]`: what rewards are made from, and the service level.

use ascar_messaging::Fault;
use ascar_messaging::file::range;
use serde::Deserialize;

/// How many values become one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Aggregate {
    /// Their sum.
    #[default]
    Sum,
    /// Their mean.
    Mean,
    /// The greatest.
    Max,
    /// The least.
    Min,
}

/// `[[metric]]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetricRule {
    /// Its name, with its unit last.
    pub name: String,
    /// Of which indicators; `*` stands for anything.
    pub indicators: Vec<String>,
    /// Of which nodes; all where there is none.
    #[serde(default)]
    pub nodes: Vec<String>,
    /// How they become one.
    #[serde(default)]
    pub aggregate: Aggregate,
}

/// `[[floor]]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Floor {
    /// A metric's name.
    pub metric: String,
    /// Its mean must not be less.
    pub minimum: f64,
    /// Over so many ticks.
    #[serde(default = "default_window")]
    pub window_ticks: u64,
    /// After a breach nothing is changed for so long.
    #[serde(default = "default_hold")]
    pub hold_ticks: u64,
}

fn default_window() -> u64 {
    30
}
fn default_hold() -> u64 {
    300
}

impl Floor {
    pub(super) fn check(&self, metrics: &[MetricRule]) -> Result<(), Fault> {
        if !metrics.iter().any(|metric| metric.name == self.metric) {
            let names: Vec<&str> = metrics.iter().map(|it| it.name.as_str()).collect();
            return Err(Fault(format!(
                "floor.metric = {:?}: allowed are {}",
                self.metric,
                names.join(", ")
            )));
        }
        range("floor.window_ticks", self.window_ticks as f64, 1.0, 1e6)
    }
}
