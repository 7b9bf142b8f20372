//! Whether a scenario can be run: ranges, and names that refer to each other.

mod common;
mod groups;
mod parts;
mod workloads;

use super::{Scenario, ScenarioError};
use common::{check_common, check_failure};
use groups::{check_client, check_server};
use parts::check_control;
use workloads::check_workload;

/// Most clients, servers, streams and threads: what the event queue can name.
const CLIENTS_MAX: usize = 100_000;
const SERVERS_MAX: usize = 10_000;
const STREAMS_MAX: usize = 10_000_000;
const THREADS_MAX: u64 = 10_000_000;
/// Longest run, and finest and most ticks.
const SECONDS_MAX: f64 = 1e6;
const TICKS_MAX: f64 = 1e7;

type Checked = Result<(), ScenarioError>;

fn refuse(key: impl Into<String>, message: impl Into<String>) -> Checked {
    Err(ScenarioError {
        key: key.into(),
        message: message.into(),
    })
}

/// `value` lies in `low..=high` and is a number.
fn within(key: impl Into<String>, value: f64, (low, high): (f64, f64)) -> Checked {
    if value >= low && value <= high {
        Ok(())
    } else {
        refuse(key, format!("{value} is not between {low} and {high}"))
    }
}

/// Each of these fields below `key` lies in its range.
fn each_within(key: &str, fields: &[(&str, f64, (f64, f64))]) -> Checked {
    fields
        .iter()
        .try_for_each(|&(field, value, range)| within(format!("{key}.{field}"), value, range))
}

impl Scenario {
    /// Whether it can be run.
    ///
    /// # Errors
    /// The first key that is out of range or names something that is not there.
    pub fn check(&self) -> Checked {
        within("duration_s", self.duration_s, (0.001, SECONDS_MAX))?;
        within("warmup_s", self.warmup_s, (0.0, SECONDS_MAX))?;
        within("tick_s", self.tick_s, (0.001, self.duration_s.max(0.001)))?;
        within(
            "tick_s",
            (self.duration_s + self.warmup_s) / self.tick_s,
            (0.0, TICKS_MAX),
        )?;
        self.check_sizes()?;
        for (index, workload) in self.workloads.iter().enumerate() {
            check_workload(&format!("workloads[{index}]"), workload)?;
        }
        check_control("control", &self.control)?;
        for (index, group) in self.clients.iter().enumerate() {
            check_client(self, &format!("clients[{index}]"), group)?;
        }
        for (index, group) in self.servers.iter().enumerate() {
            check_server(&format!("servers[{index}]"), group)?;
        }
        check_common(self)?;
        for (index, failure) in self.failures.iter().enumerate() {
            check_failure(self, &format!("failures[{index}]"), failure)?;
        }
        Ok(())
    }

    fn check_sizes(&self) -> Checked {
        let (clients, servers) = (self.client_count(), self.server_count());
        if clients == 0 || clients > CLIENTS_MAX {
            return refuse(
                "clients",
                format!("{clients} clients; 1 to {CLIENTS_MAX} can be simulated"),
            );
        }
        if servers == 0 || servers > SERVERS_MAX {
            return refuse(
                "servers",
                format!("{servers} servers; 1 to {SERVERS_MAX} can be simulated"),
            );
        }
        if clients * servers > STREAMS_MAX {
            return refuse(
                "clients",
                format!(
                    "{clients} clients x {servers} servers are more than {STREAMS_MAX} streams"
                ),
            );
        }
        let threads: u64 = self
            .clients
            .iter()
            .filter_map(|group| {
                let workload = self
                    .workloads
                    .iter()
                    .find(|workload| workload.name == group.workload)?;
                let each: u64 = workload
                    .threads
                    .iter()
                    .map(|threads| u64::from(threads.instances))
                    .sum();
                Some(each.saturating_mul(u64::from(group.count)))
            })
            .fold(0, u64::saturating_add);
        if threads > THREADS_MAX {
            return refuse(
                "workloads",
                format!("{threads} threads in all; at most {THREADS_MAX} can be simulated"),
            );
        }
        Ok(())
    }
}
