//! `[[knob]]`: what may be set, and to what.

use ascar_messaging::Fault;
use serde::Deserialize;
use serde_json::Value;

use crate::key::Scope;

/// `[[knob]]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnobRule {
    /// As agents call it.
    pub name: String,
    /// For whom a value is.
    #[serde(default)]
    pub scope: Scope,
    /// Least number.
    pub minimum: Option<f64>,
    /// Greatest number.
    pub maximum: Option<f64>,
    /// Allowed words.
    #[serde(default)]
    pub choices: Vec<String>,
    /// What a learner may move it by; only told to the learner.
    pub step: Option<f64>,
    /// Largest change of a number at once.
    pub change_max: Option<f64>,
    /// Fewest ticks between two changes.
    #[serde(default)]
    pub interval_ticks: u64,
}

impl KnobRule {
    pub(super) fn check(&self) -> Result<(), Fault> {
        let name = &self.name;
        if name.is_empty()
            || name.len() > 200
            || name.contains(['@', ' '])
            || name.contains(char::is_control)
        {
            return Err(Fault(format!(
                "knob.name = {name:?}: allowed are 1 to 200 signs without spaces and @"
            )));
        }
        match (self.minimum, self.maximum) {
            (Some(low), Some(high)) if low > high => {
                return Err(Fault(format!(
                    "knob {name:?}: minimum = {low} is more than maximum = {high}"
                )));
            }
            _ => {}
        }
        for (key, value) in [("change_max", self.change_max), ("step", self.step)] {
            if value.is_some_and(|it| it <= 0.0 || !it.is_finite()) {
                return Err(Fault(format!("knob {name:?}: {key} must be more than 0")));
            }
        }
        if self.scope == Scope::Stream && !name.contains('*') {
            return Err(Fault(format!(
                "knob {name:?}: scope = \"stream\" needs a name with a *"
            )));
        }
        Ok(())
    }

    /// Whether a value is allowed.
    ///
    /// # Errors
    /// The name, the value, what is allowed.
    pub fn allows(&self, value: &Value) -> Result<(), String> {
        let name = &self.name;
        let numbers = || {
            format!(
                "numbers from {} to {}",
                self.minimum.map_or("any".to_owned(), |it| it.to_string()),
                self.maximum.map_or("any".to_owned(), |it| it.to_string())
            )
        };
        let (is_allowed, allowed) = match value {
            Value::Number(number) => {
                let number = number.as_f64().unwrap_or(f64::NAN);
                let is_within = number.is_finite()
                    && self.minimum.is_none_or(|low| number >= low)
                    && self.maximum.is_none_or(|high| number <= high);
                (
                    is_within && self.choices.is_empty(),
                    if self.choices.is_empty() {
                        numbers()
                    } else {
                        self.choices.join(", ")
                    },
                )
            }
            Value::String(word) => (self.choices.contains(word), self.choices.join(", ")),
            Value::Bool(_) => (self.choices.is_empty() && self.minimum.is_none(), numbers()),
            _ => (false, "a number, a word or a boolean".to_owned()),
        };
        if is_allowed {
            return Ok(());
        }
        Err(format!(
            "range: {name} = {value}: allowed are {}",
            if allowed.is_empty() {
                numbers()
            } else {
                allowed
            }
        ))
    }
}
