//! A program that writes a JSON object a line: numbers, words with places, booleans. A name that ends in `_total` is a
//! total. The program is started again when it ends.

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::Collector;
use crate::sample::Sample;

/// Longest line.
const LINE_BYTES_MAX: u64 = 64 * 1024;
/// Most names.
const NAMES_MAX: usize = 1024;
/// Between an end and the next start.
const PAUSE: Duration = Duration::from_secs(5);
/// Threads of the agent need little.
pub const STACK_BYTES: usize = 64 * 1024;

/// What was said last, and when.
pub type Latest = Arc<Mutex<HashMap<String, (f64, Instant)>>>;

#[derive(Debug)]
pub struct Program {
    name: String,
    stale: Duration,
    latest: Latest,
}

impl Program {
    pub fn start(
        name: String,
        command: Vec<String>,
        states: BTreeMap<String, Vec<String>>,
        stale_s: f64,
    ) -> Self {
        let latest = Latest::default();
        let shared = Arc::clone(&latest);
        let label = name.clone();
        let follow = move || {
            loop {
                if let Err(error) = follow(&command, &states, &shared) {
                    eprintln!("ascard agent: collector {label}: {error}");
                }
                std::thread::sleep(PAUSE);
            }
        };
        let started = std::thread::Builder::new()
            .stack_size(STACK_BYTES)
            .name(name.clone())
            .spawn(follow);
        if let Err(error) = started {
            eprintln!("ascard agent: collector {name}: {error}");
        }
        Self {
            name,
            stale: Duration::from_secs_f64(stale_s),
            latest,
        }
    }
}

impl Collector for Program {
    fn sample(&mut self, sample: &mut Sample) {
        tell(&self.name, &self.latest, self.stale, sample);
    }
}

/// Adds what is not too old.
pub fn tell(prefix: &str, latest: &Latest, stale: Duration, sample: &mut Sample) {
    let latest = latest.lock().unwrap_or_else(PoisonError::into_inner);
    let mut names: Vec<&String> = latest.keys().collect();
    names.sort();
    for name in names {
        let (value, at) = latest[name];
        if at.elapsed() > stale {
            continue;
        }
        let full = format!("{prefix}.{name}");
        match full.strip_suffix("_total") {
            Some(short) => sample.rate_at(&format!("{short}_per_s"), value, at),
            None => sample.level(&full, value),
        }
    }
}

fn follow(
    command: &[String],
    states: &BTreeMap<String, Vec<String>>,
    latest: &Latest,
) -> std::io::Result<()> {
    let mut child = Command::new(&command[0])
        .args(&command[1..])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut lines = BufReader::with_capacity(4096, child.stdout.take().expect("stdout is piped"));
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
            let _ = child.kill();
            let _ = child.wait();
            return Err(std::io::Error::other(format!(
                "a line is longer than {LINE_BYTES_MAX} bytes"
            )));
        }
        take(&line, states, latest, Instant::now());
    }
    let status = child.wait()?;
    Err(std::io::Error::other(format!(
        "{} has ended: {status}",
        command[0]
    )))
}

/// Takes a line in; what is no object of numbers is passed over.
fn take(line: &[u8], states: &BTreeMap<String, Vec<String>>, latest: &Latest, now: Instant) {
    let Ok(Value::Object(fields)) = serde_json::from_slice(line) else {
        return;
    };
    let mut latest = latest.lock().unwrap_or_else(PoisonError::into_inner);
    for (name, value) in fields {
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
        if let Some(number) = number
            && (latest.len() < NAMES_MAX || latest.contains_key(&name))
        {
            latest.insert(name, (number, now));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_words_and_totals_are_taken() {
        let latest = Latest::default();
        let states = BTreeMap::from([(
            "state".to_owned(),
            vec!["idle".to_owned(), "busy".to_owned()],
        )]);
        let mut sample = Sample::new(vec![], vec![], None);
        let start = Instant::now() - Duration::from_secs(1);
        for (second, line) in [
            (
                0,
                r#"{"ops_total": 10, "depth": 3, "state": "busy", "on": true, "word": "x", "list": []}"#,
            ),
            (1, r#"{"ops_total": 15, "state": "strange"}"#),
        ] {
            for garbage in ["", "{", "[1]", "\u{0}"] {
                take(garbage.as_bytes(), &states, &latest, start);
            }
            take(
                line.as_bytes(),
                &states,
                &latest,
                start + Duration::from_secs(second),
            );
            sample.begin(start + Duration::from_secs(second));
            tell("app", &latest, Duration::from_secs(60), &mut sample);
        }
        assert_eq!(sample.value("app.ops_per_s"), 5.0);
        assert_eq!(sample.value("app.state"), 2.0);
        assert_eq!(sample.value("app.depth"), 3.0);
        assert_eq!(sample.value("app.on"), 1.0);
        assert_eq!(sample.names().len(), 4);
        sample.begin(start + Duration::from_secs(2));
        tell("app", &latest, Duration::ZERO, &mut sample);
        assert!(sample.value("app.depth").is_nan());
    }

    #[test]
    fn names_are_bounded() {
        let latest = Latest::default();
        for index in 0..2 * NAMES_MAX {
            take(
                format!("{{\"n{index}\": 1}}").as_bytes(),
                &BTreeMap::new(),
                &latest,
                Instant::now(),
            );
        }
        assert_eq!(latest.lock().unwrap().len(), NAMES_MAX);
    }

    #[test]
    fn a_program_is_followed() {
        let latest = Latest::default();
        let command = ["printf", r#"{"a": 1}\n{"a": 2}\n"#].map(str::to_owned);
        assert!(follow(&command, &BTreeMap::new(), &latest).is_err());
        assert_eq!(latest.lock().unwrap()["a"].0, 2.0);
        let endless = ["head", "-c", "200000", "/dev/zero"].map(str::to_owned);
        let error = follow(&endless, &BTreeMap::new(), &latest).unwrap_err();
        assert!(error.to_string().contains("longer"), "{error}");
        assert!(follow(&["/no/such/program".to_owned()], &BTreeMap::new(), &latest).is_err());
    }
}
