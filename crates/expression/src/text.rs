//! The text of a tree, of values and of what errors quote.

use std::fmt::Write;

use crate::tree::{ATOM, Node, Operator, Value};

/// From here on whole numbers are written with an exponent or a fraction, as Python writes floats.
const WHOLE_MAX: f64 = 1e15;

/// The text of a node, in parentheses where it binds less tightly than `least`.
pub(crate) fn text_of(node: &Node, least: u8) -> String {
    let (operator, operands) = match node {
        Node::Literal(value) => return literal(value),
        Node::Name(name) => return name.clone(),
        Node::Operation(operator, operands) => (*operator, operands.as_slice()),
    };
    let sign = operator.sign();
    let mut binding = operator.binding();
    let text = match (operator, operands) {
        _ if binding == ATOM => format!("{sign}({})", listed(operands, 0)),
        (Operator::Not, [Node::Operation(Operator::In, inner)]) => {
            binding = Operator::In.binding();
            membership(inner, "not in")
        }
        (Operator::Not, [inner]) => format!("not {}", text_of(inner, binding)),
        (Operator::Negate, [inner]) => format!("-{}", text_of(inner, binding)),
        (Operator::In, _) => membership(operands, "in"),
        (Operator::Power, [base, exponent]) => format!(
            "{} ** {}",
            text_of(base, ATOM),
            text_of(exponent, Operator::Negate.binding())
        ),
        // To the left; comparisons do not chain, so both of their sides must bind tighter.
        (_, [left, right]) => format!(
            "{} {sign} {}",
            text_of(left, binding + u8::from(operator.compares())),
            text_of(right, binding + 1)
        ),
        _ => unreachable!("{sign} has {} operands", operands.len()),
    };
    if binding < least {
        format!("({text})")
    } else {
        text
    }
}

fn listed(nodes: &[Node], least: u8) -> String {
    let texts: Vec<String> = nodes.iter().map(|node| text_of(node, least)).collect();
    texts.join(", ")
}

fn membership(operands: &[Node], operator: &str) -> String {
    let least = Operator::In.binding() + 1;
    let elements = listed(&operands[1..], least);
    format!("{} {operator} ({elements})", text_of(&operands[0], least))
}

/// A value as the text that parses to it (a negative number: to the minus of one).
pub fn literal(value: &Value) -> String {
    match value {
        Value::Number(number) => number_text(*number),
        Value::Text(text) => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
        Value::Boolean(value) => value.to_string(),
        Value::None => "n/a".to_owned(),
    }
}

/// The shortest decimal number that is read as this one; whole numbers below 10^15 without a fraction.
fn number_text(number: f64) -> String {
    let magnitude = number.abs();
    if number.fract() == 0.0 && magnitude < WHOLE_MAX {
        return format!("{}", number + 0.0);
    }
    if !number.is_finite() || (1e-4..1e16).contains(&magnitude) {
        return format!("{number:?}");
    }
    let text = format!("{number:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

/// A text in quotes on one line, as Python's `repr` writes it.
pub fn quoted(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') {
        '"'
    } else {
        '\''
    };
    let mut quoted = String::from(quote);
    for character in text.chars() {
        match character {
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            it if it == quote => {
                quoted.push('\\');
                quoted.push(it);
            }
            it if is_printable(it) => quoted.push(it),
            it => escape(&mut quoted, it),
        }
    }
    quoted.push(quote);
    quoted
}

fn escape(quoted: &mut String, character: char) {
    let code = u32::from(character);
    let written = match code {
        0..=0xff => write!(quoted, "\\x{code:02x}"),
        0x100..=0xffff => write!(quoted, "\\u{code:04x}"),
        _ => write!(quoted, "\\U{code:08x}"),
    };
    debug_assert!(written.is_ok(), "a string takes everything");
}

/// Whether a character shows as itself behind another one; marks that combine with it do.
fn is_printable(character: char) -> bool {
    let shown: String = ['a', character].iter().collect();
    !character.is_control() && !shown.escape_debug().to_string().starts_with("a\\u{")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_python_writes_them() {
        for (number, text) in [
            (0.0, "0"),
            (-0.0, "0"),
            (3.0, "3"),
            (-2.5, "-2.5"),
            (0.1, "0.1"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (1.5e-7, "1.5e-07"),
            (999_999_999_999_999.0, "999999999999999"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1.25e17, "1.25e+17"),
            (1e300, "1e+300"),
            (5e-324, "5e-324"),
            (f64::MAX, "1.7976931348623157e+308"),
        ] {
            assert_eq!(literal(&Value::Number(number)), text);
            assert_eq!(text.parse::<f64>().unwrap(), number);
        }
    }

    #[test]
    fn quotes_hold_anything_on_one_line() {
        for (text, shown) in [
            ("a", "'a'"),
            ("it's", "\"it's\""),
            ("it's \"it\"", "'it\\'s \"it\"'"),
            ("a\\b\n\t\r\u{0}\u{7f}", "'a\\\\b\\n\\t\\r\\x00\\x7f'"),
            ("é\u{301}漢\u{1f600}", "'é\u{301}漢\u{1f600}'"),
            (
                "\u{a0}\u{2028}\u{e000}\u{f0000}",
                "'\\xa0\\u2028\\ue000\\U000f0000'",
            ),
        ] {
            assert_eq!(quoted(text), shown);
        }
    }
}
