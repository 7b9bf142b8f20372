//! What protects a system while it is tuned: floors and ceilings of metrics, times at which changes are allowed,
//! forbidden combinations, and how fast parameters may change. Pure: whoever asks brings the time and the values.

mod combination;
mod limit;
mod pace;
mod service_level;
mod window;

use std::collections::BTreeMap;

use serde::Deserialize;

pub use combination::{Combination, Forbidden};
pub use limit::{Ceiling, Floor, Limit, Side};
pub use pace::Pace;
pub use service_level::{ServiceLevel, Values, Violation};
pub use window::{Window, is_open, opens_in_minutes};

/// `[guard]` of a study.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Guard {
    /// Least means of metrics.
    #[serde(rename = "floor")]
    pub floors: Vec<Floor>,
    /// Greatest means of metrics.
    #[serde(rename = "ceiling")]
    pub ceilings: Vec<Ceiling>,
    /// What must not be.
    #[serde(rename = "rule")]
    pub combinations: Vec<Combination>,
    /// When something may be changed; always where there is none.
    #[serde(rename = "window")]
    pub windows: Vec<Window>,
    /// How fast parameters may change, by their names.
    pub pace: BTreeMap<String, Pace>,
}

impl Guard {
    /// The guard of a table in JSON, checked.
    ///
    /// # Errors
    /// The key and what is wrong with it.
    pub fn from_json(text: &str) -> Result<Self, String> {
        let mut reader = serde_json::Deserializer::from_str(text);
        let guard: Self = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
            let reason = error.inner().to_string();
            let reason = reason.split(" at line ").next().unwrap_or_default();
            format!("guard.{}: {reason}", error.path())
        })?;
        guard.check().map_err(|reason| format!("guard.{reason}"))?;
        Ok(guard)
    }

    /// Whether every part makes sense by itself.
    ///
    /// # Errors
    /// The key and what is wrong with it.
    pub fn check(&self) -> Result<(), String> {
        let keyed = |part: &str, at: usize, checked: Result<(), String>| {
            checked.map_err(|reason| format!("{part}[{at}].{reason}"))
        };
        for (at, floor) in self.floors.iter().enumerate() {
            keyed("floor", at, Limit::from(floor).check())?;
        }
        for (at, ceiling) in self.ceilings.iter().enumerate() {
            keyed("ceiling", at, Limit::from(ceiling).check())?;
        }
        for (at, combination) in self.combinations.iter().enumerate() {
            keyed("rule", at, combination.check())?;
        }
        for (at, window) in self.windows.iter().enumerate() {
            keyed("window", at, window.check())?;
        }
        for (name, pace) in &self.pace {
            pace.check()
                .map_err(|reason| format!("pace.{name}.{reason}"))?;
        }
        Ok(())
    }

    /// Floors and ceilings.
    pub fn limits(&self) -> Vec<Limit> {
        let floors = self.floors.iter().map(Limit::from);
        floors
            .chain(self.ceilings.iter().map(Limit::from))
            .collect()
    }
}

#[cfg(test)]
mod tests;
