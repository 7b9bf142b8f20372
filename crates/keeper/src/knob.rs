//! One knob of this machine: reading, checking, writing it, and which others it touches.

use std::path::PathBuf;

use crate::catalogue::Coupling::{
    Depth, Limited, Limits, Raised, Raises, Scheduled, Scheduler, Zeroes,
};
use crate::catalogue::Values::{Limit, Listed, PowersOfTwo, Range, UpTo};
use crate::catalogue::{RULES, Rule, resolve};
use crate::fault::{Fault, Result};
use crate::protocol::Scalar;

/// A knob of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Knob {
    /// Its full name, such as `block.loop0.scheduler`.
    pub name: String,
    /// The device in the name.
    pub device: Option<String>,
    /// Its file.
    pub path: PathBuf,
    /// Its family.
    pub rule: &'static Rule,
}

impl Knob {
    /// What is in force now; None where this machine, device or scheduler does not have the knob.
    pub fn read(&self) -> Option<String> {
        let text = std::fs::read_to_string(&self.path).ok()?;
        let text = text.trim();
        Some(match self.rule.values {
            Listed => listed(text).0,
            Limit(_) => limit_of(text, &self.device_number()?).to_owned(),
            _ => text.to_owned(),
        })
    }

    /// The device's "major:minor"; None where there is no such device.
    fn device_number(&self) -> Option<String> {
        let device = self.device.as_ref()?;
        let text = std::fs::read_to_string(format!("/sys/block/{device}/dev")).ok()?;
        Some(text.trim().to_owned())
    }

    /// What is in force now.
    ///
    /// # Errors
    /// Input when the machine does not have the knob.
    pub fn present(&self) -> Result<String> {
        self.read().ok_or_else(|| {
            Fault::input(format!(
                "knob = {:?}: this machine does not have it ({})",
                self.name,
                self.path.display()
            ))
        })
    }

    /// The words a [`Values::Listed`] knob offers; none for others.
    pub fn choices(&self) -> Vec<String> {
        match self.rule.values {
            Listed => {
                let Ok(text) = std::fs::read_to_string(&self.path) else {
                    return Vec::new();
                };
                let mut words = listed(&text).1;
                // Only "none" is listed where there is no queue to schedule.
                let others = crate::kernel::loadable_schedulers();
                if words.len() > 1 {
                    words.extend(
                        others
                            .into_iter()
                            .filter(|word| !listed(&text).1.contains(word)),
                    );
                }
                words
            }
            _ => Vec::new(),
        }
    }

    /// The least and greatest number allowed; none for words.
    pub fn bounds(&self) -> Option<(i64, i64)> {
        match self.rule.values {
            Range(low, high) | PowersOfTwo(low, high) => Some((low, high)),
            Limit(high) => Some((0, high)),
            UpTo(low, sibling) => {
                let text = std::fs::read_to_string(self.path.with_file_name(sibling)).ok()?;
                Some((low, text.trim().parse().ok()?))
            }
            Listed => None,
        }
    }

    /// The text to write for `value`.
    ///
    /// # Errors
    /// Input when the value is not allowed.
    pub fn check(&self, value: &Scalar) -> Result<String> {
        let wrong = |allowed: String| {
            Fault::input(format!("{} = {value}: allowed are {allowed}", self.name))
        };
        if self.rule.values == Listed {
            let choices = self.choices();
            return match value {
                Scalar::Text(word) if choices.contains(word) => Ok(word.clone()),
                _ => Err(wrong(choices.join(", "))),
            };
        }
        let unreadable =
            || Fault::failed(format!("cannot read the limit of {}", self.path.display()));
        let (low, high) = self.bounds().ok_or_else(unreadable)?;
        let even = matches!(self.rule.values, PowersOfTwo(..));
        match value {
            Scalar::Integer(number)
                if (low..=high).contains(number)
                    && (!even || *number == 0 || number.count_ones() == 1) =>
            {
                Ok(number.to_string())
            }
            _ if even => Err(wrong(format!("powers of two in [{low}, {high}]"))),
            _ => Err(wrong(format!("whole numbers in [{low}, {high}]"))),
        }
    }

    /// A kernel text as clients read it.
    pub fn scalar(&self, text: &str) -> Scalar {
        text.parse()
            .map_or_else(|_| Scalar::Text(text.to_owned()), Scalar::Integer)
    }

    /// The other knobs that a write to this one may change and that this machine has now.
    pub fn coupled(&self) -> Vec<Knob> {
        let names: Vec<String> = match (self.rule.coupling, &self.device) {
            (Zeroes(other), _) => vec![other.to_owned()],
            (Scheduler, Some(device)) => RULES
                .iter()
                .filter(|rule| matches!(rule.coupling, Depth | Scheduled))
                .map(|rule| rule.pattern.replace("<dev>", device))
                .collect(),
            (Depth, Some(device)) => vec![format!("block.{device}.iosched/async_depth")],
            (Limits, Some(device)) => vec![format!("block.{device}.read_ahead_kb")],
            (Raises(siblings), Some(_)) => {
                let directory = self.directory();
                siblings
                    .iter()
                    .map(|it| format!("{directory}.{it}"))
                    .collect()
            }
            _ => Vec::new(),
        };
        names
            .iter()
            .filter_map(|name| resolve(name).ok())
            .filter(|knob| knob.read().is_some())
            .collect()
    }

    /// Knobs of one cluster influence each other: they are locked together, and restored together or not at all.
    pub fn cluster(&self) -> String {
        match (self.rule.coupling, &self.device) {
            (Zeroes(other), _) => self.name.as_str().min(other).to_owned(),
            (Scheduler | Depth | Scheduled, Some(device)) => format!("block.{device}.scheduler"),
            (Limits | Limited, Some(device)) => format!("block.{device}.max_sectors_kb"),
            (Raises(_) | Raised, _) => self.directory().to_owned(),
            _ => self.name.clone(),
        }
    }

    /// The name without its last part.
    fn directory(&self) -> &str {
        self.name
            .rsplit_once('.')
            .map_or("", |(directory, _)| directory)
    }

    /// In which order a cluster is restored: what resets others comes first.
    pub fn rank(&self) -> u8 {
        match self.rule.coupling {
            Scheduler | Limits | Raises(_) => 0,
            Depth => 1,
            _ => 2,
        }
    }

    /// Writes the text as it is; a limit with the device that it is for.
    pub fn write(&self, text: &str) -> std::io::Result<()> {
        use std::io::Write;
        let line = match (self.rule.values, self.device_number()) {
            (Limit(_), Some(number)) => format!("{number} {text}"),
            (Limit(_), None) => return Err(std::io::ErrorKind::NotFound.into()),
            _ => text.to_owned(),
        };
        std::fs::OpenOptions::new()
            .write(true)
            .open(&self.path)?
            .write_all(line.as_bytes())
    }
}

/// A device's limit in a file of "major:minor limit" lines; zero where it has none.
fn limit_of<'a>(text: &'a str, device_number: &str) -> &'a str {
    text.lines()
        .filter_map(|line| line.split_once(' '))
        .find(|(number, _)| *number == device_number)
        .map_or("0", |(_, limit)| limit.trim())
}

/// Splits "none [mq-deadline] bfq" into the word in force and all words.
fn listed(text: &str) -> (String, Vec<String>) {
    let words: Vec<&str> = text.split_whitespace().collect();
    let bare = |word: &str| word.trim_matches(['[', ']']).to_owned();
    let chosen = words
        .iter()
        .find(|word| word.starts_with('['))
        .or(words.first());
    (
        chosen.map(|word| bare(word)).unwrap_or_default(),
        words.iter().map(|word| bare(word)).collect(),
    )
}
