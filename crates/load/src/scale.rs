//! One factor for the data set, one number for the threads.
//!
//! The mean size of a file belongs to the workload, so the factor changes the number of files (Cao, section 4.2)
//! as long as enough are left for the threads that make and remove them; what is left of the factor goes to the
//! size. A set of few large files keeps their number and changes their size. Appends follow the size, so that the
//! data set grows in proportion.

use crate::definition::{Definition, Kind, ThreadGroup};
use crate::quantity::Quantity;

/// Sets of at most so many files keep their number.
const FEW: u64 = 64;
/// Fewest files of a larger set that no flowop makes or removes.
const FEWEST: u64 = 16;

/// Scale the data set.
pub fn data(definition: &mut Definition, factor: f64) {
    for place in 0..definition.filesets.len() {
        let rest = entries(definition, place, factor);
        if rest != 1.0 {
            sizes(definition, place, rest);
        }
    }
}

/// Scale a set's number of files; what is left of the factor is returned.
fn entries(definition: &mut Definition, place: usize, factor: f64) -> f64 {
    let set = &definition.filesets[place];
    if set.entries <= FEW {
        return factor;
    }
    let comes_and_goes = |group: &&ThreadGroup| {
        let changes = |kind| matches!(kind, Kind::CreateFile | Kind::DeleteFile);
        group
            .flowops
            .iter()
            .any(|flowop| flowop.fileset == Some(place) && changes(flowop.kind))
    };
    let threads: u64 = definition
        .groups
        .iter()
        .filter(comes_and_goes)
        .map(|group| u64::from(group.threads))
        .sum();
    // Each thread may hold one file and have removed another; a fifth of the set is absent at first.
    let fewest = (4 * threads + FEWEST).min(set.entries);
    let wanted = (set.entries as f64 * factor).round() as u64;
    let rest = if wanted < fewest {
        factor * set.entries as f64 / fewest as f64
    } else {
        1.0
    };
    definition.filesets[place].entries = wanted.clamp(fewest, 100_000_000);
    rest
}

/// Scale the sizes of a set's files, and what is appended to them.
fn sizes(definition: &mut Definition, place: usize, factor: f64) {
    let mut largest_io = 0.0;
    for group in &mut definition.groups {
        for at in 0..group.flowops.len() {
            if set_of(group, at) != Some(place) {
                continue;
            }
            let flowop = &mut group.flowops[at];
            match flowop.kind {
                Kind::AppendFile | Kind::AppendFileRand => {
                    flowop.iosize_bytes = flowop.iosize_bytes.times(factor);
                    flowop.workingset_bytes =
                        (flowop.workingset_bytes as f64 * factor).ceil() as u64;
                }
                Kind::Read | Kind::Write | Kind::AioWrite => {
                    largest_io = flowop.iosize_bytes.largest().max(largest_io);
                    flowop.workingset_bytes =
                        (flowop.workingset_bytes as f64 * factor).ceil() as u64;
                }
                _ => {}
            }
        }
    }
    let set = &mut definition.filesets[place];
    set.size_bytes = match set.size_bytes.times(factor) {
        // A file holds at least one operation.
        Quantity::Fixed(size) if set.size_bytes.mean() > 0.0 => {
            Quantity::Fixed(size.max(largest_io).round().max(1.0))
        }
        other => other,
    };
}

/// The file set that a flowop works on: its own, or that of the flowop that opened its file.
#[must_use]
pub fn set_of(group: &ThreadGroup, at: usize) -> Option<usize> {
    let flowop = &group.flowops[at];
    if flowop.fileset.is_some() {
        return flowop.fileset;
    }
    let fd = flowop.fd.unwrap_or(0);
    let before = (0..at).rev().chain((at..group.flowops.len()).rev());
    let opens = |place: &usize| {
        let other = &group.flowops[*place];
        let opening =
            matches!(other.kind, Kind::CreateFile | Kind::OpenFile) || other.kind.transfers();
        opening && other.fileset.is_some() && !other.opennext && other.fd.unwrap_or(0) == fd
    };
    before
        .into_iter()
        .find(opens)
        .and_then(|place| group.flowops[place].fileset)
}

/// Share so many threads among the groups in their proportion; each keeps at least one.
pub fn threads(definition: &mut Definition, wanted: u32) {
    let total = f64::from(definition.threads());
    let exact = |group: &ThreadGroup| f64::from(group.threads) * f64::from(wanted) / total;
    let shares: Vec<f64> = definition.groups.iter().map(exact).collect();
    for (group, share) in definition.groups.iter_mut().zip(&shares) {
        group.threads = (share.floor() as u32).max(1);
    }
    let mut left = wanted.saturating_sub(definition.threads());
    let mut order: Vec<usize> = (0..shares.len())
        .filter(|place| shares[*place] >= 1.0)
        .collect();
    order.sort_by(|a, b| shares[*b].fract().total_cmp(&shares[*a].fract()));
    for place in order {
        if left > 0 {
            definition.groups[place].threads += 1;
            left -= 1;
        }
    }
}
