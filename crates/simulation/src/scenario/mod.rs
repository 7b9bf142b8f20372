//! A scenario: everything that a run of the simulator depends on, as read from JSON.
//!
//! Every field has its unit last in its name (a plain count has none) and a default where one is reasonable; unknown
//! fields are refused. The defaults are the test bed of Li, "Storage System Tuning", section 3.2.2: Lustre's defaults
//! on gigabit Ethernet and 7200 rpm notebook disks. MB is 10^6 bytes, MiB is 2^20 bytes, KiB is 2^10 bytes.

mod check;
mod clients;
mod control;
pub mod describe;
mod devices;
mod failures;
mod network;
mod servers;
mod workloads;

pub use clients::{Cache, ClientGroup};
pub use control::{Control, Controller, RivalControl, RuleExtensions};
pub use devices::{Device, Flash, Mechanical, Memory};
pub use failures::{Failure, FailureKind, Noise};
pub use network::{Link, Network};
pub use servers::{Layout, Locks, Metadata, Order, Queue, ServerGroup, Striping};
pub use workloads::{FileSet, Flowop, Operation, ThreadGroup, Workload};

use serde::{Deserialize, Serialize};

use self::describe::section;

/// Why a scenario cannot be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScenarioError {
    /// The key at fault, as a path ("servers[0].device.rpm"); empty where the text itself cannot be read.
    pub key: String,
    /// What is wrong and what is allowed.
    pub message: String,
}

impl std::fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.key.is_empty() {
            write!(f, "{}", self.message)
        } else {
            write!(f, "{}: {}", self.key, self.message)
        }
    }
}

impl std::error::Error for ScenarioError {}

section! {
    /// A cluster, what it is asked to do, and for how long.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Scenario {
        /// Name, for reports.
        pub name: String,
        /// One line for readers.
        #[serde(default)]
        pub description: String,
        /// Every random draw follows from it.
        #[serde(default = "default_seed")]
        pub seed: u64,
        /// Virtual seconds that run before anything is counted.
        #[serde(default = "default_warmup_s")]
        pub warmup_s: f64,
        /// Virtual seconds that are counted.
        #[serde(default = "default_duration_s")]
        pub duration_s: f64,
        /// Length of a tick, the grain of all series.
        #[serde(default = "default_tick_s")]
        pub tick_s: f64,
        /// Whether a series is kept for each stream (a client-server pair); otherwise one a client and one in total.
        #[serde(default)]
        pub record_streams: bool,
        /// The clients, in groups of alike ones.
        pub clients: Vec<ClientGroup>,
        /// The storage servers, in groups of alike ones.
        #[serde(default = "default_servers")]
        pub servers: Vec<ServerGroup>,
        /// The metadata server.
        #[serde(default)]
        pub metadata: Metadata,
        /// Links and switch.
        #[serde(default)]
        pub network: Network,
        /// How files are striped over the storage servers.
        #[serde(default)]
        pub striping: Striping,
        /// Locks on files that several clients share.
        #[serde(default)]
        pub locks: Locks,
        /// Control of the streams of every client group that has none of its own.
        #[serde(default)]
        pub control: Control,
        /// What clients do; a client group names one.
        pub workloads: Vec<Workload>,
        /// What goes wrong, and when.
        #[serde(default)]
        pub failures: Vec<Failure>,
        /// Variation that no part of the cluster controls.
        #[serde(default)]
        pub noise: Noise,
    }
}

fn default_seed() -> u64 {
    1
}

fn default_warmup_s() -> f64 {
    2.0
}

fn default_duration_s() -> f64 {
    30.0
}

fn default_tick_s() -> f64 {
    1.0
}

fn default_servers() -> Vec<ServerGroup> {
    vec![ServerGroup {
        count: 4,
        ..ServerGroup::default()
    }]
}

impl Scenario {
    /// Read and check a scenario.
    ///
    /// # Errors
    /// The first key that is unknown, missing, of the wrong type or out of range, with what is allowed.
    pub fn from_json(text: &str) -> Result<Scenario, ScenarioError> {
        let scenario: Scenario = serde_json::from_str(text).map_err(|error| ScenarioError {
            key: String::new(),
            message: format!("the scenario cannot be read: {error}"),
        })?;
        scenario.check()?;
        Ok(scenario)
    }

    /// Number of clients over all groups.
    #[must_use]
    pub fn client_count(&self) -> usize {
        self.clients.iter().map(|group| group.count as usize).sum()
    }

    /// Number of storage servers over all groups.
    #[must_use]
    pub fn server_count(&self) -> usize {
        self.servers.iter().map(|group| group.count as usize).sum()
    }
}
