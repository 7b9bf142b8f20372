//! What reads the machine. Each collector is one file; each reads texts and numbers, starts no program in a tick, and says
//! nothing about what it cannot find.

mod block;
mod cpu;
mod file_systems;
mod heard;
mod latency;
mod lustre;
mod memory;
mod network;
pub mod nfs;
mod pressure;
pub mod program;
pub mod prometheus;
mod text;
mod vm;

use std::path::PathBuf;

use ascar_messaging::Fault;
use ascar_messaging::file::range;
use serde::Deserialize;

use crate::sample::Sample;

pub use self::heard::Latest;
pub use self::lustre::short as short_of_lustre;
pub use self::text::KernelFile;

/// Something that is read once a tick.
pub trait Collector: Send {
    /// Adds its indicators to the sample.
    fn sample(&mut self, sample: &mut Sample);
}

/// `[[collector]]` in the file.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum CollectorOptions {
    /// `/proc/diskstats`: rates, latencies, queues of devices that fit a pattern.
    Block {
        /// Patterns; all real disks where there is none.
        #[serde(default)]
        devices: Vec<String>,
    },
    /// `/proc/vmstat`.
    Vm {},
    /// `/proc/meminfo`.
    Memory {},
    /// `/proc/stat`, `/proc/loadavg`.
    Cpu {},
    /// `/proc/net/dev`, `/proc/net/snmp`.
    Network {
        /// Patterns; all but the loopback where there is none.
        #[serde(default)]
        interfaces: Vec<String>,
    },
    /// `/proc/pressure`.
    Pressure {},
    /// Space and inodes of mounted file systems.
    FileSystems {
        /// Where they are mounted.
        paths: Vec<PathBuf>,
    },
    /// A Lustre client's parameters.
    Lustre {
        /// Where they are, if not where the kernel has them.
        root: Option<PathBuf>,
    },
    /// `/proc/self/mountstats`: mounts of NFS, each operation by itself.
    Nfs {
        /// Patterns of where they are mounted; all where there is none.
        #[serde(default)]
        mounts: Vec<String>,
    },
    /// A program that writes a JSON object a line.
    Program {
        /// Before each of its names.
        name: String,
        /// The program and its arguments.
        command: Vec<String>,
        /// Words that stand for their places: `state = ["idle", "busy"]`.
        #[serde(default)]
        states: std::collections::BTreeMap<String, Vec<String>>,
        /// A value older than this is none.
        #[serde(default = "default_stale")]
        stale_s: f64,
    },
    /// An endpoint in Prometheus' text form.
    Prometheus {
        /// Before each of its names.
        name: String,
        /// `http://HOST:PORT/PATH`.
        url: String,
        /// Metrics that fit one of these.
        metrics: Vec<String>,
        /// A value older than this is none.
        #[serde(default = "default_stale")]
        stale_s: f64,
    },
    /// Round-trip time to servers: how long a TCP connection takes.
    Latency {
        /// `HOST:PORT`.
        servers: Vec<String>,
    },
}

fn default_stale() -> f64 {
    5.0
}

/// Most servers of one latency collector: each has a thread.
const SERVERS_MAX: usize = 64;

impl CollectorOptions {
    /// # Errors
    /// When a value is not allowed.
    pub fn check(&self) -> Result<(), Fault> {
        match self {
            Self::Program {
                name,
                command,
                stale_s,
                ..
            } => {
                ascar_messaging::options::check_name("collector.name", name)?;
                range("collector.stale_s", *stale_s, 0.1, 3600.0)?;
                if command.is_empty() {
                    return Err(Fault("collector.command = []: name a program".to_owned()));
                }
                Ok(())
            }
            Self::Prometheus {
                name,
                url,
                metrics,
                stale_s,
            } => {
                ascar_messaging::options::check_name("collector.name", name)?;
                range("collector.stale_s", *stale_s, 0.1, 3600.0)?;
                if metrics.is_empty() {
                    return Err(Fault(
                        "collector.metrics = []: name the metrics, or \"*\"".to_owned(),
                    ));
                }
                prometheus::Address::parse(url).map(|_| ())
            }
            Self::Latency { servers } if servers.is_empty() || servers.len() > SERVERS_MAX => {
                Err(Fault(format!(
                    "collector.servers: has {}: allowed are 1 to {SERVERS_MAX}",
                    servers.len()
                )))
            }
            Self::Latency { servers } => match servers.iter().find(|it| !it.contains(':')) {
                Some(server) => Err(Fault(format!(
                    "collector.servers: {server:?}: expected HOST:PORT"
                ))),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// Its name for people.
    pub fn name(&self) -> String {
        let kind = match self {
            Self::Block { .. } => "block",
            Self::Vm {} => "vm",
            Self::Memory {} => "memory",
            Self::Cpu {} => "cpu",
            Self::Network { .. } => "network",
            Self::Pressure {} => "pressure",
            Self::FileSystems { .. } => "file-systems",
            Self::Lustre { .. } => "lustre",
            Self::Nfs { .. } => "nfs",
            Self::Program { name, .. } | Self::Prometheus { name, .. } => name,
            Self::Latency { .. } => "latency",
        };
        kind.to_owned()
    }

    /// Starts it.
    pub fn start(self) -> Box<dyn Collector> {
        match self {
            Self::Block { devices } => Box::new(block::Block::new(devices)),
            Self::Vm {} => Box::new(vm::Vm::new()),
            Self::Memory {} => Box::new(memory::Memory::new()),
            Self::Cpu {} => Box::new(cpu::Cpu::new()),
            Self::Network { interfaces } => Box::new(network::Network::new(interfaces)),
            Self::Pressure {} => Box::new(pressure::Pressure::new()),
            Self::FileSystems { paths } => Box::new(file_systems::FileSystems::new(paths)),
            Self::Lustre { root } => Box::new(lustre::Lustre::new(root)),
            Self::Nfs { mounts } => Box::new(nfs::Nfs::new(mounts)),
            Self::Program {
                name,
                command,
                states,
                stale_s,
            } => Box::new(program::start(name, command, states, stale_s)),
            Self::Prometheus {
                name,
                url,
                metrics,
                stale_s,
            } => {
                let address = prometheus::Address::parse(&url).expect("checked with the file");
                Box::new(prometheus::start(name, address, metrics, stale_s))
            }
            Self::Latency { servers } => Box::new(latency::Latency::start(servers)),
        }
    }
}
