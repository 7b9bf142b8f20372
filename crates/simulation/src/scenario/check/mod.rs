//! Whether a scenario can be run: ranges, and names that refer to each other.

mod parts;
mod workloads;

use super::{Scenario, ScenarioError};
use parts::{check_control, check_device, check_layout};
use workloads::check_workload;

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
