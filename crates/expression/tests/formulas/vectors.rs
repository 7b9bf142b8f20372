//! The vectors that every implementation keeps to.

use ascar_expression::{Expression, Value, literal, quoted, unknown};
use serde_json::Value as Json;

fn value(json: &Json) -> Value {
    match json {
        Json::Null => Value::None,
        Json::Bool(value) => Value::Boolean(*value),
        Json::Number(value) => Value::Number(value.as_f64().unwrap()),
        Json::String(value) => Value::Text(value.clone()),
        other => panic!("{other}"),
    }
}

fn vectors() -> Json {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/data/expression_vectors.json"
    );
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn result(case: &Json) -> Result<Value, String> {
    let values = case["values"].clone();
    Expression::parse(case["formula"].as_str().unwrap())?.evaluate_or_none(&|name| {
        let known = || values.as_object().unwrap().keys().cloned().collect();
        values
            .get(name)
            .map(value)
            .ok_or_else(|| unknown(name, known()))
    })
}

#[test]
fn results_agree() {
    let mut count = 0;
    for case in vectors()["evaluate"].as_array().unwrap() {
        count += 1;
        if case.get("error").is_some() {
            assert!(result(case).is_err(), "{case}");
            continue;
        }
        let expected = value(&case["result"]);
        let found = result(case).unwrap_or_else(|error| panic!("{case}: {error}"));
        let is_close = match (&found, &expected) {
            (Value::Number(a), Value::Number(b)) => (a - b).abs() <= 1e-12 * b.abs(),
            (a, b) => a == b,
        };
        assert!(is_close, "{case}: {}", literal(&found));
    }
    assert!(count > 100);
}

#[test]
fn what_is_no_formula_is_refused_at_its_place() {
    let vectors = vectors();
    for case in vectors["syntax_errors"].as_array().unwrap() {
        let error = Expression::parse(case["formula"].as_str().unwrap()).unwrap_err();
        let place = format!("position {}: expected", case["position"]);
        assert!(error.contains(&place), "{case}: {error}");
        assert!(
            error.contains(&quoted(case["formula"].as_str().unwrap())),
            "{case}: {error}"
        );
    }
}

#[test]
fn any_text_is_read_or_refused() {
    let mut state = 1_u64;
    let pieces = [
        "(", ")", "-", "not ", "a", "1", "<", " in ", ",", "**", "if(", "'x'", "and ", "\u{0}",
        "é", ".", "1e",
    ];
    for _ in 0..20_000 {
        let mut text = String::new();
        for _ in 0..12 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            text.push_str(pieces[(state >> 33) as usize % pieces.len()]);
        }
        if let Ok(formula) = Expression::parse(&text) {
            let number = |_: &str| -> Result<Value, String> { Ok(Value::Number(1.0)) };
            let _ = formula.evaluate(&number);
            let again = Expression::parse(&formula.to_string()).unwrap();
            assert_eq!(again, formula, "{text}");
        }
    }
    assert!(Expression::parse(&"(".repeat(4000)).is_err());
    assert!(Expression::parse(&"-".repeat(4000)).is_err());
    assert!(Expression::parse(&"1+".repeat(3000)).is_err());
}
