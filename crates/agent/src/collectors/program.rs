//! A program that writes a JSON object a line: numbers, words with places, booleans. A name that ends in `_total` is a
//! total. The program is started again when it ends.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::heard::{Heard, Latest};
use crate::LOG;
use crate::starter::{self, Words};

/// Longest line.
const LINE_BYTES_MAX: u64 = 64 * 1024;
/// Between an end and the next start.
const PAUSE: Duration = Duration::from_secs(5);

/// Starts the program, and again whenever it ends.
pub fn start(
    name: String,
    command: Vec<String>,
    states: BTreeMap<String, Vec<String>>,
    stale_s: f64,
) -> Heard {
    let label = name.clone();
    Heard::of(name, stale_s, move |latest| {
        loop {
            if let Err(error) = follow(&command, &states, latest) {
                LOG.line(format_args!("collector {label}: {error}"));
            }
            std::thread::sleep(PAUSE);
        }
    })
}

fn follow(
    command: &[String],
    states: &BTreeMap<String, Vec<String>>,
    latest: &Latest,
) -> std::io::Result<()> {
    let (command, is_asked) = (command.to_vec(), false);
    let words = Words { command, is_asked };
    let running = starter::start(&words, None)?;
    let mut lines = BufReader::with_capacity(4096, &running.stdout);
    let mut line = Vec::new();
    loop {
        line.clear();
        let count = lines
            .by_ref()
            .take(LINE_BYTES_MAX)
            .read_until(b'\n', &mut line)?;
        if count == 0 {
            break;
        }
        if count as u64 == LINE_BYTES_MAX {
            running.kill();
            return Err(std::io::Error::other(format!(
                "a line is longer than {LINE_BYTES_MAX} bytes"
            )));
        }
        take(&line, states, latest, Instant::now());
    }
    Err(std::io::Error::other(format!(
        "{} has ended",
        words.command[0]
    )))
}

/// Takes a line in; what is not an object of numbers is passed over.
pub fn take(line: &[u8], states: &BTreeMap<String, Vec<String>>, latest: &Latest, now: Instant) {
    let Ok(Value::Object(fields)) = serde_json::from_slice(line) else {
        return;
    };
    let said = fields.into_iter().filter_map(|(name, value)| {
        let number = match &value {
            Value::Number(number) => number.as_f64(),
            Value::Bool(value) => Some(f64::from(u8::from(*value))),
            Value::String(word) => states.get(&name).map(|words| {
                let place = words
                    .iter()
                    .position(|it| it == word)
                    .unwrap_or(words.len());
                place as f64
            }),
            _ => None,
        };
        number.map(|number| (name, number))
    });
    latest.put(said, now);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_words_are_taken() {
        let latest = Latest::default();
        let states = BTreeMap::from([(
            "state".to_owned(),
            vec!["idle".to_owned(), "busy".to_owned()],
        )]);
        for line in [
            r#"{"ops_total": 10, "depth": 3, "state": "busy", "on": true, "word": "x", "list": []}"#,
            "",
            "{",
            "[1]",
            "\u{0}",
            r#"{"ops_total": 15, "state": "strange"}"#,
        ] {
            take(line.as_bytes(), &states, &latest, Instant::now());
        }
        let values = [
            ("depth", 3.0),
            ("on", 1.0),
            ("ops_total", 15.0),
            ("state", 2.0),
        ];
        let values = values.map(|(name, value)| (name.to_owned(), value));
        assert_eq!(latest.values(), BTreeMap::from(values));
    }

    #[test]
    fn a_program_is_followed() {
        let latest = Latest::default();
        let command = ["printf", r#"{"a": 1}\n{"a": 2}\n"#].map(str::to_owned);
        assert!(follow(&command, &BTreeMap::new(), &latest).is_err());
        assert_eq!(latest.values()["a"], 2.0);
        let endless = ["head", "-c", "200000", "/dev/zero"].map(str::to_owned);
        let error = follow(&endless, &BTreeMap::new(), &latest).unwrap_err();
        assert!(error.to_string().contains("longer"), "{error}");
        assert!(follow(&["/no/such/program".to_owned()], &BTreeMap::new(), &latest).is_err());
    }
}
