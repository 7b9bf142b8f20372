//! A control group that bounds the memory of a load, in version 1 and 2 of the interface.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::Serialize;

use crate::fault::{Doing, Fault, Result};
use crate::journal::{Change, Journal};

/// How long killed processes may take to leave.
const KILL_PATIENCE: Duration = Duration::from_secs(10);
/// Least memory a load can live with.
pub const MEMORY_BYTES_MIN: u64 = 1 << 20;

/// Which interface bounds memory on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Version {
    /// A hierarchy of its own for the memory controller.
    V1,
    /// The unified hierarchy.
    V2,
}

/// Where control groups with a memory controller are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hierarchy {
    /// Its interface.
    pub version: Version,
    /// Where it is mounted.
    pub root: PathBuf,
}

/// What a control group's processes use.
#[derive(Debug, Serialize)]
pub struct Use {
    memory_now_bytes: Option<u64>,
    memory_peak_bytes: Option<u64>,
    oom_kills: Option<u64>,
    processes: usize,
}

/// Finds the hierarchy with the memory controller.
pub fn discover() -> Option<Hierarchy> {
    let text = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    discover_in(&text)
}

fn discover_in(mountinfo: &str) -> Option<Hierarchy> {
    let mut unified = None;
    for line in mountinfo.lines() {
        let (front, back) = line.split_once(" - ")?;
        let root = PathBuf::from(front.split(' ').nth(4)?);
        let mut back = back.split(' ');
        match back.next()? {
            "cgroup" if back.nth(1)?.split(',').any(|option| option == "memory") => {
                return Some(Hierarchy {
                    version: Version::V1,
                    root,
                });
            }
            "cgroup2" if unified.is_none() => unified = Some(root),
            _ => {}
        }
    }
    let root = unified?;
    let controllers = std::fs::read_to_string(root.join("cgroup.controllers")).ok()?;
    let has_memory = controllers.split_whitespace().any(|name| name == "memory");
    has_memory.then_some(Hierarchy {
        version: Version::V2,
        root,
    })
}

/// A control group of ours.
#[derive(Clone, Debug)]
pub struct Cgroup {
    /// Its directory.
    pub path: PathBuf,
    /// Its interface.
    pub version: Version,
}

impl Cgroup {
    /// Makes the group and sets its limit; swap does not widen it.
    pub fn create(
        journal: &mut Journal,
        hierarchy: &Hierarchy,
        name: &str,
        memory_bytes: u64,
    ) -> Result<Self> {
        let path = hierarchy.root.join(name);
        if hierarchy.version == Version::V2 {
            enable_controller(journal, &hierarchy.root)?;
        }
        let numbers = journal.record(vec![Change::Cgroup {
            target: path.clone(),
        }])?;
        if let Err(error) = std::fs::create_dir(&path) {
            journal.undone(&numbers)?;
            return Err(error).doing(format!("make {}", path.display()));
        }
        let group = Self {
            path,
            version: hierarchy.version,
        };
        let limit = memory_bytes.to_string();
        match group.version {
            Version::V1 => {
                group.write("memory.limit_in_bytes", &limit)?;
                // Absent where the kernel does not count swap.
                let _ = group.write("memory.memsw.limit_in_bytes", &limit);
            }
            Version::V2 => {
                group.write("memory.max", &limit)?;
                let _ = group.write("memory.swap.max", "0");
            }
        }
        Ok(group)
    }

    /// A group whose directory is known from a journal.
    pub fn existing(path: &Path) -> Self {
        let version = if path.join("cgroup.controllers").exists() {
            Version::V2
        } else {
            Version::V1
        };
        Self {
            path: path.to_owned(),
            version,
        }
    }

    /// Moves a process in.
    pub fn add(&self, pid: i32) -> Result<()> {
        self.write("cgroup.procs", &pid.to_string())
    }

    /// What its processes use.
    pub fn usage(&self) -> Use {
        let (now, peak, events) = match self.version {
            Version::V1 => (
                "memory.usage_in_bytes",
                "memory.max_usage_in_bytes",
                "memory.oom_control",
            ),
            Version::V2 => ("memory.current", "memory.peak", "memory.events"),
        };
        let number = |file: &str| {
            std::fs::read_to_string(self.path.join(file))
                .ok()?
                .trim()
                .parse()
                .ok()
        };
        let events = std::fs::read_to_string(self.path.join(events)).unwrap_or_default();
        let oom_kills = events
            .lines()
            .find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok());
        Use {
            memory_now_bytes: number(now),
            memory_peak_bytes: number(peak),
            oom_kills,
            processes: self.processes().len(),
        }
    }

    /// Sends SIGKILL to everything in it.
    pub fn signal(&self) {
        if self.version == Version::V2 && self.write("cgroup.kill", "1").is_ok() {
            return;
        }
        for pid in self.processes() {
            let _ = kill(pid, Signal::SIGKILL);
        }
    }

    /// Kills everything in it, also what is born meanwhile. Returns whether it is empty.
    pub fn kill(&self) -> bool {
        let started = Instant::now();
        loop {
            self.signal();
            if self.processes().is_empty() {
                return true;
            }
            if started.elapsed() > KILL_PATIENCE {
                return false;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Removes the empty group.
    pub fn remove(&self) -> Result<()> {
        let started = Instant::now();
        loop {
            match std::fs::remove_dir(&self.path) {
                Ok(()) => return Ok(()),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
                // The last process is gone, the kernel has not noticed yet.
                Err(error)
                    if error.raw_os_error() == Some(16) && started.elapsed() < KILL_PATIENCE =>
                {
                    std::thread::sleep(Duration::from_millis(2));
                }
                Err(error) => return Err(error).doing(format!("remove {}", self.path.display())),
            }
        }
    }

    fn processes(&self) -> Vec<Pid> {
        let text = std::fs::read_to_string(self.path.join("cgroup.procs")).unwrap_or_default();
        // A process of another namespace reads as 0, which kill(2) would take for ourselves.
        text.lines()
            .filter_map(|line| line.parse().ok())
            .filter(|pid| *pid > 0)
            .map(Pid::from_raw)
            .collect()
    }

    fn write(&self, file: &str, text: &str) -> Result<()> {
        let path = self.path.join(file);
        std::fs::write(&path, text).doing(format!("write {text} to {}", path.display()))
    }
}

/// Lets the root's children have a memory controller.
fn enable_controller(journal: &mut Journal, root: &Path) -> Result<()> {
    let path = root.join("cgroup.subtree_control");
    let enabled = std::fs::read_to_string(&path).doing(format!("read {}", path.display()))?;
    if enabled.split_whitespace().any(|name| name == "memory") {
        return Ok(());
    }
    journal.record(vec![Change::Controller {
        target: path.clone(),
    }])?;
    std::fs::write(&path, "+memory").doing(format!("write +memory to {}", path.display()))
}

/// Takes back what [`Cgroup::create`] had to switch on, unless others use it by now.
pub fn disable_controller(path: &Path) -> Result<()> {
    match std::fs::write(path, "-memory") {
        Err(error) if error.raw_os_error() == Some(16) => Ok(()),
        written => written.doing(format!("write -memory to {}", path.display())),
    }
}

/// Checks a limit.
pub fn check_memory(memory_bytes: u64) -> Result<()> {
    if (MEMORY_BYTES_MIN..=i64::MAX as u64).contains(&memory_bytes) {
        return Ok(());
    }
    Err(Fault::input(format!(
        "memory_bytes = {memory_bytes}: allowed are [{MEMORY_BYTES_MIN}, {}]",
        i64::MAX
    )))
}
