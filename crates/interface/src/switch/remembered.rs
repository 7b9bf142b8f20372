//! A state that was read.

use serde_json::Value;

use crate::config::Mode;
use crate::kill::Kill;

/// A state's own parts.
pub(super) struct Remembered {
    pub killed: bool,
    pub mode: Mode,
    pub kill: Option<Kill>,
    /// The session's.
    pub rest: Value,
}

impl Remembered {
    /// None where a part is missing or wrong; `is_right` judges the other parts.
    pub fn parse(text: &str, is_right: impl Fn(&Value) -> bool) -> Option<Self> {
        let mut state: Value = serde_json::from_str(text).ok()?;
        let mut part = |key: &str| state.get_mut(key).map(Value::take);
        let found = Self {
            killed: part("killed")?.as_bool()?,
            mode: serde_json::from_value(part("mode")?).ok()?,
            // Earlier versions had none.
            kill: serde_json::from_value(part("kill").unwrap_or_default()).ok()?,
            rest: state,
        };
        is_right(&found.rest).then_some(found)
    }
}
