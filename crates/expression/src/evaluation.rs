//! What a formula comes to.

use crate::parser::{Expression, Node};

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A finite number.
    Number(f64),
    /// A word.
    Text(String),
    /// True or false.
    Boolean(bool),
    /// Not applicable: of a name that has no value now.
    None,
}

impl std::fmt::Display for Value {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(value) => write!(formatter, "{value}"),
            Self::Text(value) => write!(formatter, "{value:?}"),
            Self::Boolean(value) => write!(formatter, "{value}"),
            Self::None => write!(formatter, "n/a"),
        }
    }
}

impl Expression {
    /// The result with values for names; `lookup` is None for a name that nobody knows.
    ///
    /// # Errors
    /// An unknown name, an operand of a wrong kind, a result that is not finite.
    pub fn evaluate(&self, lookup: &dyn Fn(&str) -> Option<Value>) -> Result<Value, String> {
        evaluate(&self.root, lookup).map_err(|error| format!("formula {:?}: {error}", self.text()))
    }

    /// Whether it is true; n/a is not.
    ///
    /// # Errors
    /// As [`Self::evaluate`], or when it is neither true nor false.
    pub fn holds(&self, lookup: &dyn Fn(&str) -> Option<Value>) -> Result<bool, String> {
        match self.evaluate(lookup)? {
            Value::Boolean(value) => Ok(value),
            Value::None => Ok(false),
            other => Err(format!(
                "formula {:?}: is {other}, neither true nor false",
                self.text()
            )),
        }
    }
}

fn evaluate(node: &Node, lookup: &dyn Fn(&str) -> Option<Value>) -> Result<Value, String> {
    let (operator, operands) = match node {
        Node::Literal(value) => return Ok(value.clone()),
        Node::Name(name) => return lookup(name).ok_or_else(|| format!("unknown name {name:?}")),
        Node::Operation(operator, operands) => (*operator, operands),
    };
    let value = |index: usize| evaluate(&operands[index], lookup);
    match operator {
        "and" | "or" => {
            let decisive = operator == "or";
            let first = truth(operator, value(0)?)?;
            if first == Some(decisive) {
                return Ok(Value::Boolean(decisive));
            }
            let second = truth(operator, value(1)?)?;
            return Ok(match (first, second) {
                (_, Some(second)) if second == decisive => Value::Boolean(decisive),
                (Some(_), Some(_)) => Value::Boolean(!decisive),
                _ => Value::None,
            });
        }
        "not" => {
            return Ok(match truth(operator, value(0)?)? {
                Some(value) => Value::Boolean(!value),
                None => Value::None,
            });
        }
        "if" => {
            return match truth(operator, value(0)?)? {
                Some(true) => value(1),
                Some(false) => value(2),
                None => Ok(Value::None),
            };
        }
        _ => {}
    }
    let values: Vec<Value> = operands
        .iter()
        .map(|operand| evaluate(operand, lookup))
        .collect::<Result<_, _>>()?;
    if operator.ends_with("in") && operator != "min" {
        let [wanted, elements @ ..] = values.as_slice() else {
            return Err("in: has no elements".to_owned());
        };
        let found = if *wanted == Value::None {
            None
        } else if elements.contains(wanted) {
            Some(true)
        } else if elements.contains(&Value::None) {
            None
        } else {
            Some(false)
        };
        return Ok(match found {
            Some(found) => Value::Boolean(found == (operator == "in")),
            None => Value::None,
        });
    }
    if values.contains(&Value::None) {
        return Ok(Value::None);
    }
    match operator {
        "==" => return Ok(Value::Boolean(values[0] == values[1])),
        "!=" => return Ok(Value::Boolean(values[0] != values[1])),
        _ => {}
    }
    let numbers: Vec<f64> = values
        .iter()
        .map(|value| match value {
            Value::Number(number) => Ok(*number),
            other => Err(format!("{operator} takes numbers, not {other}")),
        })
        .collect::<Result<_, _>>()?;
    let (first, second) = (numbers[0], numbers.get(1).copied().unwrap_or(f64::NAN));
    let result = match operator {
        "<" => return Ok(Value::Boolean(first < second)),
        "<=" => return Ok(Value::Boolean(first <= second)),
        ">" => return Ok(Value::Boolean(first > second)),
        ">=" => return Ok(Value::Boolean(first >= second)),
        "+" => first + second,
        "-" => first - second,
        "*" => first * second,
        "/" => first / second,
        "**" => first.powf(second),
        "neg" => -first,
        "min" => numbers.iter().copied().fold(f64::INFINITY, f64::min),
        "max" => numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        "abs" => first.abs(),
        "log" => first.ln(),
        "exp" => first.exp(),
        "sqrt" => first.sqrt(),
        other => return Err(format!("{other}: is no operator")),
    };
    if !result.is_finite() {
        return Err(format!(
            "{operator} of {numbers:?} has no finite value: guard it with if(...)"
        ));
    }
    Ok(Value::Number(result))
}

fn truth(operator: &str, value: Value) -> Result<Option<bool>, String> {
    match value {
        Value::Boolean(value) => Ok(Some(value)),
        Value::None => Ok(None),
        other => Err(format!("{operator} takes true or false, not {other}")),
    }
}
