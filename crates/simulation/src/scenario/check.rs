//! Whether a scenario can be run: ranges, and names that refer to each other.

use super::{
    Control, Controller, Device, FileSet, Flowop, Layout, Operation, Scenario, ScenarioError,
    Workload,
};

/// Most clients, servers, streams and threads: what the event queue can name.
const CLIENTS_MAX: usize = 100_000;
const SERVERS_MAX: usize = 10_000;
const STREAMS_MAX: usize = 10_000_000;
const THREADS_MAX: u64 = 10_000_000;
/// Longest run, and finest and most ticks.
const SECONDS_MAX: f64 = 1e6;
const TICKS_MAX: f64 = 1e7;

type Checked = Result<(), ScenarioError>;

fn refuse(key: impl Into<String>, message: impl Into<String>) -> Checked {
    Err(ScenarioError {
        key: key.into(),
        message: message.into(),
    })
}

/// `value` lies in `low..=high` and is a number.
fn within(key: impl Into<String>, value: f64, (low, high): (f64, f64)) -> Checked {
    if value >= low && value <= high {
        Ok(())
    } else {
        refuse(key, format!("{value} is not between {low} and {high}"))
    }
}

impl Scenario {
    /// Whether it can be run.
    ///
    /// # Errors
    /// The first key that is out of range or names something that is not there.
    pub fn check(&self) -> Checked {
        within("duration_s", self.duration_s, (0.001, SECONDS_MAX))?;
        within("warmup_s", self.warmup_s, (0.0, SECONDS_MAX))?;
        within("tick_s", self.tick_s, (0.001, self.duration_s.max(0.001)))?;
        within(
            "tick_s",
            (self.duration_s + self.warmup_s) / self.tick_s,
            (0.0, TICKS_MAX),
        )?;
        self.check_sizes()?;
        for (index, workload) in self.workloads.iter().enumerate() {
            check_workload(&format!("workloads[{index}]"), workload)?;
        }
        check_control("control", &self.control)?;
        self.check_clients()?;
        self.check_servers()?;
        self.check_rest()
    }

    fn check_sizes(&self) -> Checked {
        let (clients, servers) = (self.client_count(), self.server_count());
        if clients == 0 || clients > CLIENTS_MAX {
            return refuse(
                "clients",
                format!("{clients} clients; 1 to {CLIENTS_MAX} can be simulated"),
            );
        }
        if servers == 0 || servers > SERVERS_MAX {
            return refuse(
                "servers",
                format!("{servers} servers; 1 to {SERVERS_MAX} can be simulated"),
            );
        }
        if clients * servers > STREAMS_MAX {
            return refuse(
                "clients",
                format!(
                    "{clients} clients x {servers} servers are more than {STREAMS_MAX} streams"
                ),
            );
        }
        let threads: u64 = self
            .clients
            .iter()
            .filter_map(|group| {
                let workload = self
                    .workloads
                    .iter()
                    .find(|workload| workload.name == group.workload)?;
                let each: u64 = workload
                    .threads
                    .iter()
                    .map(|threads| u64::from(threads.instances))
                    .sum();
                Some(each.saturating_mul(u64::from(group.count)))
            })
            .fold(0, u64::saturating_add);
        if threads > THREADS_MAX {
            return refuse(
                "workloads",
                format!("{threads} threads in all; at most {THREADS_MAX} can be simulated"),
            );
        }
        Ok(())
    }

    fn check_clients(&self) -> Checked {
        for (index, group) in self.clients.iter().enumerate() {
            let key = |field: &str| format!("clients[{index}].{field}");
            if !self
                .workloads
                .iter()
                .any(|workload| workload.name == group.workload)
            {
                let known: Vec<&str> = self
                    .workloads
                    .iter()
                    .map(|workload| workload.name.as_str())
                    .collect();
                return refuse(
                    key("workload"),
                    format!(
                        "no workload is named {:?}; there are: {}",
                        group.workload,
                        known.join(", ")
                    ),
                );
            }
            if let Some(control) = &group.control {
                check_control(&key("control"), control)?;
            }
            within(
                key("rogue_window"),
                f64::from(group.rogue_window),
                (1.0, 65_536.0),
            )?;
            within(
                key("request_kib"),
                f64::from(group.request_kib),
                (4.0, 65_536.0),
            )?;
            let (request, stripe) = (group.request_kib, self.striping.size_kib.max(1));
            if request % stripe != 0 && stripe % request != 0 {
                return refuse(
                    key("request_kib"),
                    format!(
                        "{request} neither divides striping.size_kib = {stripe} nor is a multiple of it"
                    ),
                );
            }
            within(key("start_s"), group.start_s, (0.0, SECONDS_MAX))?;
            within(
                key("stop_s"),
                group.stop_s.unwrap_or(SECONDS_MAX),
                (group.start_s, SECONDS_MAX),
            )?;
            within(
                key("cache.dirty_limit_mib"),
                group.cache.dirty_limit_mib,
                (1.0, 1e6),
            )?;
            within(
                key("cache.page_cache_mib"),
                group.cache.page_cache_mib,
                (0.0, 1e9),
            )?;
            within(
                key("cache.read_ahead_mib"),
                group.cache.read_ahead_mib,
                (0.0, 1e6),
            )?;
            within(
                key("cache.copy_mb_per_s"),
                group.cache.copy_mb_per_s,
                (1.0, 1e6),
            )?;
            if let Some(link) = &group.link {
                within(
                    key("link.bandwidth_mb_per_s"),
                    link.bandwidth_mb_per_s,
                    (0.001, 1e6),
                )?;
            }
        }
        Ok(())
    }

    fn check_servers(&self) -> Checked {
        for (index, group) in self.servers.iter().enumerate() {
            let key = |field: &str| format!("servers[{index}].{field}");
            within(key("threads"), f64::from(group.threads), (1.0, 1e6))?;
            within(key("request_cpu_us"), group.request_cpu_us, (0.0, 1e6))?;
            within(key("queue.slots"), f64::from(group.queue.slots), (1.0, 1e6))?;
            within(
                key("queue.piece_kib"),
                f64::from(group.queue.piece_kib),
                (4.0, 65_536.0),
            )?;
            within(
                key("queue.device_depth"),
                f64::from(group.queue.device_depth),
                (1.0, 65_536.0),
            )?;
            within(key("queue.batch"), f64::from(group.queue.batch), (1.0, 1e6))?;
            within(
                key("queue.write_expire_ms"),
                group.queue.write_expire_ms,
                (0.0, 1e9),
            )?;
            check_layout(&key("layout"), &group.layout)?;
            check_device(&key("device"), &group.device)?;
            if let Some(link) = &group.link {
                within(
                    key("link.bandwidth_mb_per_s"),
                    link.bandwidth_mb_per_s,
                    (0.001, 1e6),
                )?;
            }
        }
        Ok(())
    }

    fn check_rest(&self) -> Checked {
        within(
            "network.link.bandwidth_mb_per_s",
            self.network.link.bandwidth_mb_per_s,
            (0.001, 1e6),
        )?;
        within("network.latency_us", self.network.latency_us, (0.0, 1e7))?;
        within(
            "network.port_buffer_kib",
            f64::from(self.network.port_buffer_kib),
            (1.0, 1e7),
        )?;
        within(
            "network.window_min_kib",
            f64::from(self.network.window_min_kib),
            (1.0, 1e6),
        )?;
        within("network.rto_ms", self.network.rto_ms, (0.1, 1e6))?;
        within("striping.count", f64::from(self.striping.count), (1.0, 1e6))?;
        within(
            "striping.size_kib",
            f64::from(self.striping.size_kib),
            (4.0, 1e6),
        )?;
        within("locks.handover_us", self.locks.handover_us, (0.0, 1e7))?;
        within(
            "metadata.threads",
            f64::from(self.metadata.threads),
            (1.0, 1e6),
        )?;
        for (name, value) in [
            ("metadata.create_us", self.metadata.create_us),
            ("metadata.open_us", self.metadata.open_us),
            ("metadata.stat_us", self.metadata.stat_us),
            ("metadata.delete_us", self.metadata.delete_us),
        ] {
            within(name, value, (0.0, 1e7))?;
        }
        within(
            "noise.service_sd_percent",
            self.noise.service_sd_percent,
            (0.0, 200.0),
        )?;
        within(
            "noise.disk_requests_per_s",
            self.noise.disk_requests_per_s,
            (0.0, 1e5),
        )?;
        within(
            "noise.disk_request_kib",
            f64::from(self.noise.disk_request_kib),
            (1.0, 65_536.0),
        )?;
        within(
            "noise.network_bursts_per_s",
            self.noise.network_bursts_per_s,
            (0.0, 1e5),
        )?;
        within(
            "noise.network_burst_kib",
            f64::from(self.noise.network_burst_kib),
            (1.0, 1e7),
        )?;
        for (index, failure) in self.failures.iter().enumerate() {
            let key = |field: &str| format!("failures[{index}].{field}");
            within(key("at_s"), failure.at_s, (0.0, SECONDS_MAX))?;
            within(key("for_s"), failure.for_s, (0.0, SECONDS_MAX))?;
            within(key("factor"), failure.factor, (0.01, 1e4))?;
            within(
                key("server"),
                f64::from(failure.server),
                (0.0, (self.server_count() - 1) as f64),
            )?;
        }
        Ok(())
    }
}

fn check_control(key: &str, control: &Control) -> Checked {
    within(
        format!("{key}.window_min"),
        control.window_min,
        (1.0, 65_536.0),
    )?;
    within(
        format!("{key}.window_max"),
        control.window_max,
        (control.window_min, 65_536.0),
    )?;
    within(
        format!("{key}.window"),
        control.window,
        (control.window_min, control.window_max),
    )?;
    within(format!("{key}.tau_us"), control.tau_us, (0.0, 1e9))?;
    within(format!("{key}.timeout_s"), control.timeout_s, (0.01, 1e6))?;
    if (control.controller == Controller::Rules) != control.rules.is_some() {
        return refuse(
            format!("{key}.rules"),
            "a rule set is needed with controller = \"rules\", and allowed with that only",
        );
    }
    Ok(())
}

fn check_layout(key: &str, layout: &Layout) -> Checked {
    within(
        format!("{key}.start_percent"),
        layout.start_percent,
        (0.0, 99.9),
    )?;
    within(
        format!("{key}.spread_percent"),
        layout.spread_percent,
        (0.01, 100.0 - layout.start_percent),
    )?;
    within(
        format!("{key}.extent_kib"),
        f64::from(layout.extent_kib),
        (64.0, 1e7),
    )?;
    within(
        format!("{key}.fragmentation_percent"),
        layout.fragmentation_percent,
        (0.0, 100.0),
    )?;
    within(
        format!("{key}.used_percent"),
        layout.used_percent,
        (0.0, 99.0),
    )
}

fn check_device(key: &str, device: &Device) -> Checked {
    let positive: Vec<(&str, f64)> = match device {
        Device::Mechanical(disk) => {
            within(format!("{key}.inner_speed"), disk.inner_speed, (0.01, 1.0))?;
            within(format!("{key}.zones"), f64::from(disk.zones), (1.0, 1000.0))?;
            within(
                format!("{key}.seek_track_ms"),
                disk.seek_track_ms,
                (0.0, disk.seek_full_ms),
            )?;
            within(
                format!("{key}.seek_exponent"),
                disk.seek_exponent,
                (0.05, 1.0),
            )?;
            within(
                format!("{key}.write_settle_ms"),
                disk.write_settle_ms,
                (0.0, 1e3),
            )?;
            within(format!("{key}.command_ms"), disk.command_ms, (0.0, 1e3))?;
            vec![
                ("capacity_gb", disk.capacity_gb),
                ("rpm", disk.rpm),
                ("read_mb_per_s", disk.read_mb_per_s),
                ("write_mb_per_s", disk.write_mb_per_s),
                ("seek_full_ms", disk.seek_full_ms),
            ]
        }
        Device::Flash(flash) => {
            within(
                format!("{key}.channels"),
                f64::from(flash.channels),
                (1.0, 1024.0),
            )?;
            within(
                format!("{key}.channel_kib"),
                f64::from(flash.channel_kib),
                (4.0, 65_536.0),
            )?;
            within(
                format!("{key}.spare_percent"),
                flash.spare_percent,
                (0.5, 1000.0),
            )?;
            within(
                format!("{key}.filled_percent"),
                flash.filled_percent,
                (0.0, 100.0),
            )?;
            within(format!("{key}.read_us"), flash.read_us, (0.0, 1e6))?;
            within(format!("{key}.write_us"), flash.write_us, (0.0, 1e6))?;
            within(format!("{key}.erase_ms"), flash.erase_ms, (0.0, 1e4))?;
            vec![
                ("capacity_gb", flash.capacity_gb),
                ("channel_read_mb_per_s", flash.channel_read_mb_per_s),
                ("channel_write_mb_per_s", flash.channel_write_mb_per_s),
                ("bus_mb_per_s", flash.bus_mb_per_s),
                ("erase_block_mib", flash.erase_block_mib),
            ]
        }
        Device::Memory(memory) => {
            within(format!("{key}.request_us"), memory.request_us, (0.0, 1e6))?;
            vec![
                ("capacity_gb", memory.capacity_gb),
                ("copy_mb_per_s", memory.copy_mb_per_s),
            ]
        }
    };
    for (field, value) in positive {
        within(format!("{key}.{field}"), value, (0.01, 1e7))?;
    }
    Ok(())
}

fn check_workload(key: &str, workload: &Workload) -> Checked {
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
