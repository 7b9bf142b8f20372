//! Workloads as threads run them: names resolved, units turned into bytes and nanoseconds.

use crate::events::Nanos;
use crate::scenario::{Flowop, Operation, Workload};

/// A step of a thread.
#[derive(Debug, Clone)]
pub struct Step {
    /// What is done.
    pub operation: Operation,
    /// On which of the workload's file sets.
    pub set: u32,
    /// Bytes an operation.
    pub size: u64,
    /// At a random place.
    pub random: bool,
    /// Past the cache.
    pub direct: bool,
    /// A file for each thread.
    pub file_per_thread: bool,
    /// Times in a row.
    pub iterations: u32,
    /// Share of the times that it is done.
    pub probability: f64,
    /// How long it takes, for a delay.
    pub delay_ns: Nanos,
}

/// Threads that are alike.
#[derive(Debug, Clone)]
pub struct Group {
    /// How many on each client.
    pub instances: u32,
    /// What each does, in turn.
    pub steps: Vec<Step>,
    /// Mean time between two arrivals of a pass at each of them; `None`: a pass begins when the one before has ended.
    pub arrival_gap_ns: Option<f64>,
}

/// A workload's steps by thread group.
#[derive(Debug, Clone)]
pub struct Program {
    /// Its thread groups.
    pub groups: Vec<Group>,
    /// Threads of one client that wait at barriers.
    pub barrier_threads: u32,
}

fn step(flowop: &Flowop, workload: &Workload) -> Step {
    let set = flowop
        .fileset
        .as_ref()
        .and_then(|name| workload.filesets.iter().position(|set| set.name == *name))
        .unwrap_or(0);
    Step {
        operation: flowop.op,
        set: set as u32,
        size: ((flowop.iosize_kib * 1024.0) as u64).max(1),
        random: flowop.random,
        direct: flowop.directio,
        file_per_thread: flowop.file_per_thread,
        iterations: flowop.iters,
        probability: flowop.probability_percent / 100.0,
        delay_ns: (flowop.value_s * 1e9) as Nanos,
    }
}

impl Program {
    /// A checked workload.
    #[must_use]
    pub fn new(workload: &Workload) -> Program {
        let groups: Vec<Group> = workload
            .threads
            .iter()
            .map(|group| Group {
                instances: group.instances,
                steps: group
                    .flowops
                    .iter()
                    .map(|flowop| step(flowop, workload))
                    .collect(),
                arrival_gap_ns: group
                    .rate_per_s
                    .map(|rate| f64::from(group.instances) * 1e9 / rate),
            })
            .collect();
        let waits = |group: &&Group| {
            group
                .steps
                .iter()
                .any(|step| step.operation == Operation::Barrier)
        };
        let barrier_threads = groups
            .iter()
            .filter(waits)
            .map(|group| group.instances)
            .sum();
        Program {
            groups,
            barrier_threads,
        }
    }
}
