//! What users forbid (`[[rule]]`), judged at each place that an action touches.

use std::collections::BTreeSet;

use ascar_expression::Value as Term;
use ascar_guard::Forbidden;
use ascar_messaging::Fault;
use serde_json::Value;

use super::Situation;
use crate::config::Config;
use crate::key::{Key, alias};
use crate::setting::Values;

/// The combinations of a file.
///
/// # Errors
/// When a formula names something that nobody knows.
pub(super) fn forbidden(config: &Config) -> Result<Forbidden, Fault> {
    let mut known: BTreeSet<String> = config.knobs.iter().map(|knob| alias(&knob.name)).collect();
    known.extend(config.metrics.iter().map(|metric| metric.name.clone()));
    Forbidden::new(&config.rules, &known).map_err(|reason| Fault(format!("rule.{reason}")))
}

/// Judges each place that is touched, with the setting as it would be.
///
/// # Errors
/// The formula that holds, and why it must not.
pub(super) fn check(
    forbidden: &Forbidden,
    set: &Values,
    situation: &Situation,
) -> Result<(), String> {
    if forbidden.is_empty() || set.is_empty() {
        return Ok(());
    }
    let mut after = situation.current.clone();
    after.extend(set.iter().map(|(key, value)| (key.clone(), value.clone())));
    for place in touched(set, &after) {
        forbidden.check(|name| {
            let metric = situation.metrics.get(name);
            Ok(metric.map_or_else(|| value_at(&place, name, &after), |it| number(*it)))
        })?;
    }
    Ok(())
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
