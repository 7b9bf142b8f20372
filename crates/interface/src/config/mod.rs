//! The interface's file.

mod knob;
mod metric;

use std::path::PathBuf;

use ascar_guard::{Ceiling, Combination, Floor, Guard, Window};
use ascar_messaging::file::{ConfigFile, Way, range};
use ascar_messaging::options::check_name;
use ascar_messaging::{Fault, Options};
use serde::{Deserialize, Serialize};

use crate::replay::Limits;

pub use knob::ParameterRule;
pub use metric::{Aggregate, MetricRule};

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
    pub knobs: Vec<ParameterRule>,
    /// What must not be.
    #[serde(default, rename = "rule")]
    pub rules: Vec<Combination>,
    /// When something may be changed; always where there is none.
    #[serde(default, rename = "window")]
    pub windows: Vec<Window>,
    /// What rewards are made from.
    #[serde(default, rename = "metric")]
    pub metrics: Vec<MetricRule>,
    /// The service level: least means.
    #[serde(default, rename = "floor")]
    pub floors: Vec<Floor>,
    /// The service level: greatest means.
    #[serde(default, rename = "ceiling")]
    pub ceilings: Vec<Ceiling>,
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

impl ConfigFile for Config {
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
        self.way().check()?;
        for knob in &self.knobs {
            knob.check()?;
            if self.knobs.iter().filter(|it| it.name == knob.name).count() > 1 {
                return Err(Fault(format!("knob {:?}: is there twice", knob.name)));
            }
        }
        let guard = self.guard();
        guard.check().map_err(Fault)?;
        for limit in guard.limits() {
            if !self.metrics.iter().any(|it| it.name == limit.metric) {
                let names: Vec<&str> = self.metrics.iter().map(|it| it.name.as_str()).collect();
                return Err(Fault(format!(
                    "{}.metric = {:?}: allowed are {}",
                    limit.side.keys().0,
                    limit.metric,
                    names.join(", ")
                )));
            }
        }
        Ok(())
    }

    fn paths(&mut self) -> Vec<&mut PathBuf> {
        self.connection
            .iter_mut()
            .chain([&mut self.database])
            .collect()
    }

    fn way(&self) -> Way<'_> {
        Way {
            connection: self.connection.as_deref(),
            messaging: self.messaging.as_ref(),
        }
    }
}

impl Config {
    /// What protects the system, but for the paces, which stand with the knobs.
    pub fn guard(&self) -> Guard {
        Guard {
            floors: self.floors.clone(),
            ceilings: self.ceilings.clone(),
            combinations: self.rules.clone(),
            windows: self.windows.clone(),
            ..Guard::default()
        }
    }

    /// How much the replay database keeps: days in ticks of this session's length.
    pub fn limits(&self) -> Limits {
        Limits {
            ticks: (self.retention.days * 86_400.0 / self.interval_s).ceil() as i64,
            bytes: self.retention.bytes_max,
        }
    }
}

#[cfg(test)]
mod tests;
