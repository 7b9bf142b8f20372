//! Which knobs exist, where they live, what they may be set to, and which others they change.

use std::path::{Path, PathBuf};

use crate::fault::{Fault, Result};
use crate::knob::Knob;

/// What a knob may be set to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// Whole numbers, both ends included.
    Range(i64, i64),
    /// Powers of two, both ends included; zero as well where it is the lower end.
    PowersOfTwo(i64, i64),
    /// Whole numbers from the lower end up to what a sibling file says.
    UpTo(i64, &'static str),
    /// One of the words that the knob's own file lists, the one in brackets being in force.
    Listed,
    /// Whole numbers up to this, kept in a file that has a line for each limited device; zero is no limit.
    Limit(i64),
}

/// What else a write changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coupling {
    /// Nothing.
    Alone,
    /// Writing one sets the other to zero.
    Zeroes(&'static str),
    /// A new scheduler brings its own queue depth and tunables, and may switch write-back throttling.
    Scheduler,
    /// mq-deadline derives `async_depth` from the queue depth.
    Depth,
    /// Is reset by a new scheduler.
    Scheduled,
    /// Lustre raises these siblings with it where they would be too low, and never lowers them again.
    Raises(&'static [&'static str]),
    /// Is raised by siblings.
    Raised,
}

/// A family of knobs. `<dev>` stands for a device's name.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    /// The knob's name.
    pub pattern: &'static str,
    /// Its file.
    pub path: &'static str,
    /// What is allowed.
    pub values: Values,
    /// What else changes.
    pub coupling: Coupling,
}

const fn rule(
    pattern: &'static str,
    path: &'static str,
    values: Values,
    coupling: Coupling,
) -> Rule {
    Rule {
        pattern,
        path,
        values,
        coupling,
    }
}

use Coupling::{Alone, Depth, Raised, Raises, Scheduled, Scheduler, Zeroes};
use Values::{Limit, Listed, PowersOfTwo, Range, UpTo};

const INT: i64 = i32::MAX as i64;

/// Where a Lustre client has its parameters: what `lctl get_param` and `set_param` read and write. Newer clients have
/// them in sysfs.
const LUSTRE_ROOTS: [&str; 2] = ["/sys/fs/lustre", "/proc/fs/lustre"];

/// The whole allow-list. Ranges are the kernel's own, narrowed where the kernel accepts what no machine survives.
#[rustfmt::skip]
pub static RULES: &[Rule] = &[
    rule("vm.dirty_ratio", "/proc/sys/vm/dirty_ratio", Range(0, 100), Zeroes("vm.dirty_bytes")),
    rule("vm.dirty_bytes", "/proc/sys/vm/dirty_bytes", Range(8192, i64::MAX), Zeroes("vm.dirty_ratio")),
    rule("vm.dirty_background_ratio", "/proc/sys/vm/dirty_background_ratio", Range(0, 100), Zeroes("vm.dirty_background_bytes")),
    rule("vm.dirty_background_bytes", "/proc/sys/vm/dirty_background_bytes", Range(1, i64::MAX), Zeroes("vm.dirty_background_ratio")),
    rule("vm.dirty_expire_centisecs", "/proc/sys/vm/dirty_expire_centisecs", Range(1, 360_000), Alone),
    rule("vm.dirty_writeback_centisecs", "/proc/sys/vm/dirty_writeback_centisecs", Range(0, 360_000), Alone),
    rule("vm.dirtytime_expire_seconds", "/proc/sys/vm/dirtytime_expire_seconds", Range(1, 604_800), Alone),
    rule("vm.vfs_cache_pressure", "/proc/sys/vm/vfs_cache_pressure", Range(1, 10_000), Alone),
    rule("vm.swappiness", "/proc/sys/vm/swappiness", Range(0, 200), Alone),
    rule("vm.page-cluster", "/proc/sys/vm/page-cluster", Range(0, 10), Alone),
    rule("vm.laptop_mode", "/proc/sys/vm/laptop_mode", Range(0, 3600), Alone),
    rule("fs.xfs.xfssyncd_centisecs", "/proc/sys/fs/xfs/xfssyncd_centisecs", Range(100, 720_000), Alone),
    rule("fs.xfs.filestream_centisecs", "/proc/sys/fs/xfs/filestream_centisecs", Range(1, 360_000), Alone),
    rule("fs.xfs.speculative_prealloc_lifetime", "/proc/sys/fs/xfs/speculative_prealloc_lifetime", Range(1, 86_400), Alone),
    rule("fs.xfs.rotorstep", "/proc/sys/fs/xfs/rotorstep", Range(1, 255), Alone),
    rule("fs.xfs.inherit_noatime", "/proc/sys/fs/xfs/inherit_noatime", Range(0, 1), Alone),
    rule("block.<dev>.scheduler", "/sys/block/<dev>/queue/scheduler", Listed, Scheduler),
    rule("block.<dev>.nr_requests", "/sys/block/<dev>/queue/nr_requests", Range(4, 1_048_576), Depth),
    rule("block.<dev>.wbt_lat_usec", "/sys/block/<dev>/queue/wbt_lat_usec", Range(0, 10_000_000), Scheduled),
    rule("block.<dev>.read_ahead_kb", "/sys/block/<dev>/queue/read_ahead_kb", Range(0, 1_048_576), Alone),
    rule("block.<dev>.max_sectors_kb", "/sys/block/<dev>/queue/max_sectors_kb", UpTo(4, "max_hw_sectors_kb"), Alone),
    rule("block.<dev>.nomerges", "/sys/block/<dev>/queue/nomerges", Range(0, 2), Alone),
    rule("block.<dev>.rq_affinity", "/sys/block/<dev>/queue/rq_affinity", Range(0, 2), Alone),
    // Of the whole machine, journal threads included: the root of the blkio controller, which only version 1 of
    // the control groups lets have limits.
    rule("block.<dev>.read_iops_max", "/sys/fs/cgroup/blkio/blkio.throttle.read_iops_device", Limit(100_000_000), Alone),
    rule("block.<dev>.write_iops_max", "/sys/fs/cgroup/blkio/blkio.throttle.write_iops_device", Limit(100_000_000), Alone),
    // mq-deadline
    rule("block.<dev>.iosched/read_expire", "/sys/block/<dev>/queue/iosched/read_expire", Range(0, INT), Scheduled),
    rule("block.<dev>.iosched/write_expire", "/sys/block/<dev>/queue/iosched/write_expire", Range(0, INT), Scheduled),
    rule("block.<dev>.iosched/prio_aging_expire", "/sys/block/<dev>/queue/iosched/prio_aging_expire", Range(0, INT), Scheduled),
    rule("block.<dev>.iosched/writes_starved", "/sys/block/<dev>/queue/iosched/writes_starved", Range(0, INT), Scheduled),
    rule("block.<dev>.iosched/front_merges", "/sys/block/<dev>/queue/iosched/front_merges", Range(0, 1), Scheduled),
    rule("block.<dev>.iosched/async_depth", "/sys/block/<dev>/queue/iosched/async_depth", Range(1, INT), Scheduled),
    rule("block.<dev>.iosched/fifo_batch", "/sys/block/<dev>/queue/iosched/fifo_batch", Range(0, INT), Scheduled),
    // kyber
    rule("block.<dev>.iosched/read_lat_nsec", "/sys/block/<dev>/queue/iosched/read_lat_nsec", Range(1, i64::MAX), Scheduled),
    rule("block.<dev>.iosched/write_lat_nsec", "/sys/block/<dev>/queue/iosched/write_lat_nsec", Range(1, i64::MAX), Scheduled),
    // bfq
    rule("block.<dev>.iosched/fifo_expire_sync", "/sys/block/<dev>/queue/iosched/fifo_expire_sync", Range(1, INT), Scheduled),
    rule("block.<dev>.iosched/fifo_expire_async", "/sys/block/<dev>/queue/iosched/fifo_expire_async", Range(1, INT), Scheduled),
    rule("block.<dev>.iosched/back_seek_max", "/sys/block/<dev>/queue/iosched/back_seek_max", Range(0, INT), Scheduled),
    rule("block.<dev>.iosched/back_seek_penalty", "/sys/block/<dev>/queue/iosched/back_seek_penalty", Range(1, INT), Scheduled),
    rule("block.<dev>.iosched/slice_idle", "/sys/block/<dev>/queue/iosched/slice_idle", Range(0, INT), Scheduled),
    rule("block.<dev>.iosched/slice_idle_us", "/sys/block/<dev>/queue/iosched/slice_idle_us", Range(0, INT), Scheduled),
    rule("block.<dev>.iosched/max_budget", "/sys/block/<dev>/queue/iosched/max_budget", Range(0, INT), Scheduled),
    rule("block.<dev>.iosched/timeout_sync", "/sys/block/<dev>/queue/iosched/timeout_sync", Range(1, INT), Scheduled),
    rule("block.<dev>.iosched/strict_guarantees", "/sys/block/<dev>/queue/iosched/strict_guarantees", Range(0, 1), Scheduled),
    rule("block.<dev>.iosched/low_latency", "/sys/block/<dev>/queue/iosched/low_latency", Range(0, 1), Scheduled),
    // ext4
    rule("ext4.<dev>.inode_readahead_blks", "/sys/fs/ext4/<dev>/inode_readahead_blks", PowersOfTwo(0, 1 << 30), Alone),
    rule("ext4.<dev>.extent_max_zeroout_kb", "/sys/fs/ext4/<dev>/extent_max_zeroout_kb", Range(0, INT), Alone),
    rule("ext4.<dev>.max_writeback_mb_bump", "/sys/fs/ext4/<dev>/max_writeback_mb_bump", Range(0, INT), Alone),
    rule("ext4.<dev>.mb_best_avail_max_trim_order", "/sys/fs/ext4/<dev>/mb_best_avail_max_trim_order", Range(0, 64), Alone),
    rule("ext4.<dev>.mb_group_prealloc", "/sys/fs/ext4/<dev>/mb_group_prealloc", Range(1, INT), Alone),
    rule("ext4.<dev>.mb_max_linear_groups", "/sys/fs/ext4/<dev>/mb_max_linear_groups", Range(0, INT), Alone),
    rule("ext4.<dev>.mb_max_to_scan", "/sys/fs/ext4/<dev>/mb_max_to_scan", Range(0, INT), Alone),
    rule("ext4.<dev>.mb_min_to_scan", "/sys/fs/ext4/<dev>/mb_min_to_scan", Range(0, INT), Alone),
    rule("ext4.<dev>.mb_order2_req", "/sys/fs/ext4/<dev>/mb_order2_req", Range(0, 64), Alone),
    rule("ext4.<dev>.mb_prefetch", "/sys/fs/ext4/<dev>/mb_prefetch", Range(0, INT), Alone),
    rule("ext4.<dev>.mb_prefetch_limit", "/sys/fs/ext4/<dev>/mb_prefetch_limit", Range(0, INT), Alone),
    rule("ext4.<dev>.mb_stats", "/sys/fs/ext4/<dev>/mb_stats", Range(0, 1), Alone),
    rule("ext4.<dev>.mb_stream_req", "/sys/fs/ext4/<dev>/mb_stream_req", Range(0, INT), Alone),
    // Lustre client. The device is lctl's, such as lustrefs-OST0000-osc-ffff88105db50000.
    rule("lustre.osc.<dev>.max_rpcs_in_flight", "/sys/fs/lustre/osc/<dev>/max_rpcs_in_flight", Range(1, 256), Raises(&["max_dirty_mb"])),
    rule("lustre.osc.<dev>.max_pages_per_rpc", "/sys/fs/lustre/osc/<dev>/max_pages_per_rpc", Range(16, 16_384), Raises(&["max_dirty_mb"])),
    rule("lustre.osc.<dev>.max_dirty_mb", "/sys/fs/lustre/osc/<dev>/max_dirty_mb", Range(1, 2047), Raised),
    rule("lustre.osc.<dev>.short_io_bytes", "/sys/fs/lustre/osc/<dev>/short_io_bytes", Range(0, 65_536), Alone),
    rule("lustre.mdc.<dev>.max_mod_rpcs_in_flight", "/sys/fs/lustre/mdc/<dev>/max_mod_rpcs_in_flight", Range(1, 511), Raises(&["max_rpcs_in_flight"])),
    rule("lustre.mdc.<dev>.max_rpcs_in_flight", "/sys/fs/lustre/mdc/<dev>/max_rpcs_in_flight", Range(2, 512), Raised),
    rule("lustre.llite.<dev>.max_read_ahead_mb", "/sys/fs/lustre/llite/<dev>/max_read_ahead_mb", Range(0, 65_536), Alone),
    rule("lustre.llite.<dev>.max_read_ahead_per_file_mb", "/sys/fs/lustre/llite/<dev>/max_read_ahead_per_file_mb", Range(0, 65_536), Alone),
    rule("lustre.llite.<dev>.max_read_ahead_whole_mb", "/sys/fs/lustre/llite/<dev>/max_read_ahead_whole_mb", Range(0, 65_536), Alone),
    rule("lustre.llite.<dev>.statahead_max", "/sys/fs/lustre/llite/<dev>/statahead_max", Range(0, 8192), Alone),
];

/// Finds a knob by its name. Whether this machine has it shows when it is read.
pub fn resolve(name: &str) -> Result<Knob> {
    for rule in RULES {
        let device = match rule.pattern.split_once("<dev>") {
            None if rule.pattern == name => None,
            None => continue,
            Some((before, after)) => {
                match name
                    .strip_prefix(before)
                    .and_then(|rest| rest.strip_suffix(after))
                {
                    Some(device) if is_device_name(device) => Some(device.to_owned()),
                    _ => continue,
                }
            }
        };
        let path = match &device {
            Some(device) => rule.path.replace("<dev>", device),
            None => rule.path.to_owned(),
        };
        return Ok(Knob {
            name: name.to_owned(),
            device,
            path: here(path),
            rule,
        });
    }
    Err(Fault::input(format!(
        "knob = {name:?}: unknown; allowed are {}",
        patterns_like(name)
    )))
}

/// The file, where this machine's Lustre has it.
fn here(path: String) -> PathBuf {
    let [new, old] = LUSTRE_ROOTS;
    match path.strip_prefix(new) {
        Some(rest) if !Path::new(&path).exists() && Path::new(old).exists() => {
            PathBuf::from(format!("{old}{rest}"))
        }
        _ => PathBuf::from(path),
    }
}

/// The patterns a mistyped name may have meant: those of its family, or all.
fn patterns_like(name: &str) -> String {
    let family = name.split('.').next().unwrap_or_default();
    let patterns = || RULES.iter().map(|rule| rule.pattern);
    let related: Vec<_> = patterns()
        .filter(|pattern| pattern.split('.').next() == Some(family))
        .collect();
    if related.is_empty() {
        patterns().collect::<Vec<_>>().join(", ")
    } else {
        related.join(", ")
    }
}

/// Kernel names of devices: no dots, no slashes, so that a name cannot leave its directory.
fn is_device_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 128
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_!".contains(&byte))
}
