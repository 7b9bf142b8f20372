//! A parameter: its name, the values that it may have, and which one is in force on a node.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Fault;

/// A parameter that a node may set, as its file names it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    /// Its name; `*` for any device.
    pub name: String,
    /// Least number.
    pub minimum: Option<f64>,
    /// Greatest number.
    pub maximum: Option<f64>,
    /// Or all of its values.
    #[serde(default)]
    pub choices: Vec<Value>,
}

impl Parameter {
    /// # Errors
    /// When no number is within the bounds.
    pub fn check(&self) -> Result<(), Fault> {
        check_bounds(&self.name, self.minimum, self.maximum)
    }

    /// # Errors
    /// What is allowed, when the value is not.
    pub fn allows(&self, value: &Value) -> Result<(), String> {
        check(value, self.minimum, self.maximum, &self.choices)
    }
}

/// A parameter of a node with what is in force, as the agent tells the interface.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct ParameterState {
    /// Its name, `*` included.
    pub name: String,
    /// What is in force; of the first instance where there are several.
    pub value: Value,
    /// Least number.
    #[serde(default)]
    pub minimum: Option<f64>,
    /// Greatest number.
    #[serde(default)]
    pub maximum: Option<f64>,
    /// Or all of its values.
    #[serde(default)]
    pub choices: Vec<Value>,
    /// What `*` stands for, with each one's value.
    #[serde(default)]
    pub streams: BTreeMap<String, Value>,
}

/// # Errors
/// When the least number is above the greatest.
pub fn check_bounds(name: &str, minimum: Option<f64>, maximum: Option<f64>) -> Result<(), Fault> {
    match (minimum, maximum) {
        (Some(low), Some(high)) if low > high => Err(Fault(format!(
            "knob {name:?}: minimum = {low} is more than maximum = {high}"
        ))),
        _ => Ok(()),
    }
}

/// Whether `value` is one of `choices` or, where there are none, a number within the bounds; booleans pass where
/// nothing is given.
///
/// # Errors
/// What is allowed.
pub fn check(
    value: &Value,
    minimum: Option<f64>,
    maximum: Option<f64>,
    choices: &[Value],
) -> Result<(), String> {
    let is_allowed = match value {
        _ if !choices.is_empty() => choices.iter().any(|choice| is_same(choice, value)),
        Value::Number(number) => number.as_f64().is_some_and(|number| {
            minimum.is_none_or(|low| number >= low) && maximum.is_none_or(|high| number <= high)
        }),
        Value::Bool(_) => minimum.is_none() && maximum.is_none(),
        _ => false,
    };
    if is_allowed {
        return Ok(());
    }
    if choices.is_empty() {
        let bound = |it: Option<f64>| it.map_or("any".to_owned(), |it| it.to_string());
        return Err(format!(
            "numbers from {} to {}",
            bound(minimum),
            bound(maximum)
        ));
    }
    Err(choices.iter().map(word).collect::<Vec<_>>().join(", "))
}

/// A value as people write it: words without quotes.
pub fn word(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// Whether two values are the same: 1 and 1.0 are.
pub fn is_same(one: &Value, other: &Value) -> bool {
    match (one.as_f64(), other.as_f64()) {
        (Some(one), Some(other)) => one == other,
        _ => one == other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_choices_or_within_bounds() {
        let words = [json!("none"), json!("bfq")];
        let numbers = [json!(16), json!(64.0), json!(false)];
        assert!(check(&json!("bfq"), None, None, &words).is_ok());
        assert_eq!(
            check(&json!("cfq"), None, None, &words),
            Err("none, bfq".to_owned())
        );
        assert!(check(&json!(1), None, None, &words).is_err());
        assert!(check(&json!(64), None, None, &numbers).is_ok());
        assert!(check(&json!(false), None, None, &numbers).is_ok());
        assert_eq!(
            check(&json!(17), None, None, &numbers),
            Err("16, 64.0, false".to_owned())
        );
        assert!(check(&json!(5), Some(1.0), Some(5.0), &[]).is_ok());
        for wrong in [
            json!(0),
            json!(6),
            json!("x"),
            json!(null),
            json!([1]),
            json!(true),
        ] {
            assert_eq!(
                check(&wrong, Some(1.0), Some(5.0), &[]),
                Err("numbers from 1 to 5".to_owned())
            );
        }
        assert!(check(&json!(true), None, None, &[]).is_ok());
    }

    #[test]
    fn bounds_in_the_wrong_order_are_refused() {
        let with = |minimum, maximum| Parameter {
            name: "depth".to_owned(),
            minimum,
            maximum,
            choices: vec![],
        };
        assert!(with(Some(1.0), Some(1.0)).check().is_ok());
        assert!(with(None, Some(-1.0)).check().is_ok());
        let fault = with(Some(2.0), Some(1.0)).check().unwrap_err();
        assert_eq!(
            fault.0,
            "knob \"depth\": minimum = 2 is more than maximum = 1"
        );
    }

    #[test]
    fn a_state_reads_as_it_was_written_and_bears_keys_of_later_versions() {
        let state = ParameterState {
            name: "block.*.scheduler".to_owned(),
            value: json!("none"),
            choices: vec![json!("none"), json!("bfq")],
            streams: BTreeMap::from([("vda".to_owned(), json!("none"))]),
            ..Default::default()
        };
        let mut written = json!(state);
        assert_eq!(
            serde_json::from_value::<ParameterState>(written.clone()).unwrap(),
            state
        );
        written["later"] = json!(1);
        assert_eq!(
            serde_json::from_value::<ParameterState>(written).unwrap(),
            state
        );
        let least = json!({"name": "depth", "value": 8});
        assert_eq!(
            serde_json::from_value::<ParameterState>(least)
                .unwrap()
                .minimum,
            None
        );
        for wrong in [
            json!({}),
            json!({"name": "depth"}),
            json!({"name": 1, "value": 1}),
            json!([]),
        ] {
            assert!(serde_json::from_value::<ParameterState>(wrong).is_err());
        }
    }
}
