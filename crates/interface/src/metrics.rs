//! Sums over nodes, from which rewards and service levels are told.

use std::collections::HashMap;
use std::sync::Arc;

use crate::config::{Aggregate, MetricRule};
use crate::layouts::Layout;

/// Layouts of which it is known which indicators the metrics are of; then they are looked for anew.
const LAYOUTS_MAX: usize = 20_000;

/// Whether a name fits a pattern in which `*` stands for anything.
pub fn fits(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((first, rest)) => name.strip_prefix(first).is_some_and(|tail| {
            let places = tail.char_indices().map(|(at, _)| at).chain([tail.len()]);
            rest.is_empty() || places.into_iter().any(|at| fits(rest, &tail[at..]))
        }),
    }
}

/// Makes the metrics of ticks.
#[derive(Debug)]
pub struct Metrics {
    rules: Vec<MetricRule>,
    /// Which indicators of a layout each metric is of.
    places: HashMap<u64, Vec<Vec<usize>>>,
}

#[derive(Clone, Copy)]
struct Sum {
    sum: f64,
    count: u32,
    least: f64,
    most: f64,
}

impl Metrics {
    /// As configured.
    pub fn new(rules: Vec<MetricRule>) -> Self {
        Self {
            rules,
            places: HashMap::new(),
        }
    }

    /// Their names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.rules.iter().map(|rule| rule.name.as_str())
    }

    /// The metrics of one tick; NaN where no node had a value.
    pub fn of<'a>(
        &mut self,
        nodes: impl Iterator<Item = (&'a str, &'a Arc<Layout>, &'a [f32])>,
    ) -> Vec<f64> {
        let empty = Sum {
            sum: 0.0,
            count: 0,
            least: f64::INFINITY,
            most: f64::NEG_INFINITY,
        };
        let mut sums = vec![empty; self.rules.len()];
        if self.places.len() > LAYOUTS_MAX {
            self.places.clear();
        }
        for (node, layout, values) in nodes {
            let rules = &self.rules;
            let places = self
                .places
                .entry(layout.serial)
                .or_insert_with(|| rules.iter().map(|rule| places(rule, layout)).collect());
            for ((rule, places), sum) in rules.iter().zip(&*places).zip(&mut sums) {
                if !rule.nodes.is_empty() && !rule.nodes.iter().any(|pattern| fits(pattern, node)) {
                    continue;
                }
                for value in places
                    .iter()
                    .filter_map(|place| values.get(*place))
                    .filter(|it| it.is_finite())
                {
                    let value = f64::from(*value);
                    sum.sum += value;
                    sum.count += 1;
                    sum.least = sum.least.min(value);
                    sum.most = sum.most.max(value);
                }
            }
        }
        let value = |(rule, sum): (&MetricRule, &Sum)| match (sum.count, rule.aggregate) {
            (0, _) => f64::NAN,
            (_, Aggregate::Sum) => sum.sum,
            (count, Aggregate::Mean) => sum.sum / f64::from(count),
            (_, Aggregate::Max) => sum.most,
            (_, Aggregate::Min) => sum.least,
        };
        self.rules.iter().zip(&sums).map(value).collect()
    }
}

fn places(rule: &MetricRule, layout: &Layout) -> Vec<usize> {
    let is_wanted = |name: &str| rule.indicators.iter().any(|pattern| fits(pattern, name));
    let names = layout.names.iter().enumerate();
    names
        .filter(|(_, name)| is_wanted(name))
        .map(|(place, _)| place)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_over_nodes_and_indicators() {
        let layout = Arc::new(Layout::new(
            0,
            ["a.read", "b.read", "wait"].map(str::to_owned).to_vec(),
        ));
        let rule = |indicator: &str, aggregate, nodes: &[&str]| MetricRule {
            name: indicator.to_owned(),
            indicators: vec![indicator.to_owned()],
            nodes: nodes.iter().map(|it| (*it).to_owned()).collect(),
            aggregate,
        };
        let mut metrics = Metrics::new(vec![
            rule("*.read", Aggregate::Sum, &[]),
            rule("*.read", Aggregate::Sum, &["n1"]),
            rule("wait", Aggregate::Mean, &[]),
            rule("wait", Aggregate::Max, &[]),
            rule("wait", Aggregate::Min, &[]),
            rule("none", Aggregate::Sum, &[]),
        ]);
        let nodes = [("n1", [1.0, 2.0, 4.0]), ("n2", [10.0, f32::NAN, 8.0])];
        let found = metrics.of(nodes
            .iter()
            .map(|(name, values)| (*name, &layout, values.as_slice())));
        assert_eq!(found[..5], [13.0, 3.0, 6.0, 8.0, 4.0]);
        assert!(found[5].is_nan());
    }

    #[test]
    fn stars_stand_for_anything() {
        assert!(fits("a*c*", "abcd") && fits("*", "") && fits("*x", "xx") && !fits("a*b", "ac"));
    }
}
