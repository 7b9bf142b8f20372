//! The setting in force, the initial setting, and what the session has changed.

use std::collections::BTreeSet;

use ascar_messaging::ParameterState;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::config::ParameterRule;
use crate::key::{Key, Scope};

pub use ascar_guard::Values;
pub use ascar_messaging::parameter::is_same as same;

/// What is in force.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Setting {
    current: Values,
    // What is stored keeps the name that the protocol has for it.
    #[serde(rename = "defaults")]
    initial: Values,
    changed: BTreeSet<String>,
}

impl Setting {
    /// What is in force.
    pub fn current(&self) -> &Values {
        &self.current
    }

    /// The initial setting: what was in force before the session.
    pub fn initial(&self) -> &Values {
        &self.initial
    }

    /// What the session has changed.
    pub fn changed(&self) -> &BTreeSet<String> {
        &self.changed
    }

    /// Learns what a node has. Returns what the session has set and this node has not: it came back, or is new.
    pub fn learn(
        &mut self,
        node: &str,
        knobs: &[ParameterState],
        touched: bool,
        rules: &[ParameterRule],
    ) -> Map<String, Value> {
        let mut behind = Map::new();
        for (rule, state) in rules
            .iter()
            .filter_map(|rule| Some((rule, knobs.iter().find(|it| it.name == rule.name)?)))
        {
            let of_streams = |stream: &str| Key {
                knob: rule.name.clone(),
                node: Some(node.to_owned()),
                stream: Some(stream.to_owned()),
            };
            let here: Vec<(Key, Vec<&Value>)> = match rule.scope {
                Scope::Stream => state
                    .streams
                    .iter()
                    .map(|(stream, value)| (of_streams(stream), vec![value]))
                    .collect(),
                scope => {
                    let node = (scope == Scope::Node).then(|| node.to_owned());
                    let values = if state.streams.is_empty() {
                        vec![&state.value]
                    } else {
                        state.streams.values().collect()
                    };
                    vec![(
                        Key {
                            knob: rule.name.clone(),
                            node,
                            stream: None,
                        },
                        values,
                    )]
                }
            };
            for (key, values) in here {
                let text = key.to_string();
                let Some(first) = values.first() else {
                    continue;
                };
                if !touched {
                    self.initial
                        .entry(text.clone())
                        .or_insert_with(|| (*first).clone());
                }
                if !self.changed.contains(&text) {
                    // Of one value for all, the first node's counts.
                    if key.scope() != Scope::All || !self.current.contains_key(&text) {
                        self.current.insert(text, (*first).clone());
                    }
                } else if let Some(wanted) = self.current.get(&text)
                    && !values.iter().all(|value| same(value, wanted))
                {
                    behind.insert(key.local(), wanted.clone());
                }
            }
        }
        behind
    }

    /// The session is about to change these: what nodes have instead of the setting in force is to be mended.
    pub fn touch<'a>(&mut self, keys: impl Iterator<Item = &'a String>) {
        for key in keys {
            if self.current.contains_key(key) {
                self.changed.insert(key.clone());
            }
        }
    }

    /// Nodes have taken these.
    pub fn take(&mut self, values: &Values) {
        for (key, value) in values {
            self.changed.insert(key.clone());
            self.current.insert(key.clone(), value.clone());
        }
    }

    /// Everything was put back.
    pub fn restored(&mut self) {
        for key in std::mem::take(&mut self.changed) {
            match self.initial.get(&key) {
                Some(value) => self.current.insert(key, value.clone()),
                None => self.current.remove(&key),
            };
        }
    }

    /// What has to be set so that `wanted` is in force; of what is changed alone.
    pub fn towards(&self, wanted: &Values) -> Values {
        let differing = |key: &&String| match (self.current.get(*key), wanted.get(*key)) {
            (Some(now), Some(then)) => !same(now, then),
            _ => false,
        };
        let keys = self.changed.iter().filter(differing);
        keys.filter_map(|key| Some((key.clone(), wanted.get(key)?.clone())))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn rule(name: &str, scope: Scope) -> ParameterRule {
        ParameterRule {
            name: name.to_owned(),
            scope,
            minimum: None,
            maximum: None,
            choices: vec![],
            step: None,
            change_max: None,
            interval_ticks: 0,
        }
    }

    fn knobs(ratio: i64, depths: [i64; 2]) -> Vec<ParameterState> {
        serde_json::from_value(json!([
            {"name": "ratio", "value": ratio},
            {"name": "d.*.x", "value": depths[0], "streams": {"a": depths[0], "b": depths[1]}},
        ]))
        .unwrap()
    }

    #[test]
    fn scopes_make_keys() {
        let rules = [rule("ratio", Scope::All), rule("d.*.x", Scope::Stream)];
        let mut setting = Setting::default();
        assert!(
            setting
                .learn("n", &knobs(20, [1, 2]), false, &rules)
                .is_empty()
        );
        let keys: Vec<&String> = setting.current().keys().collect();
        assert_eq!(keys, ["d.*.x@n/a", "d.*.x@n/b", "ratio"]);
    }

    #[test]
    fn a_node_that_comes_back_is_behind() {
        let rules = [rule("ratio", Scope::All), rule("d.*.x", Scope::Node)];
        let mut setting = Setting::default();
        setting.learn("n", &knobs(20, [1, 1]), false, &rules);
        setting.take(&Values::from([
            ("ratio".to_owned(), json!(30)),
            ("d.*.x@n".to_owned(), json!(4)),
        ]));
        assert!(
            setting
                .learn("n", &knobs(30, [4, 4]), true, &rules)
                .is_empty()
        );
        let behind = setting.learn("n", &knobs(20, [4, 1]), false, &rules);
        assert_eq!(Value::Object(behind), json!({"ratio": 30, "d.*.x": 4}));
        assert_eq!(setting.towards(setting.initial()).len(), 2);
        let stored = serde_json::to_value(&setting).unwrap();
        assert_eq!(stored["defaults"], json!(setting.initial()));
        setting.restored();
        assert_eq!(setting.current(), setting.initial());
        assert!(setting.changed().is_empty());
    }
}
