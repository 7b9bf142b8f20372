//! The interface's file.

use std::path::{Path, PathBuf};

use ascar_expression::Expression;
use ascar_messaging::options::check_name;
use ascar_messaging::{Fault, Options};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::key::Scope;

/// What happens to actions; the careful ones first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// They are recorded and not carried out.
    #[default]
    Observe,
    /// Somebody approves each.
    Approve,
    /// The checker decides.
    Automatic,
}

/// Everything that the file says.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Which session's subjects.
    #[serde(default = "default_session")]
    pub session: String,
    /// Length of a tick.
    #[serde(default = "default_interval")]
    pub interval_s: f64,
    /// So long after its end a tick still waits for frames.
    #[serde(default = "default_grace")]
    pub grace_s: f64,
    /// A connection file, or
    pub connection: Option<PathBuf>,
    /// what would be in it.
    pub messaging: Option<Options>,
    /// The replay database.
    pub database: PathBuf,
    /// A database of its own for each workload that is announced, beside the first.
    #[serde(default)]
    pub database_per_workload: bool,
    /// How much is kept.
    #[serde(default)]
    pub retention: Retention,
    /// What happens to actions until somebody says otherwise.
    #[serde(default)]
    pub mode: Mode,
    /// How long nodes may take to do what they are told.
    #[serde(default = "default_patience")]
    pub action_timeout_s: f64,
    /// Most nodes.
    #[serde(default = "default_nodes_max")]
    pub nodes_max: usize,
    /// What may be set.
    #[serde(default, rename = "knob")]
    pub knobs: Vec<KnobRule>,
    /// What must not be.
    #[serde(default, rename = "rule")]
    pub rules: Vec<UserRule>,
    /// When something may be changed; always where there is none.
    #[serde(default, rename = "window")]
    pub windows: Vec<Window>,
    /// What rewards are made from.
    #[serde(default, rename = "metric")]
    pub metrics: Vec<MetricRule>,
    /// The service level.
    #[serde(default, rename = "floor")]
    pub floors: Vec<Floor>,
    /// Some nodes first.
    #[serde(default)]
    pub rollout: Rollout,
    /// `HOST:PORT` where Prometheus may fetch our own metrics.
    pub prometheus: Option<String>,
}

/// `[retention]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Retention {
    /// Ticks older than this go.
    pub days: f64,
    /// The oldest go where the file would be larger.
    pub bytes_max: u64,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            days: 90.0,
            bytes_max: 20_000_000_000,
        }
    }
}

/// `[[knob]]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnobRule {
    /// As agents call it.
    pub name: String,
    /// For whom a value is.
    #[serde(default)]
    pub scope: Scope,
    /// Least number.
    pub minimum: Option<f64>,
    /// Greatest number.
    pub maximum: Option<f64>,
    /// Allowed words.
    #[serde(default)]
    pub choices: Vec<String>,
    /// What a learner may move it by; only told to the learner.
    pub step: Option<f64>,
    /// Largest change of a number at once.
    pub change_max: Option<f64>,
    /// Fewest ticks between two changes.
    #[serde(default)]
    pub interval_ticks: u64,
}

/// `[[rule]]`: a setting for which this is true is refused.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UserRule {
    /// A formula over knobs, their names with `_` for every other sign, and metrics.
    pub forbid: String,
    /// The reason that is told.
    pub why: String,
}

/// `[[window]]`: local time.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// mon, tue, ...; every day where there is none.
    #[serde(default)]
    pub days: Vec<String>,
    /// `HH:MM`.
    pub from: String,
    /// `HH:MM`, not included; earlier than `from` it is the next day's.
    pub to: String,
}

/// How many values become one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Aggregate {
    /// Their sum.
    #[default]
    Sum,
    /// Their mean.
    Mean,
    /// The greatest.
    Max,
    /// The least.
    Min,
}

/// `[[metric]]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetricRule {
    /// Its name, with its unit last.
    pub name: String,
    /// Of which indicators; `*` stands for anything.
    pub indicators: Vec<String>,
    /// Of which nodes; all where there is none.
    #[serde(default)]
    pub nodes: Vec<String>,
    /// How they become one.
    #[serde(default)]
    pub aggregate: Aggregate,
}

/// `[[floor]]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Floor {
    /// A metric's name.
    pub metric: String,
    /// Its mean must not be less.
    pub minimum: f64,
    /// Over so many ticks.
    #[serde(default = "default_window")]
    pub window_ticks: u64,
    /// After a breach nothing is changed for so long.
    #[serde(default = "default_hold")]
    pub hold_ticks: u64,
}

/// `[rollout]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rollout {
    /// This share of the nodes first; 1 is all at once.
    pub share: f64,
    /// The others so many ticks later.
    pub ticks: u64,
}

impl Default for Rollout {
    fn default() -> Self {
        Self {
            share: 1.0,
            ticks: 30,
        }
    }
}

fn default_session() -> String {
    "default".to_owned()
}
fn default_interval() -> f64 {
    1.0
}
fn default_grace() -> f64 {
    0.4
}
fn default_patience() -> f64 {
    10.0
}
fn default_nodes_max() -> usize {
    20_000
}
fn default_window() -> u64 {
    30
}
fn default_hold() -> u64 {
    300
}

impl Config {
    /// Reads and checks a file. Paths in it are relative to its folder.
    ///
    /// # Errors
    /// When a key is wrong: its name, its value, what is allowed.
    pub fn read(path: &Path) -> Result<Self, Fault> {
        let wrong =
            |what: &dyn std::fmt::Display| Fault(format!("--config {}: {what}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|error| wrong(&error))?;
        let mut config = Self::parse(&text).map_err(|fault| wrong(&fault))?;
        let folder = path.parent().unwrap_or(Path::new("."));
        config.database = folder.join(&config.database);
        if let Some(connection) = &mut config.connection {
            *connection = folder.join(&*connection);
        }
        Ok(config)
    }

    /// The same from a text.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn parse(text: &str) -> Result<Self, Fault> {
        let config: Self = toml::from_str(text).map_err(|error| {
            let line = error
                .span()
                .map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
            Fault(line.map_or_else(String::new, |line| format!("line {line}: ")) + error.message())
        })?;
        config.check()?;
        Ok(config)
    }

    fn check(&self) -> Result<(), Fault> {
        check_name("session", &self.session)?;
        range("interval_s", self.interval_s, 0.05, 3600.0)?;
        range("grace_s", self.grace_s, 0.0, 60.0)?;
        range("action_timeout_s", self.action_timeout_s, 0.1, 3600.0)?;
        range("nodes_max", self.nodes_max as f64, 1.0, 1e6)?;
        range("retention.days", self.retention.days, 0.000_01, 36_500.0)?;
        range(
            "retention.bytes_max",
            self.retention.bytes_max as f64,
            1e6,
            1e15,
        )?;
        range("rollout.share", self.rollout.share, 1e-6, 1.0)?;
        if self.connection.is_some() == self.messaging.is_some() {
            return Err(Fault(
                "connection, [messaging]: give one of them: a connection file or its keys"
                    .to_owned(),
            ));
        }
        if let Some(options) = &self.messaging {
            options.check()?;
        }
        for knob in &self.knobs {
            knob.check()?;
            if self.knobs.iter().filter(|it| it.name == knob.name).count() > 1 {
                return Err(Fault(format!("knob {:?}: is there twice", knob.name)));
            }
        }
        for rule in &self.rules {
            Expression::parse(&rule.forbid)
                .map_err(|error| Fault(format!("rule.forbid: {error}")))?;
        }
        for window in &self.windows {
            window.check()?;
        }
        for floor in &self.floors {
            if !self
                .metrics
                .iter()
                .any(|metric| metric.name == floor.metric)
            {
                let names: Vec<&str> = self.metrics.iter().map(|it| it.name.as_str()).collect();
                return Err(Fault(format!(
                    "floor.metric = {:?}: allowed are {}",
                    floor.metric,
                    names.join(", ")
                )));
            }
            range("floor.window_ticks", floor.window_ticks as f64, 1.0, 1e6)?;
        }
        Ok(())
    }

    /// How to connect.
    ///
    /// # Errors
    /// When the connection file is wrong.
    pub fn options(&self) -> Result<Options, Fault> {
        match (&self.messaging, &self.connection) {
            (Some(options), _) => Ok(options.clone()),
            (None, Some(path)) => Options::read(path),
            (None, None) => Err(Fault("connection: is missing".to_owned())),
        }
    }
}

impl KnobRule {
    fn check(&self) -> Result<(), Fault> {
        let name = &self.name;
        if name.is_empty()
            || name.len() > 200
            || name.contains(['@', ' '])
            || name.contains(char::is_control)
        {
            return Err(Fault(format!(
                "knob.name = {name:?}: allowed are 1 to 200 signs without spaces and @"
            )));
        }
        match (self.minimum, self.maximum) {
            (Some(low), Some(high)) if low > high => {
                return Err(Fault(format!(
                    "knob {name:?}: minimum = {low} is more than maximum = {high}"
                )));
            }
            _ => {}
        }
        for (key, value) in [("change_max", self.change_max), ("step", self.step)] {
            if value.is_some_and(|it| it <= 0.0 || !it.is_finite()) {
                return Err(Fault(format!("knob {name:?}: {key} must be more than 0")));
            }
        }
        if self.scope == Scope::Stream && !name.contains('*') {
            return Err(Fault(format!(
                "knob {name:?}: scope = \"stream\" needs a name with a *"
            )));
        }
        Ok(())
    }

    /// Whether a value is allowed.
    ///
    /// # Errors
    /// The name, the value, what is allowed.
    pub fn allows(&self, value: &Value) -> Result<(), String> {
        let name = &self.name;
        let numbers = || {
            format!(
                "numbers from {} to {}",
                self.minimum.map_or("any".to_owned(), |it| it.to_string()),
                self.maximum.map_or("any".to_owned(), |it| it.to_string())
            )
        };
        let (is_allowed, allowed) = match value {
            Value::Number(number) => {
                let number = number.as_f64().unwrap_or(f64::NAN);
                let is_within = number.is_finite()
                    && self.minimum.is_none_or(|low| number >= low)
                    && self.maximum.is_none_or(|high| number <= high);
                (
                    is_within && self.choices.is_empty(),
                    if self.choices.is_empty() {
                        numbers()
                    } else {
                        self.choices.join(", ")
                    },
                )
            }
            Value::String(word) => (self.choices.contains(word), self.choices.join(", ")),
            Value::Bool(_) => (self.choices.is_empty() && self.minimum.is_none(), numbers()),
            _ => (false, "a number, a word or a boolean".to_owned()),
        };
        if is_allowed {
            return Ok(());
        }
        Err(format!(
            "range: {name} = {value}: allowed are {}",
            if allowed.is_empty() {
                numbers()
            } else {
                allowed
            }
        ))
    }
}

impl Window {
    fn check(&self) -> Result<(), Fault> {
        for day in &self.days {
            if !DAYS.contains(&day.as_str()) {
                return Err(Fault(format!(
                    "window.days: {day:?}: allowed are {}",
                    DAYS.join(", ")
                )));
            }
        }
        for (key, text) in [("from", &self.from), ("to", &self.to)] {
            if minutes(text).is_none() {
                return Err(Fault(format!("window.{key} = {text:?}: must be HH:MM")));
            }
        }
        Ok(())
    }

    /// Whether a moment is inside: the day of the week, Sunday being 0, and the minute of the day.
    pub fn contains(&self, day: usize, minute: u32) -> bool {
        let (Some(from), Some(to)) = (minutes(&self.from), minutes(&self.to)) else {
            return false;
        };
        let is_day =
            |day: usize| self.days.is_empty() || self.days.iter().any(|it| it == DAYS[day % 7]);
        if from < to {
            return is_day(day) && (from..to).contains(&minute);
        }
        is_day(day) && minute >= from || is_day(day + 6) && minute < to
    }
}

const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

fn minutes(text: &str) -> Option<u32> {
    let (hours, minutes) = text.split_once(':')?;
    let (hours, minutes): (u32, u32) = (hours.parse().ok()?, minutes.parse().ok()?);
    (hours < 24 && minutes < 60).then_some(hours * 60 + minutes)
}

fn range(key: &str, value: f64, low: f64, high: f64) -> Result<(), Fault> {
    if (low..=high).contains(&value) {
        return Ok(());
    }
    Err(Fault(format!(
        "{key} = {value}: allowed are {low} to {high}"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const GOOD: &str = "
        connection = 'c.toml'
        database = 'replay.sqlite'
        mode = 'automatic'
        [[knob]]
        name = 'vm.dirty_ratio'
        minimum = 5
        maximum = 60
        change_max = 10
        [[rule]]
        forbid = 'vm_dirty_ratio > 40 and vm_swappiness > 50'
        why = 'both fill memory'
        [[window]]
        days = ['fri']
        from = '22:00'
        to = '06:00'
        [[metric]]
        name = 'bytes_per_s'
        indicators = ['block.*.bytes_per_s']
        [[floor]]
        metric = 'bytes_per_s'
        minimum = 1000
    ";

    #[test]
    fn a_file_is_read() {
        let config = Config::parse(GOOD).unwrap();
        assert_eq!(config.mode, Mode::Automatic);
        assert_eq!(config.floors[0].window_ticks, 30);
    }

    #[test]
    fn mistakes_are_named() {
        for (from, to, word) in [
            ("'automatic'", "'auto'", "auto"),
            ("minimum = 5", "minimum = 500", "minimum"),
            ("40 and", "40 nd", "rule.forbid"),
            ("'fri'", "'friday'", "friday"),
            ("22:00", "24:00", "window.from"),
            ("metric = 'bytes_per_s'", "metric = 'bytes'", "floor.metric"),
            ("connection = 'c.toml'", "", "connection"),
            ("change_max = 10", "change_max = 0", "change_max"),
        ] {
            let fault = Config::parse(&GOOD.replace(from, to)).unwrap_err();
            assert!(fault.0.contains(word), "{from}: {fault}");
        }
    }

    #[test]
    fn values_are_within_their_range_or_among_their_words() {
        let mut knob = Config::parse(GOOD).unwrap().knobs.remove(0);
        assert!(knob.allows(&json!(5)).is_ok());
        for wrong in [
            json!(4),
            json!(61),
            json!("x"),
            json!(true),
            json!(null),
            json!([5]),
        ] {
            assert!(
                knob.allows(&wrong).unwrap_err().contains("vm.dirty_ratio"),
                "{wrong}"
            );
        }
        knob.choices = vec!["none".to_owned(), "bfq".to_owned()];
        assert!(knob.allows(&json!("bfq")).is_ok());
        assert!(knob.allows(&json!(5)).is_err());
    }

    #[test]
    fn windows_may_cross_midnight() {
        let window = Config::parse(GOOD).unwrap().windows.remove(0);
        for (day, minute, inside) in [
            (5, 22 * 60, true),
            (5, 21 * 60, false),
            (6, 5 * 60, true),
            (5, 5 * 60, false),
            (6, 6 * 60, false),
        ] {
            assert_eq!(window.contains(day, minute), inside, "{day} {minute}");
        }
    }
}
