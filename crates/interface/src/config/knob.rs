//! `[[knob]]`: what may be set, and to what.

use ascar_guard::Pace;
use ascar_messaging::{Fault, parameter};
use serde::Deserialize;
use serde_json::Value;

use crate::key::Scope;

/// `[[knob]]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ParameterRule {
    /// As agents call it.
    pub name: String,
    /// For whom a value is.
    #[serde(default)]
    pub scope: Scope,
    /// Least number.
    pub minimum: Option<f64>,
    /// Greatest number.
    pub maximum: Option<f64>,
    /// The allowed values, instead of a range.
    #[serde(default)]
    pub choices: Vec<Value>,
    /// What a learner may move it by; only told to the learner.
    pub step: Option<f64>,
    /// Largest change of a number at once.
    pub change_max: Option<f64>,
    /// Fewest ticks between two changes.
    #[serde(default)]
    pub interval_ticks: u64,
}

impl ParameterRule {
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
        parameter::check_bounds(name, self.minimum, self.maximum)?;
        let of_knob = |reason: String| Fault(format!("knob {name:?}: {reason}"));
        self.pace().check().map_err(of_knob)?;
        if let Some(step) = self.step
            && (step <= 0.0 || !step.is_finite())
        {
            return Err(of_knob(format!("step = {step}: must be above 0")));
        }
        if self.scope == Scope::Stream && !name.contains('*') {
            return Err(Fault(format!(
                "knob {name:?}: scope = \"stream\" needs a name with a *"
            )));
        }
        Ok(())
    }

    /// How fast it may change.
    pub fn pace(&self) -> Pace {
        Pace {
            change_max: self.change_max,
            interval_ticks: self.interval_ticks,
        }
    }

    /// Whether a value is allowed.
    ///
    /// # Errors
    /// The name, the value, what is allowed.
    pub fn allows(&self, value: &Value) -> Result<(), String> {
        let name = &self.name;
        parameter::check(value, self.minimum, self.maximum, &self.choices)
            .map_err(|allowed| format!("range: {name} = {value}: allowed are {allowed}"))
    }
}
