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

/// A workload's steps by thread group.
#[derive(Debug, Clone)]
pub struct Program {
    /// Instances and steps of each thread group.
    pub groups: Vec<(u32, Vec<Step>)>,
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
        let groups: Vec<(u32, Vec<Step>)> = workload
            .threads
            .iter()
            .map(|group| {
                let steps = group
                    .flowops
                    .iter()
                    .map(|flowop| step(flowop, workload))
                    .collect();
                (group.instances, steps)
            })
            .collect();
        let waits = |steps: &[Step]| {
            steps
                .iter()
                .any(|step| step.operation == Operation::Barrier)
        };
        let barrier_threads = groups
            .iter()
            .filter(|(_, steps)| waits(steps))
            .map(|(instances, _)| instances)
            .sum();
        Program {
            groups,
            barrier_threads,
        }
    }
}
