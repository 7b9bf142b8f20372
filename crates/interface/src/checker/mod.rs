//! The action checker (thesis 5.1.7): what may not be done is not done, and the reason is told.

mod forbidden;

use std::collections::{BTreeMap, HashMap};

use ascar_guard::{Forbidden, Window, is_open};
use ascar_messaging::Fault;
use serde_json::{Map, Value};

use crate::config::{Config, ParameterRule};
use crate::key::Key;
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
    knobs: Vec<ParameterRule>,
    forbidden: Forbidden,
    windows: Vec<Window>,
}

impl Checker {
    /// As configured.
    ///
    /// # Errors
    /// When a rule names something that nobody knows.
    pub fn new(config: &Config) -> Result<Self, Fault> {
        Ok(Self {
            knobs: config.knobs.clone(),
            forbidden: forbidden::forbidden(config)?,
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
        let (day, minute) = situation.local;
        if !set.is_empty() && !is_open(&self.windows, day, minute) {
            return Err("window: nothing may be changed now".to_owned());
        }
        let mut targets = Targets::new();
        for (text, value) in set {
            let key = Key::parse(text);
            let knob = self.known(&key)?;
            knob.allows(value)?;
            self.check_rate(text, knob, value, situation)?;
            self.place(text, &key, value, situation, &mut targets)?;
        }
        forbidden::check(&self.forbidden, set, situation)?;
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
    pub fn knobs(&self) -> &[ParameterRule] {
        &self.knobs
    }

    fn known(&self, key: &Key) -> Result<&ParameterRule, String> {
        let names = || {
            self.knobs
                .iter()
                .map(|it| it.name.as_str())
                .collect::<Vec<_>>()
                .join(", ")
        };
        let knob = self.knobs.iter().find(|it| it.name == key.knob);
        let knob =
            knob.ok_or_else(|| format!("unknown: {key} is not a knob; allowed are {}", names()))?;
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
        knob: &ParameterRule,
        value: &Value,
        situation: &Situation,
    ) -> Result<(), String> {
        let now = situation.current.get(key);
        if now.is_some_and(|now| same(now, value)) {
            return Ok(());
        }
        let change = now.and_then(Value::as_f64).zip(value.as_f64());
        let last = situation.last_change.get(key);
        let ticks = last.map(|last| situation.tick.saturating_sub(*last).max(0) as u64);
        knob.pace()
            .allows(change, ticks)
            .map_err(|reason| format!("rate: {key} {reason}"))
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
}

#[cfg(test)]
mod tests;
