//! The setting in force, the initial setting, and what the session has changed.

use std::collections::BTreeSet;

use ascar_messaging::ParameterState;
use ascar_messaging::limits::{KEY_BYTES_MAX, STREAMS_MAX, check_text, check_value};
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
    /// Another after every change of what is in force.
    #[serde(skip)]
    revision: u64,
}

impl Setting {
    /// Another after every change of what is in force: of hundreds of thousands of values nobody looks for it.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// As it was stored, without what no node may say: an older interface may have taken it in. Returns how much was
    /// left out, and what is wrong with the first of it.
    pub fn within_limits(mut self) -> (Self, Option<(usize, String)>) {
        let mut wrong: Option<(usize, String)> = None;
        let mut fits = |key: &str, value: &Value| {
            let error = check_text("key of a setting", key, KEY_BYTES_MAX)
                .and_then(|()| check_value(key, value))
                .err();
            let is_right = error.is_none();
            if let Some(error) = error {
                wrong.get_or_insert((0, error)).0 += 1;
            }
            is_right
        };
        self.current.retain(|key, value| fits(key, value));
        self.initial.retain(|key, value| fits(key, value));
        self.changed.retain(|key| fits(key, &Value::Null));
        self.revision += 1;
        (self, wrong)
    }

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
        let mut is_other = false;
        for (rule, state) in rules
            .iter()
            .filter_map(|rule| Some((rule, knobs.iter().find(|it| it.name == rule.name)?)))
        {
            let of_streams = |stream: &str| Key {
                knob: rule.name.clone(),
                node: Some(node.to_owned()),
                stream: Some(stream.to_owned()),
            };
            if rule.scope == Scope::Stream {
                is_other |= self.forget(node, rule, |stream| state.streams.contains_key(stream));
            }
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
                    let known = self.current.get(&text);
                    if known.is_none() || key.scope() != Scope::All && known != Some(first) {
                        self.current.insert(text, (*first).clone());
                        is_other = true;
                    }
                } else if let Some(wanted) = self.current.get(&text)
                    && !values.iter().all(|value| same(value, wanted))
                {
                    behind.insert(key.local(), wanted.clone());
                }
            }
        }
        self.revision += u64::from(is_other);
        behind
    }

    /// Forgets what is known of a node, but for what the session has changed: that is set again when it is back.
    pub fn forget_node(&mut self, node: &str, rules: &[ParameterRule]) {
        let mut is_other = false;
        for rule in rules.iter().filter(|rule| rule.scope == Scope::Stream) {
            is_other |= self.forget(node, rule, |_| false);
        }
        self.revision += u64::from(is_other);
    }

    /// Forgets a node's streams that are gone. Returns whether there were any.
    fn forget(&mut self, node: &str, rule: &ParameterRule, is_here: impl Fn(&str) -> bool) -> bool {
        let start = format!("{}@{node}/", rule.name);
        let streams = |values: &Values| -> Vec<String> {
            let keys = values.range(start.clone()..).map(|it| it.0);
            let of_node = keys.take_while(|key| key.starts_with(&start));
            of_node
                .filter(|key| !is_here(&key[start.len()..]))
                .cloned()
                .collect()
        };
        let mut gone = streams(&self.current);
        gone.extend(streams(&self.initial));
        let mut kept = 0;
        let mut is_other = false;
        for key in gone {
            // A device that was changed may come back; thousands under new names do not.
            kept += usize::from(self.changed.contains(&key));
            if kept > STREAMS_MAX || !self.changed.contains(&key) {
                self.changed.remove(&key);
                self.initial.remove(&key);
                is_other |= self.current.remove(&key).is_some();
            }
        }
        is_other
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
        self.revision += 1;
        for (key, value) in values {
            self.changed.insert(key.clone());
            self.current.insert(key.clone(), value.clone());
        }
    }

    /// Everything was put back.
    pub fn restored(&mut self) {
        self.revision += 1;
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

    #[test]
    fn streams_under_new_names_take_no_more_room() {
        let rules = [rule("d.*.x", Scope::Stream)];
        let state = |at: i64| -> Vec<ParameterState> {
            let streams = json!({format!("a{at}"): 1, "fixed": 1});
            serde_json::from_value(json!([{"name": "d.*.x", "value": 1, "streams": streams}]))
                .unwrap()
        };
        let mut setting = Setting::default();
        let neighbour = Values::from([("d.*.x@n1/a".to_owned(), json!(7))]);
        setting.take(&neighbour);
        setting.learn("n", &state(0), false, &rules);
        setting.take(&Values::from([("d.*.x@n/fixed".to_owned(), json!(5))]));
        for at in 1..1000 {
            setting.learn("n", &state(at), false, &rules);
        }
        let keys: Vec<&String> = setting.current().keys().collect();
        assert_eq!(keys, ["d.*.x@n/a999", "d.*.x@n/fixed", "d.*.x@n1/a"]);
        let revision = setting.revision();
        setting.learn("n", &state(999), false, &rules);
        assert_eq!(setting.revision(), revision);
        setting.forget_node("n", &rules);
        let keys: Vec<&String> = setting.current().keys().collect();
        assert_eq!(keys, ["d.*.x@n/fixed", "d.*.x@n1/a"]);
    }

    #[test]
    fn what_was_stored_over_the_limits_is_left_out() {
        let long = "x".repeat(1 << 20);
        let stored = json!({
            "current": {"k": 1, "word": long, format!("k@n/{long}"): 2},
            "defaults": {"k": 1, "list": [1]},
            "changed": ["k", format!("k@n/{long}")],
        });
        let (setting, wrong) = serde_json::from_value::<Setting>(stored)
            .unwrap()
            .within_limits();
        assert_eq!(
            setting.current(),
            &Values::from([("k".to_owned(), json!(1))])
        );
        assert_eq!(setting.initial(), setting.current());
        assert_eq!(setting.changed().len(), 1);
        let (count, error) = wrong.unwrap();
        assert!(
            count == 4 && error.contains("allowed are") && error.len() < 300,
            "{count} {error}"
        );
        assert_eq!(Setting::default().within_limits().1, None);
    }
}
