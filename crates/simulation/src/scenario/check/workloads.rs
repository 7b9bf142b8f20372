//! Ranges and names of workloads.

use super::{Checked, SECONDS_MAX, refuse, within};
use crate::scenario::{FileSet, Flowop, Operation, Workload};

pub(super) fn check_workload(key: &str, workload: &Workload) -> Checked {
    if workload.threads.is_empty() {
        return refuse(
            format!("{key}.threads"),
            "there is no thread; a workload has at least one",
        );
    }
    for (index, set) in workload.filesets.iter().enumerate() {
        check_fileset(&format!("{key}.filesets[{index}]"), set)?;
    }
    for (index, group) in workload.threads.iter().enumerate() {
        let key = format!("{key}.threads[{index}]");
        within(
            format!("{key}.instances"),
            f64::from(group.instances),
            (1.0, 1e6),
        )?;
        if let Some(rate) = group.rate_per_s {
            within(format!("{key}.rate_per_s"), rate, (1e-6, 1e9))?;
        }
        if group.flowops.is_empty() {
            return refuse(
                format!("{key}.flowops"),
                "there is no step; a thread has at least one",
            );
        }
        for (index, flowop) in group.flowops.iter().enumerate() {
            check_flowop(&format!("{key}.flowops[{index}]"), flowop, workload)?;
        }
        if !group.flowops.iter().any(takes_time) {
            return refuse(
                format!("{key}.flowops"),
                "no step takes virtual time for certain; add a read or write at 100 percent, a metadata operation or a delay",
            );
        }
    }
    Ok(())
}

/// Whether a step takes time whenever it is reached, so that its thread cannot spin at one instant.
fn takes_time(flowop: &Flowop) -> bool {
    match flowop.op {
        Operation::Read | Operation::Write => flowop.probability_percent == 100.0,
        Operation::Delay => flowop.value_s > 0.0,
        Operation::Barrier | Operation::Sync => false,
        _ => true,
    }
}

fn check_fileset(key: &str, set: &FileSet) -> Checked {
    within(format!("{key}.entries"), f64::from(set.entries), (1.0, 1e7))?;
    within(format!("{key}.size_mib"), set.size_mib, (0.004, 1e8))?;
    if let Some(size_mib) = set.prealloc_size_mib {
        within(format!("{key}.prealloc_size_mib"), size_mib, (0.004, 1e8))?;
    }
    within(format!("{key}.size_gamma"), set.size_gamma, (0.0, 100.0))?;
    within(
        format!("{key}.prealloc_percent"),
        set.prealloc_percent,
        (0.0, 100.0),
    )
}

fn check_flowop(key: &str, flowop: &Flowop, workload: &Workload) -> Checked {
    within(format!("{key}.iosize_kib"), flowop.iosize_kib, (0.5, 1e7))?;
    within(format!("{key}.iters"), f64::from(flowop.iters), (1.0, 1e9))?;
    within(
        format!("{key}.probability_percent"),
        flowop.probability_percent,
        (0.0, 100.0),
    )?;
    within(format!("{key}.value_s"), flowop.value_s, (0.0, SECONDS_MAX))?;
    if matches!(
        flowop.op,
        Operation::Delay | Operation::Barrier | Operation::Sync | Operation::CloseFile
    ) {
        return Ok(());
    }
    let known: Vec<&str> = workload
        .filesets
        .iter()
        .map(|set| set.name.as_str())
        .collect();
    match &flowop.fileset {
        Some(name) if !known.contains(&name.as_str()) => refuse(
            format!("{key}.fileset"),
            format!(
                "no file set is named {name:?}; there are: {}",
                known.join(", ")
            ),
        ),
        None if known.len() != 1 => refuse(
            format!("{key}.fileset"),
            format!(
                "the workload has {} file sets; name one of: {}",
                known.len(),
                known.join(", ")
            ),
        ),
        _ => Ok(()),
    }
}
