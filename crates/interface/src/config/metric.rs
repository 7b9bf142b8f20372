//! `[[metric]]`: what rewards are made from.

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
