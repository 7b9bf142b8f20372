//! What users forbid (`[[rule]]`): formulas over knobs and metrics of which none may hold.

use std::collections::BTreeSet;

use ascar_expression::{Expression, Value as Term};
use ascar_messaging::Fault;
use serde_json::Value;

use super::Situation;
use crate::config::Config;
use crate::key::{Key, alias};
use crate::setting::Values;

/// A formula, as it was written, and the reason that is told.
#[derive(Debug)]
struct Rule {
    formula: Expression,
    text: String,
    why: String,
}

/// All of them.
#[derive(Debug)]
pub(super) struct Forbidden(Vec<Rule>);

impl Forbidden {
    /// As configured.
    ///
    /// # Errors
    /// When a formula names something that nobody knows.
    pub(super) fn new(config: &Config) -> Result<Self, Fault> {
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
                    "rule.forbid = {:?}: {name:?} is not a knob and no metric; allowed are {}",
                    rule.forbid,
                    known.join(", ")
                )));
            }
            rules.push(Rule {
                formula,
                text: rule.forbid.clone(),
                why: rule.why.clone(),
            });
        }
        Ok(Self(rules))
    }

    /// Judges each place that is touched, with the setting as it would be.
    ///
    /// # Errors
    /// The formula that holds, and why it must not.
    pub(super) fn check(&self, set: &Values, situation: &Situation) -> Result<(), String> {
        if self.0.is_empty() || set.is_empty() {
            return Ok(());
        }
        let mut after = situation.current.clone();
        after.extend(set.iter().map(|(key, value)| (key.clone(), value.clone())));
        for place in touched(set, &after) {
            let lookup = |name: &str| -> Result<Term, String> {
                let metric = situation.metrics.get(name);
                Ok(metric.map_or_else(|| value_at(&place, name, &after), |it| number(*it)))
            };
            for Rule { formula, text, why } in &self.0 {
                match formula.holds(&lookup) {
                    Ok(None | Some(false)) => {}
                    Ok(Some(true)) => return Err(format!("rule: {text} ({why})")),
                    Err(error) => return Err(format!("rule: {text}: {error}")),
                }
            }
        }
        Ok(())
    }
}

/// A node and a stream; none means all of them.
type Place = (Option<String>, Option<String>);

fn places<'a>(keys: impl Iterator<Item = &'a String>) -> BTreeSet<Place> {
    keys.map(|key| Key::parse(key))
        .map(|key| (key.node, key.stream))
        .collect()
}

/// Where a setting changes something. What concerns all nodes concerns each one's own knobs as well.
fn touched(set: &Values, after: &Values) -> BTreeSet<Place> {
    let mut touched = places(set.keys());
    if touched.contains(&(None, None)) {
        touched.extend(places(after.keys()));
    }
    touched
}

fn number(value: f64) -> Term {
    if value.is_finite() {
        Term::Number(value)
    } else {
        Term::None
    }
}

/// A knob's value at a place, by the name that formulas give it.
fn value_at((node, stream): &Place, name: &str, setting: &Values) -> Term {
    let fits = |key: &Key| {
        alias(&key.knob) == name
            && (key.node.is_none() || key.node == *node)
            && (key.stream.is_none() || key.stream == *stream)
    };
    let found = setting.iter().find(|(key, _)| fits(&Key::parse(key)));
    match found.map(|it| it.1) {
        Some(Value::Number(value)) => value.as_f64().map_or(Term::None, number),
        Some(Value::String(word)) => Term::Text(word.clone()),
        Some(Value::Bool(value)) => Term::Boolean(*value),
        _ => Term::None,
    }
}
