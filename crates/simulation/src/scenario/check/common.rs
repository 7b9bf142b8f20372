//! Ranges of what clients and servers have in common: network, striping, locks, metadata, noise, failures.

use super::parts::check_control;
use super::{Checked, SECONDS_MAX, each_within, refuse};
use crate::scenario::{Control, Failure, Locks, Scenario};

pub(super) fn check_common(scenario: &Scenario) -> Checked {
    let network = &scenario.network;
    each_within(
        "network",
        &[
            (
                "link.bandwidth_mb_per_s",
                network.link.bandwidth_mb_per_s,
                (0.001, 1e6),
            ),
            ("latency_us", network.latency_us, (0.0, 1e7)),
            (
                "port_buffer_kib",
                f64::from(network.port_buffer_kib),
                (1.0, 1e7),
            ),
            (
                "window_min_kib",
                f64::from(network.window_min_kib),
                (1.0, 1e6),
            ),
            ("rto_ms", network.rto_ms, (0.1, 1e6)),
        ],
    )?;
    let striping = &scenario.striping;
    each_within(
        "striping",
        &[
            ("count", f64::from(striping.count), (1.0, 1e6)),
            ("size_kib", f64::from(striping.size_kib), (4.0, 1e6)),
        ],
    )?;
    check_locks(&scenario.locks)?;
    let metadata = &scenario.metadata;
    each_within(
        "metadata",
        &[
            ("threads", f64::from(metadata.threads), (1.0, 1e6)),
            ("create_us", metadata.create_us, (0.0, 1e7)),
            ("open_us", metadata.open_us, (0.0, 1e7)),
            ("stat_us", metadata.stat_us, (0.0, 1e7)),
            ("delete_us", metadata.delete_us, (0.0, 1e7)),
            ("contention", metadata.contention, (0.0, 1.0)),
            ("coherence", metadata.coherence, (0.0, 1.0)),
        ],
    )?;
    if let Some(control) = &metadata.control {
        check_without_files(control)?;
        check_control("metadata.control", control)?;
    }
    check_noise(scenario)
}

fn check_locks(locks: &Locks) -> Checked {
    let growth_mib = locks.extent_growth_mib.unwrap_or(0.0);
    each_within(
        "locks",
        &[
            ("handover_us", locks.handover_us, (0.0, 1e7)),
            ("extent_growth_mib", growth_mib, (0.0, 1e8)),
        ],
    )?;
    if locks.extents && locks.whole_file {
        return refuse(
            "locks.extents",
            "a lock covers a range or a whole file: set extents or whole_file, not both",
        );
    }
    if locks.extent_growth_mib.is_some() && !locks.extents {
        return refuse(
            "locks.extent_growth_mib",
            "ranges need extents = true; set that, or leave this out",
        );
    }
    Ok(())
}

/// Operations on metadata have no bytes to bound, and no files that take turns.
fn check_without_files(control: &Control) -> Checked {
    let key = if control.active_files > 0 {
        "active_files"
    } else if control.least_mb_per_s > 0.0 {
        "least_mb_per_s"
    } else if control.most_mb_per_s.is_some() {
        "most_mb_per_s"
    } else {
        return Ok(());
    };
    refuse(
        format!("metadata.control.{key}"),
        "is for streams of file data; leave it out",
    )
}

fn check_noise(scenario: &Scenario) -> Checked {
    let noise = &scenario.noise;
    each_within(
        "noise",
        &[
            ("service_sd_percent", noise.service_sd_percent, (0.0, 200.0)),
            ("disk_requests_per_s", noise.disk_requests_per_s, (0.0, 1e5)),
            (
                "disk_request_kib",
                f64::from(noise.disk_request_kib),
                (1.0, 65_536.0),
            ),
            (
                "network_bursts_per_s",
                noise.network_bursts_per_s,
                (0.0, 1e5),
            ),
            (
                "network_burst_kib",
                f64::from(noise.network_burst_kib),
                (1.0, 1e7),
            ),
        ],
    )
}

pub(super) fn check_failure(scenario: &Scenario, key: &str, failure: &Failure) -> Checked {
    let server_max = (scenario.server_count() - 1) as f64;
    each_within(
        key,
        &[
            ("at_s", failure.at_s, (0.0, SECONDS_MAX)),
            ("for_s", failure.for_s, (0.0, SECONDS_MAX)),
            ("factor", failure.factor, (0.01, 1e4)),
            ("server", f64::from(failure.server), (0.0, server_max)),
        ],
    )
}
