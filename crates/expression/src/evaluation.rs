//! What a formula comes to with values for its names.

use crate::text::{literal, quoted};
use crate::tree::{Node, Operator, Value};

/// How many known names the error of an unknown one lists.
const KNOWN_SHOWN: usize = 20;

/// The error of a name that has no value.
pub fn unknown(name: &str, mut known: Vec<String>) -> String {
    known.sort_unstable();
    known.truncate(KNOWN_SHOWN);
    let known = if known.is_empty() {
        "none".to_owned()
    } else {
        known.join(", ")
    };
    format!("unknown name {}; known here: {known}", quoted(name))
}

/// The value of a tree.
///
/// # Errors
/// What `lookup` refuses; a kind does not fit, or a result is not finite.
pub(crate) fn evaluate<E: From<String>>(
    node: &Node,
    lookup: &dyn Fn(&str) -> Result<Value, E>,
) -> Result<Value, E> {
    let (operator, operands) = match node {
        Node::Literal(value) => return Ok(value.clone()),
        Node::Name(name) => return lookup(name),
        Node::Operation(operator, operands) => (*operator, operands.as_slice()),
    };
    let truth = |index: usize| -> Result<Option<bool>, E> {
        match evaluate(&operands[index], lookup)? {
            Value::Boolean(value) => Ok(Some(value)),
            Value::None => Ok(None),
            other => Err(E::from(format!(
                "{} takes true or false, not {}; write a comparison",
                quoted(operator.sign()),
                literal(&other)
            ))),
        }
    };
    match operator {
        Operator::And | Operator::Or => {
            // Kleene's: the decisive one settles it whatever the other operand is.
            let decisive = Some(operator == Operator::Or);
            let first = truth(0)?;
            if first == decisive {
                return Ok(of(first));
            }
            let second = truth(1)?;
            Ok(match first {
                None if second != decisive => Value::None,
                _ => of(second),
            })
        }
        Operator::Not => Ok(of(truth(0)?.map(|value| !value))),
        Operator::If => match truth(0)? {
            Some(chosen) => evaluate(&operands[if chosen { 1 } else { 2 }], lookup),
            None => Ok(Value::None),
        },
        _ => {
            let values: Vec<Value> = operands
                .iter()
                .map(|operand| evaluate(operand, lookup))
                .collect::<Result<_, E>>()?;
            Ok(applied(operator, &values)?)
        }
    }
}

fn of(truth: Option<bool>) -> Value {
    truth.map_or(Value::None, Value::Boolean)
}

/// An operation that needs all its operands.
fn applied(operator: Operator, values: &[Value]) -> Result<Value, String> {
    if operator == Operator::In {
        return Ok(member(&values[0], &values[1..]));
    }
    if values.contains(&Value::None) {
        return Ok(Value::None);
    }
    match operator {
        Operator::Equal => Ok(Value::Boolean(values[0] == values[1])),
        Operator::Unequal => Ok(Value::Boolean(values[0] != values[1])),
        Operator::Less | Operator::LessOrEqual | Operator::Greater | Operator::GreaterOrEqual => {
            ordered(operator, &values[0], &values[1]).map(Value::Boolean)
        }
        _ => computed(operator, values).map(Value::Number),
    }
}

fn member(value: &Value, elements: &[Value]) -> Value {
    if *value == Value::None {
        Value::None
    } else if elements.contains(value) {
        Value::Boolean(true)
    } else if elements.contains(&Value::None) {
        Value::None
    } else {
        Value::Boolean(false)
    }
}

fn ordered(operator: Operator, left: &Value, right: &Value) -> Result<bool, String> {
    let (Value::Number(first), Value::Number(second)) = (left, right) else {
        return Err(format!(
            "{} orders numbers, not {} and {}; use == or in",
            quoted(operator.sign()),
            literal(left),
            literal(right)
        ));
    };
    Ok(match operator {
        Operator::Less => first < second,
        Operator::LessOrEqual => first <= second,
        Operator::Greater => first > second,
        _ => first >= second,
    })
}

fn computed(operator: Operator, values: &[Value]) -> Result<f64, String> {
    let called = || quoted(operator.sign());
    let mut numbers = Vec::with_capacity(values.len());
    for value in values {
        let Value::Number(number) = value else {
            let found = literal(value);
            return Err(format!("{} takes numbers, not {found}", called()));
        };
        numbers.push(*number);
    }
    let first = numbers[0];
    let second = numbers.get(1).copied().unwrap_or(f64::NAN);
    let rest = numbers[1..].iter().copied();
    let result = match operator {
        Operator::Add => first + second,
        Operator::Subtract => first - second,
        Operator::Multiply => first * second,
        Operator::Divide => first / second,
        Operator::Power => first.powf(second),
        Operator::Negate => -first,
        Operator::Min => rest.fold(first, |least, it| if it < least { it } else { least }),
        Operator::Max => rest.fold(first, |most, it| if it > most { it } else { most }),
        Operator::Abs => first.abs(),
        Operator::Log => first.ln(),
        Operator::Exp => first.exp(),
        Operator::Sqrt => first.sqrt(),
        other => unreachable!("{} takes no numbers alone", other.sign()),
    };
    if !result.is_finite() {
        let shown: Vec<String> = values.iter().map(literal).collect();
        return Err(format!(
            "{} of {} has no finite value; guard it with if(...)",
            called(),
            shown.join(", ")
        ));
    }
    Ok(result)
}
