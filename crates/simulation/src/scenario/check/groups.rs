//! Ranges of groups of clients and of servers.

use super::parts::{check_control, check_device, check_layout};
use super::{Checked, SECONDS_MAX, each_within, refuse, within};
use crate::scenario::{ClientGroup, Link, Scenario, ServerGroup};

pub(super) fn check_client(scenario: &Scenario, key: &str, group: &ClientGroup) -> Checked {
    check_workload_name(scenario, key, group)?;
    if let Some(control) = &group.control {
        check_control(&format!("{key}.control"), control)?;
    }
    each_within(
        key,
        &[
            (
                "rogue_window",
                f64::from(group.rogue_window),
                (1.0, 65_536.0),
            ),
            ("request_kib", f64::from(group.request_kib), (4.0, 65_536.0)),
        ],
    )?;
    let (request, stripe) = (group.request_kib, scenario.striping.size_kib.max(1));
    if request % stripe != 0 && stripe % request != 0 {
        return refuse(
            format!("{key}.request_kib"),
            format!(
                "{request} neither divides striping.size_kib = {stripe} nor is a multiple of it"
            ),
        );
    }
    let stop_s = group.stop_s.unwrap_or(SECONDS_MAX);
    let cache = &group.cache;
    each_within(
        key,
        &[
            ("start_s", group.start_s, (0.0, SECONDS_MAX)),
            ("stop_s", stop_s, (group.start_s, SECONDS_MAX)),
            ("cache.dirty_limit_mib", cache.dirty_limit_mib, (1.0, 1e6)),
            ("cache.page_cache_mib", cache.page_cache_mib, (0.0, 1e9)),
            ("cache.read_ahead_mib", cache.read_ahead_mib, (0.0, 1e6)),
            ("cache.copy_mb_per_s", cache.copy_mb_per_s, (1.0, 1e6)),
        ],
    )?;
    check_link(key, group.link.as_ref())
}

pub(super) fn check_server(key: &str, group: &ServerGroup) -> Checked {
    let queue = &group.queue;
    each_within(
        key,
        &[
            ("threads", f64::from(group.threads), (1.0, 1e6)),
            ("request_cpu_us", group.request_cpu_us, (0.0, 1e6)),
            ("queue.slots", f64::from(queue.slots), (1.0, 1e6)),
            (
                "queue.piece_kib",
                f64::from(queue.piece_kib),
                (4.0, 65_536.0),
            ),
            (
                "queue.device_depth",
                f64::from(queue.device_depth),
                (1.0, 65_536.0),
            ),
            ("queue.batch", f64::from(queue.batch), (1.0, 1e6)),
            ("queue.write_expire_ms", queue.write_expire_ms, (0.0, 1e9)),
        ],
    )?;
    check_layout(&format!("{key}.layout"), &group.layout)?;
    check_device(&format!("{key}.device"), &group.device)?;
    check_link(key, group.link.as_ref())
}

/// A group's own link, where it has one.
fn check_link(key: &str, link: Option<&Link>) -> Checked {
    link.map_or(Ok(()), |link| {
        within(
            format!("{key}.link.bandwidth_mb_per_s"),
            link.bandwidth_mb_per_s,
            (0.001, 1e6),
        )
    })
}

fn check_workload_name(scenario: &Scenario, key: &str, group: &ClientGroup) -> Checked {
    let known: Vec<&str> = scenario
        .workloads
        .iter()
        .map(|workload| workload.name.as_str())
        .collect();
    if known.contains(&group.workload.as_str()) {
        return Ok(());
    }
    refuse(
        format!("{key}.workload"),
        format!(
            "no workload is named {:?}; there are: {}",
            group.workload,
            known.join(", ")
        ),
    )
}
