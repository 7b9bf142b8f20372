//! The limits of what a node may say: of every message and of every field. Agents keep them, and the interface
//! cuts off whoever does not.

use serde_json::{Map, Value};

use crate::ParameterState;

/// Most bytes of a hello and of an answer.
pub const MESSAGE_BYTES_MAX: usize = 512 * 1024;
/// Most bytes of a frame.
pub const FRAME_BYTES_MAX: usize = 64 * 1024;
/// Most indicators of a node: as many as a frame may have.
pub const INDICATORS_MAX: usize = 4096;
/// Longest name of an indicator, of a parameter.
pub const NAME_BYTES_MAX: usize = 200;
/// Most bytes of the names of all indicators of a node.
pub const NAMES_BYTES_MAX: usize = 256 * 1024;
/// Most parameters of a node.
pub const KNOBS_MAX: usize = 1024;
/// Most streams of all parameters of a node.
pub const STREAMS_MAX: usize = 4096;
/// Longest name of a stream.
pub const STREAM_BYTES_MAX: usize = 128;
/// Most choices of a parameter.
pub const CHOICES_MAX: usize = 1024;
/// Most choices of all parameters of a node.
pub const CHOICES_OF_ALL_MAX: usize = 4096;
/// Longest word that is a value.
pub const WORD_BYTES_MAX: usize = 256;
/// Longest key of a setting: of a parameter, a node and a stream, with what stands between them.
pub const KEY_BYTES_MAX: usize = NAME_BYTES_MAX + 64 + STREAM_BYTES_MAX + 2;

/// # Errors
/// What has more than `most`, how much it has, and what is allowed.
pub fn check_count(what: &str, count: usize, most: usize) -> Result<(), String> {
    if count <= most {
        return Ok(());
    }
    Err(format!("{what}: {count}: allowed are {most}"))
}

/// # Errors
/// What is empty, longer than `bytes_max`, or has signs that a terminal would obey.
pub fn check_text(what: &str, text: &str, bytes_max: usize) -> Result<(), String> {
    if !text.is_empty() && text.len() <= bytes_max && !text.contains(char::is_control) {
        return Ok(());
    }
    let shown: String = text.chars().take(40).collect();
    let more = if shown.len() < text.len() { "..." } else { "" };
    Err(format!(
        "{what} = {shown:?}{more}: {} bytes: allowed are 1 to {bytes_max}, without control characters",
        text.len()
    ))
}

/// Checks a parameter's value: a number, a boolean, a short word, or nothing.
///
/// # Errors
/// Whose value is something else, and what is allowed.
pub fn check_value(name: &str, value: &Value) -> Result<(), String> {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
        Value::String(word) if word.is_empty() => Ok(()),
        Value::String(word) => check_text(&format!("value of {name}"), word, WORD_BYTES_MAX),
        _ => Err(format!(
            "value of {name}: a list or an object: allowed are numbers, words and booleans"
        )),
    }
}

/// # Errors
/// Which of a node's indicators is too much.
pub fn check_indicators(names: &[String]) -> Result<(), String> {
    check_count("indicators", names.len(), INDICATORS_MAX)?;
    for name in names {
        check_text("name of an indicator", name, NAME_BYTES_MAX)?;
    }
    let bytes = names.iter().map(String::len).sum();
    check_count("bytes of the indicators' names", bytes, NAMES_BYTES_MAX)
}

/// # Errors
/// Which of a node's parameters is too much.
pub fn check_knobs(knobs: &[ParameterState]) -> Result<(), String> {
    check_count("knobs", knobs.len(), KNOBS_MAX)?;
    check_count("streams of all knobs", streams(knobs), STREAMS_MAX)?;
    check_count("choices of all knobs", choices(knobs), CHOICES_OF_ALL_MAX)?;
    for knob in knobs {
        check_text("name of a knob", &knob.name, NAME_BYTES_MAX)?;
        check_value(&knob.name, &knob.value)?;
        let choices = format!("choices of {}", knob.name);
        check_count(&choices, knob.choices.len(), CHOICES_MAX)?;
        for choice in &knob.choices {
            check_value(&knob.name, choice)?;
        }
        let stream_of = format!("stream of {}", knob.name);
        for (stream, value) in &knob.streams {
            check_text(&stream_of, stream, STREAM_BYTES_MAX)?;
            check_value(&knob.name, value)?;
        }
    }
    Ok(())
}

/// How many streams a node's parameters have.
pub fn streams(knobs: &[ParameterState]) -> usize {
    knobs.iter().map(|knob| knob.streams.len()).sum()
}

/// How many choices a node's parameters have.
pub fn choices(knobs: &[ParameterState]) -> usize {
    knobs.iter().map(|knob| knob.choices.len()).sum()
}

/// Checks values by local key, as a node answers with them.
///
/// # Errors
/// Which of them is too much.
pub fn check_values(values: &Map<String, Value>) -> Result<(), String> {
    check_count("values of an answer", values.len(), STREAMS_MAX)?;
    for (key, value) in values {
        check_text("key of an answer", key, KEY_BYTES_MAX)?;
        check_value(key, value)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn knob(change: impl Fn(&mut ParameterState)) -> Result<(), String> {
        let mut state = ParameterState {
            name: "block.*.nr_requests".to_owned(),
            value: json!(64),
            ..Default::default()
        };
        change(&mut state);
        check_knobs(&[state])
    }

    #[test]
    fn every_field_of_a_knob_has_a_limit_that_its_error_names() {
        assert_eq!(knob(|_| {}), Ok(()));
        let long = |bytes: usize| "x".repeat(bytes);
        type Change = Box<dyn Fn(&mut ParameterState)>;
        let changes: [(&str, Change); 7] = [
            (
                "name of a knob",
                Box::new(move |it| it.name = long(1 << 20)),
            ),
            (
                "name of a knob",
                Box::new(|it| it.name = "a\u{1b}[2J".to_owned()),
            ),
            (
                "value of block",
                Box::new(move |it| it.value = json!(long(WORD_BYTES_MAX + 1))),
            ),
            ("value of block", Box::new(|it| it.value = json!([[1]]))),
            (
                "choices of block",
                Box::new(|it| it.choices = vec![json!(1); CHOICES_MAX + 1]),
            ),
            (
                "stream of block",
                Box::new(move |it| {
                    it.streams.insert(long(STREAM_BYTES_MAX + 1), json!(1));
                }),
            ),
            (
                "streams of all",
                Box::new(|it| {
                    it.streams = (0..=STREAMS_MAX)
                        .map(|at| (at.to_string(), json!(1)))
                        .collect();
                }),
            ),
        ];
        for (word, change) in changes {
            let error = knob(change).unwrap_err();
            assert!(
                error.starts_with(word) && error.contains("allowed are"),
                "{error}"
            );
            assert!(
                error.len() < 300 && !error.contains(char::is_control),
                "{error}"
            );
        }
        assert!(check_knobs(&vec![ParameterState::default(); KNOBS_MAX + 1]).is_err());
        let many = ParameterState {
            name: "x".to_owned(),
            choices: vec![json!(1); CHOICES_MAX],
            ..Default::default()
        };
        assert_eq!(check_knobs(&vec![many.clone(); 4]), Ok(()));
        let error = check_knobs(&vec![many; 5]).unwrap_err();
        assert!(error.starts_with("choices of all"), "{error}");
    }

    #[test]
    fn indicators_and_answers_have_limits() {
        let names = |count: usize, bytes: usize| vec!["x".repeat(bytes); count];
        assert_eq!(check_indicators(&names(INDICATORS_MAX, 64)), Ok(()));
        for (count, bytes) in [
            (1, 0),
            (1, NAME_BYTES_MAX + 1),
            (INDICATORS_MAX + 1, 1),
            (INDICATORS_MAX, 65),
        ] {
            assert!(
                check_indicators(&names(count, bytes)).is_err(),
                "{count} of {bytes}"
            );
        }
        let answer = |value: Value| Map::from_iter([("x/vda".to_owned(), value)]);
        assert_eq!(check_values(&answer(json!("none"))), Ok(()));
        assert!(check_values(&answer(json!("x".repeat(1 << 20)))).is_err());
        assert!(check_values(&answer(json!({"a": 1}))).is_err());
    }
}
