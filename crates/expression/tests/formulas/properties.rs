//! Whatever somebody writes as a formula: a value or an error in words, never a panic.

use ascar_expression::{DEPTH_MAX, Expression, Value};
use proptest::prelude::*;

/// Reads a formula, and evaluates it with names of every type.
fn tried(text: &str) {
    let Ok(formula) = Expression::parse(text) else {
        return;
    };
    for value in [
        Value::None,
        Value::Boolean(true),
        Value::Number(-0.5),
        Value::Number(1e300),
        Value::Text("x".to_owned()),
    ] {
        let found: Result<Value, String> = formula.evaluate_or_none(&|_| Ok(value.clone()));
        if let Err(words) = found {
            assert!(!words.is_empty());
        }
    }
}

proptest! {
    #[test]
    fn any_text_is_a_formula_or_an_error(text in "\\PC*") {
        tried(&text);
    }

    /// Tokens of the language in any order.
    #[test]
    fn tokens_in_any_order_are_a_formula_or_an_error(words in prop::collection::vec(prop::sample::select(vec![
        "(", ")", "[", "]", ",", "+", "-", "*", "/", "%", "**", "<", "<=", "==", "!=", ">", "and", "or", "not", "in",
        "true", "false", "if", "else", "a", "b.c", "min", "max", "log", "abs", "0", "1.5", "1e400", "4 KiB", "\"x\"", "'", "\\",
    ]), 0..40)) {
        tried(&words.join(" "));
    }

    #[test]
    fn any_depth_is_read_or_refused(depth in 0usize..4 * DEPTH_MAX, word in prop::sample::select(vec!["(", "-", "not ", "min(", "1+", "["])) {
        tried(&(word.repeat(depth) + "1"));
        tried(&(word.repeat(depth) + "1" + &")".repeat(depth)));
    }
}
