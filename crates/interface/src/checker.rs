//! The action checker (thesis 5.1.7): what may not be done is not done, and the reason is told.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use ascar_expression::{Expression, Value as Term};
use ascar_messaging::Fault;
use serde_json::{Map, Value};

use crate::config::{Config, KnobRule, Window};
use crate::key::{Key, alias};
use crate::nodes::Nodes;
use crate::setting::{Values, same};

/// Most keys of one action.
const KEYS_MAX: usize = 1024;

/// What is known when an action is judged.
#[derive(Debug)]
pub struct Situation<'a> {
    /// The present tick.
    pub tick: i64,
    /// What is in force.
    pub current: &'a Values,
    /// When each key was last changed.
    pub last_change: &'a HashMap<String, i64>,
    /// The last tick's metrics.
    pub metrics: &'a BTreeMap<String, f64>,
    /// The agents.
    pub nodes: &'a Nodes,
    /// Day of the week and minute of the day.
    pub local: (usize, u32),
}

/// What nodes are to be told: by name, local keys and values.
pub type Targets = BTreeMap<String, Map<String, Value>>;

/// The rules.
#[derive(Debug)]
pub struct Checker {
    knobs: Vec<KnobRule>,
    rules: Vec<(Expression, String)>,
    windows: Vec<Window>,
}

impl Checker {
    /// As configured.
    ///
    /// # Errors
    /// When a rule names something that nobody knows.
    pub fn new(config: &Config) -> Result<Self, Fault> {
        let mut known: BTreeSet<String> =
            config.knobs.iter().map(|knob| alias(&knob.name)).collect();
        known.extend(config.metrics.iter().map(|metric| metric.name.clone()));
        let mut rules = Vec::new();
        for rule in &config.rules {
            let formula = Expression::parse(&rule.forbid)
                .map_err(|error| Fault(format!("rule.forbid: {error}")))?;
            if let Some(name) = formula.names().iter().find(|name| !known.contains(*name)) {
                let known: Vec<String> = known.into_iter().collect();
                return Err(Fault(format!(
                    "rule.forbid = {:?}: {name:?} is no knob and no metric; allowed are {}",
                    rule.forbid,
                    known.join(", ")
                )));
            }
            rules.push((formula, rule.why.clone()));
        }
        Ok(Self {
            knobs: config.knobs.clone(),
            rules,
            windows: config.windows.clone(),
        })
    }

    /// Whom to tell what, if everything is allowed.
    ///
    /// # Errors
    /// The first rule that is broken: its kind, the name, the value, what is allowed.
    pub fn check(&self, set: &Values, situation: &Situation) -> Result<Targets, String> {
        if set.len() > KEYS_MAX {
            return Err(format!(
                "size: an action of {} keys: allowed are {KEYS_MAX}",
                set.len()
            ));
        }
        if !set.is_empty() && !self.windows.is_empty() {
            let (day, minute) = situation.local;
            if !self
                .windows
                .iter()
                .any(|window| window.contains(day, minute))
            {
                return Err("window: nothing may be changed now".to_owned());
            }
        }
        let mut targets = Targets::new();
        for (text, value) in set {
            let key = Key::parse(text);
            let knob = self.known(&key)?;
            knob.allows(value)?;
            self.check_rate(text, knob, value, situation)?;
            self.place(text, &key, value, situation, &mut targets)?;
        }
        self.check_rules(set, situation)?;
        Ok(targets)
    }

    /// Whom to tell, whether it is allowed or not: for what puts things back. Nodes that are gone are left out.
    pub fn route(&self, set: &Values, situation: &Situation) -> Targets {
        let mut targets = Targets::new();
        for (text, value) in set {
            let _ = self.place(text, &Key::parse(text), value, situation, &mut targets);
        }
        targets
    }

    /// The knobs.
    pub fn knobs(&self) -> &[KnobRule] {
        &self.knobs
    }

    fn known(&self, key: &Key) -> Result<&KnobRule, String> {
        let names = || {
            self.knobs
                .iter()
                .map(|it| it.name.as_str())
                .collect::<Vec<_>>()
                .join(", ")
        };
        let knob = self.knobs.iter().find(|it| it.name == key.knob);
        let knob =
            knob.ok_or_else(|| format!("unknown: {key} is no knob; allowed are {}", names()))?;
        if knob.scope != key.scope() {
            let form = match knob.scope.word() {
                "all" => "KNOB",
                "node" => "KNOB@NODE",
                _ => "KNOB@NODE/STREAM",
            };
            return Err(format!(
                "scope: {key}: the scope of {} is {}: write {form}",
                knob.name,
                knob.scope.word()
            ));
        }
        Ok(knob)
    }

    fn check_rate(
        &self,
        key: &str,
        knob: &KnobRule,
        value: &Value,
        situation: &Situation,
    ) -> Result<(), String> {
        let now = situation.current.get(key);
        if now.is_some_and(|now| same(now, value)) {
            return Ok(());
        }
        if let (Some(most), Some(now), Some(value)) =
            (knob.change_max, now.and_then(Value::as_f64), value.as_f64())
            && (value - now).abs() > most
        {
            return Err(format!(
                "rate: {key} from {now} to {value}: allowed is a change of {most}"
            ));
        }
        if let Some(last) = situation.last_change.get(key) {
            let ticks = situation.tick.saturating_sub(*last).max(0) as u64;
            if ticks < knob.interval_ticks {
                return Err(format!(
                    "rate: {key} was changed {ticks} ticks ago: allowed is once in {} ticks",
                    knob.interval_ticks
                ));
            }
        }
        Ok(())
    }

    /// Adds the nodes that a key is for.
    fn place(
        &self,
        text: &str,
        key: &Key,
        value: &Value,
        situation: &Situation,
        targets: &mut Targets,
    ) -> Result<(), String> {
        let has = |name: &str| {
            situation.nodes.find(name).is_some_and(|node| {
                let state = node.knobs.iter().find(|it| it.name == key.knob);
                let has_stream =
                    |stream: &String| state.is_some_and(|it| it.streams.contains_key(stream));
                node.here
                    && !node.monitor_only
                    && state.is_some()
                    && key.stream.as_ref().is_none_or(has_stream)
            })
        };
        let mut add = |node: &str| {
            targets
                .entry(node.to_owned())
                .or_default()
                .insert(key.local(), value.clone());
        };
        match &key.node {
            Some(node) if has(node) => add(node),
            Some(_) => return Err(format!("node: {text}: no such node that has it is here")),
            None => {
                let names: Vec<_> = situation
                    .nodes
                    .all()
                    .iter()
                    .map(|it| it.name.clone())
                    .filter(|it| has(it))
                    .collect();
                if names.is_empty() {
                    return Err(format!("node: {text}: no node that has it is here"));
                }
                names.iter().for_each(|name| add(name));
            }
        }
        Ok(())
    }

    /// Users' rules, for each node that is touched, with the setting as it would be.
    fn check_rules(&self, set: &Values, situation: &Situation) -> Result<(), String> {
        if self.rules.is_empty() || set.is_empty() {
            return Ok(());
        }
        let mut after = situation.current.clone();
        after.extend(set.iter().map(|(key, value)| (key.clone(), value.clone())));
        let places: BTreeSet<(Option<String>, Option<String>)> = set
            .keys()
            .map(|key| Key::parse(key))
            .map(|key| (key.node, key.stream))
            .collect();
        // What concerns all nodes concerns each one's own knobs as well.
        let everywhere = places.contains(&(None, None));
        let of_all = after
            .keys()
            .map(|key| Key::parse(key))
            .map(|key| (key.node, key.stream));
        let places: BTreeSet<_> = if everywhere {
            places.into_iter().chain(of_all).collect()
        } else {
            places
        };
        for (node, stream) in places {
            let lookup = |name: &str| -> Option<Term> {
                if let Some(value) = situation.metrics.get(name) {
                    return Some(if value.is_finite() {
                        Term::Number(*value)
                    } else {
                        Term::None
                    });
                }
                let fits = |key: &Key| {
                    alias(&key.knob) == name
                        && (key.node.is_none() || key.node == node)
                        && (key.stream.is_none() || key.stream == stream)
                };
                let value = after
                    .iter()
                    .find(|(key, _)| fits(&Key::parse(key)))
                    .map(|it| it.1);
                Some(match value {
                    Some(Value::Number(number)) => Term::Number(number.as_f64()?),
                    Some(Value::String(word)) => Term::Text(word.clone()),
                    Some(Value::Bool(value)) => Term::Boolean(*value),
                    _ => Term::None,
                })
            };
            for (formula, why) in &self.rules {
                match formula.holds(&lookup) {
                    Ok(false) => {}
                    Ok(true) => return Err(format!("rule: {} ({why})", formula.text())),
                    Err(error) => return Err(format!("rule: {error}")),
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodes::Hello;
    use serde_json::json;

    const FILE: &str = "
        connection = 'c.toml'
        database = 'd'
        [[knob]]
        name = 'vm.dirty_ratio'
        minimum = 5
        maximum = 60
        change_max = 10
        interval_ticks = 5
        [[knob]]
        name = 'vm.swappiness'
        minimum = 0
        maximum = 100
        [[knob]]
        name = 'q.*.depth'
        scope = 'stream'
        minimum = 1
        maximum = 256
        [[knob]]
        name = 'sched'
        scope = 'node'
        choices = ['none', 'bfq']
        [[metric]]
        name = 'load'
        indicators = ['cpu.load']
        [[rule]]
        forbid = 'vm_dirty_ratio > 40 and vm_swappiness > 50'
        why = 'both'
        [[rule]]
        forbid = \"sched == 'bfq' and vm_swappiness < 10\"
        why = 'odd'
        [[rule]]
        forbid = 'q___depth > 100 and load > 2'
        why = 'busy'
    ";

    struct World {
        checker: Checker,
        nodes: Nodes,
        current: Values,
        last_change: HashMap<String, i64>,
        metrics: BTreeMap<String, f64>,
        local: (usize, u32),
    }

    fn world(file: &str) -> World {
        let mut nodes = Nodes::new(9);
        for (name, monitor_only) in [("a", false), ("b", false), ("watched", true)] {
            let place = nodes.place(name).unwrap();
            let hello: Hello = serde_json::from_value(json!({
                "version": 1, "layout": "0", "monitor_only": monitor_only, "knobs": [
                    {"name": "vm.dirty_ratio", "value": 20}, {"name": "vm.swappiness", "value": 60},
                    {"name": "sched", "value": "none"}, {"name": "q.*.depth", "value": 8, "streams": {"x": 8}},
                ]}))
            .unwrap();
            nodes.hello(place, hello).unwrap();
            nodes.node(place).here = true;
        }
        let current = json!({"vm.dirty_ratio": 40, "vm.swappiness": 60, "sched@a": "none", "sched@b": "none", "q.*.depth@a/x": 8});
        World {
            checker: Checker::new(&Config::parse(file).unwrap()).unwrap(),
            nodes,
            current: serde_json::from_value(current).unwrap(),
            last_change: HashMap::from([("vm.dirty_ratio".to_owned(), 90)]),
            metrics: BTreeMap::from([("load".to_owned(), 1.0)]),
            local: (0, 0),
        }
    }

    fn check(world: &World, set: Value) -> Result<Targets, String> {
        let situation = Situation {
            tick: 100,
            current: &world.current,
            last_change: &world.last_change,
            metrics: &world.metrics,
            nodes: &world.nodes,
            local: world.local,
        };
        world
            .checker
            .check(&serde_json::from_value(set).unwrap(), &situation)
    }

    #[test]
    fn keys_are_routed_by_their_scope() {
        let world = world(FILE);
        let targets = check(
            &world,
            json!({"vm.dirty_ratio": 35, "sched@b": "bfq", "q.*.depth@a/x": 16}),
        )
        .unwrap();
        let expected = json!({
            "a": {"vm.dirty_ratio": 35, "q.*.depth/x": 16},
            "b": {"vm.dirty_ratio": 35, "sched": "bfq"},
        });
        assert_eq!(serde_json::to_value(&targets).unwrap(), expected);
        assert!(check(&world, json!({})).unwrap().is_empty());
    }

    #[test]
    fn every_kind_of_rule_refuses_with_its_reason() {
        let mut world = world(FILE);
        for (set, reason) in [
            (json!({"vm.dirty": 1}), "unknown: vm.dirty"),
            (json!({"vm.dirty_ratio@a": 30}), "scope: vm.dirty_ratio@a"),
            (json!({"sched": "bfq"}), "scope: sched"),
            (json!({"vm.dirty_ratio": 61}), "range: vm.dirty_ratio = 61"),
            (json!({"sched@a": "cfq"}), "range: sched = \"cfq\""),
            (
                json!({"vm.dirty_ratio": 20}),
                "rate: vm.dirty_ratio from 40 to 20",
            ),
            (json!({"vm.dirty_ratio": 45}), "rule: vm_dirty_ratio > 40"),
            (
                json!({"sched@b": "bfq", "vm.swappiness": 5}),
                "rule: sched == 'bfq'",
            ),
            (json!({"sched@gone": "bfq"}), "node: sched@gone"),
            (json!({"sched@watched": "bfq"}), "node: sched@watched"),
            (json!({"q.*.depth@a/y": 9}), "node: q.*.depth@a/y"),
            (json!({"vm.swappiness": null}), "range: vm.swappiness"),
        ] {
            let found = check(&world, set.clone()).unwrap_err();
            assert!(found.starts_with(reason), "{set}: {found}");
        }
        assert!(check(&world, json!({"q.*.depth@a/x": 128})).is_ok());
        world.metrics.insert("load".to_owned(), 3.0);
        assert!(
            check(&world, json!({"q.*.depth@a/x": 128}))
                .unwrap_err()
                .starts_with("rule: q___depth")
        );
        world.last_change.insert("vm.dirty_ratio".to_owned(), 97);
        assert!(
            check(&world, json!({"vm.dirty_ratio": 35}))
                .unwrap_err()
                .contains("3 ticks ago")
        );
        // What is in force already is no change.
        assert!(check(&world, json!({"vm.dirty_ratio": 40.0})).is_ok());
    }

    #[test]
    fn a_knob_for_all_is_judged_with_each_nodes_own() {
        let mut world = world(FILE);
        world.current.insert("sched@b".to_owned(), json!("bfq"));
        assert!(
            check(&world, json!({"vm.swappiness": 5}))
                .unwrap_err()
                .starts_with("rule: sched")
        );
    }

    #[test]
    fn outside_its_windows_nothing_is_changed() {
        let mut world = world(&format!(
            "{FILE}\n[[window]]\nfrom = '22:00'\nto = '23:00'\n"
        ));
        assert!(
            check(&world, json!({"vm.dirty_ratio": 35}))
                .unwrap_err()
                .starts_with("window:")
        );
        assert!(check(&world, json!({})).is_ok());
        world.local = (3, 22 * 60 + 30);
        assert!(check(&world, json!({"vm.dirty_ratio": 35})).is_ok());
    }

    #[test]
    fn rules_name_what_is_known() {
        let file = FILE.replace("load > 2", "laod > 2");
        let fault = Checker::new(&Config::parse(&file).unwrap()).unwrap_err();
        assert!(fault.0.contains("laod"), "{fault}");
    }
}
