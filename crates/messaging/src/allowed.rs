//! Whether a value is one that a parameter may have.

use serde_json::Value;

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
}
