//! What is counted during a run, and the figures made of it.

use super::Cluster;
use crate::disk::DeviceCounters;
use crate::events::Nanos;
use crate::histogram::Histogram;
use crate::outcome::{GroupReport, Outcome, ServerReport, StreamSeries};
use crate::requests::Request;

/// Sums since the start or the last reset.
#[derive(Debug, Default)]
pub(super) struct Counters {
    since: Nanos,
    /// What threads have done, a thread group of a client group each.
    pub groups: Vec<GroupSums>,
    /// What of the bytes read came out of page caches.
    pub cache_hit_bytes: u64,
    /// Bytes that servers have answered for.
    served_bytes: u64,
    /// Response times of requests, from being asked for to the reply.
    reads: Histogram,
    writes: Histogram,
    /// Service times of all of them, from the last send to the reply.
    services: Histogram,
    /// Response times of threads' operations on file data.
    transfers: Histogram,
    /// Response times of threads' operations on metadata.
    metadata: Histogram,
    pub timeouts: u64,
    /// Requests sent and not answered, and their integral over time.
    sent: u64,
    sent_since: Nanos,
    sent_area: u128,
    /// Threads that wait for file data, and the time with any.
    active: u32,
    active_since: Nanos,
    active_ns: Nanos,
    /// The state of other counters at the last reset.
    losses_before: u64,
    servers_before: Vec<ServerSums>,
    /// When servers were looked at last, and what they had counted by then.
    servers_looked: (Nanos, Vec<ServerSums>),
}

/// What the threads of a group have done.
#[derive(Debug, Clone, Copy)]
pub(super) struct GroupSums {
    /// Client group, and thread group of its workload.
    number: (u32, u32),
    moves_data: bool,
    pub operations: u64,
    pub passes: u64,
    pub read_bytes: u64,
    pub written_bytes: u64,
}

impl GroupSums {
    /// Of threads that have done nothing yet.
    pub fn new(number: (u32, u32), moves_data: bool) -> GroupSums {
        GroupSums {
            number,
            moves_data,
            operations: 0,
            passes: 0,
            read_bytes: 0,
            written_bytes: 0,
        }
    }
}

/// What a server has counted.
#[derive(Debug, Clone, Copy, Default)]
struct ServerSums {
    device: DeviceCounters,
    link_in_ns: Nanos,
    link_out_ns: Nanos,
    present_area: u128,
}

impl Counters {
    fn integrate(&mut self, now: Nanos) {
        self.sent_area += u128::from(self.sent) * u128::from(now - self.sent_since);
        self.sent_since = now;
    }

    #[inline]
    pub fn sent(&mut self, now: Nanos) {
        self.integrate(now);
        self.sent += 1;
    }

    #[inline]
    pub fn replied(&mut self, now: Nanos, request: &Request) {
        self.integrate(now);
        self.sent -= 1;
        self.served_bytes += u64::from(request.length);
        self.services.add(now - request.sent_ns);
        let latency = now - request.asked_ns;
        if request.write {
            self.writes.add(latency)
        } else {
            self.reads.add(latency)
        }
    }

    /// A thread's operation on file data, which it was asked for then, is done.
    #[inline]
    pub fn transferred(&mut self, now: Nanos, asked_ns: Nanos) {
        self.transfers.add(now - asked_ns);
    }

    /// A thread's operation on metadata, which it was asked for then, is answered.
    #[inline]
    pub fn metadata(&mut self, now: Nanos, asked_ns: Nanos) {
        self.metadata.add(now - asked_ns);
    }

    /// A request that was lost is under way no more; it will be sent again.
    pub fn lost(&mut self, now: Nanos) {
        self.integrate(now);
        self.sent -= 1;
    }

    pub fn set_active(&mut self, now: Nanos, active: bool) {
        if active {
            if self.active == 0 {
                self.active_since = now;
            }
            self.active += 1;
        } else {
            self.active -= 1;
            if self.active == 0 {
                self.active_ns += now - self.active_since;
            }
        }
    }
}

/// Series by tick, kept beside the cluster.
#[derive(Debug, Default)]
pub(crate) struct Series {
    /// Throughput of each client by tick.
    pub clients: Vec<Vec<f64>>,
    /// Indicators of each stream by tick, where they are recorded.
    pub streams: Vec<StreamSeries>,
}

impl Cluster {
    /// Forget what was counted: the warm-up is over.
    pub fn reset_counters(&mut self) {
        let now = self.now;
        let servers_before = self.all_server_sums();
        for client in &mut self.clients {
            client.metadata_operations = 0;
        }
        let counters = &mut self.counters;
        *counters = Counters {
            since: now,
            groups: counters
                .groups
                .iter()
                .map(|group| GroupSums::new(group.number, group.moves_data))
                .collect(),
            sent: counters.sent,
            sent_since: now,
            active: counters.active,
            active_since: now,
            losses_before: self.network.losses,
            servers_looked: (now, servers_before.clone()),
            servers_before,
            ..Counters::default()
        };
    }

    /// Bytes that each client's threads have read and written since the last call.
    pub fn take_client_bytes(&mut self) -> impl Iterator<Item = u64> + '_ {
        self.clients
            .iter_mut()
            .map(|client| std::mem::take(&mut client.bytes))
    }

    fn server_sums(&self, number: usize) -> ServerSums {
        let server = &self.servers[number];
        let (link_in_ns, link_out_ns) = self.network.busy_ns(self.clients.len() + number);
        let since = u128::from(self.now - server.present_since);
        ServerSums {
            device: server.storage.counters(),
            link_in_ns,
            link_out_ns,
            present_area: server.present_area + u128::from(server.present) * since,
        }
    }

    fn all_server_sums(&self) -> Vec<ServerSums> {
        (0..self.servers.len())
            .map(|server| self.server_sums(server))
            .collect()
    }

    /// Every server since the last call, or since the last reset.
    pub fn look_at_servers(&mut self) -> Vec<ServerReport> {
        let (since, before) = std::mem::take(&mut self.counters.servers_looked);
        let elapsed_ns = (self.now - since).max(1) as f64;
        let reports = (0..self.servers.len())
            .map(|number| self.server_report((number, &before), elapsed_ns))
            .collect();
        self.counters.servers_looked = (self.now, self.all_server_sums());
        reports
    }

    fn server_report(
        &self,
        (number, before): (usize, &[ServerSums]),
        elapsed_ns: f64,
    ) -> ServerReport {
        let sums = self.server_sums(number);
        let before = before.get(number).copied().unwrap_or_default();
        let (device, old) = (sums.device, before.device);
        let percent = |now: u64, then: u64| (now - then) as f64 / elapsed_ns * 100.0;
        let rate = |now: u64, then: u64| (now - then) as f64 / elapsed_ns * 1e3;
        let pieces = device.pieces - old.pieces;
        ServerReport {
            read_mb_per_s: rate(device.read_bytes, old.read_bytes),
            write_mb_per_s: rate(device.written_bytes, old.written_bytes),
            device_busy_percent: percent(device.busy_ns, old.busy_ns),
            device_positioning_percent: percent(device.positioning_ns, old.positioning_ns),
            device_sequential_percent: if pieces == 0 {
                0.0
            } else {
                (device.sequential_pieces - old.sequential_pieces) as f64 / pieces as f64 * 100.0
            },
            link_in_busy_percent: percent(sums.link_in_ns, before.link_in_ns),
            link_out_busy_percent: percent(sums.link_out_ns, before.link_out_ns),
            requests_mean: (sums.present_area - before.present_area) as f64 / elapsed_ns,
        }
    }

    /// The figures of what was counted since the last reset.
    pub fn outcome(&self, seed: u64, tick_s: f64, series: &Series) -> Outcome {
        let counters = &self.counters;
        let elapsed_ns = (self.now - counters.since).max(1);
        let mb_per_s = |bytes: u64| bytes as f64 / elapsed_ns as f64 * 1e3;
        let running = if counters.active > 0 {
            self.now - counters.active_since
        } else {
            0
        };
        let active_ns = counters.active_ns + running;
        let sum = |part: fn(&GroupSums) -> u64| counters.groups.iter().map(part).sum::<u64>();
        let read_bytes = sum(|group| group.read_bytes);
        let written_bytes = sum(|group| group.written_bytes);
        let bytes = read_bytes + written_bytes;
        let sent_now = u128::from(counters.sent) * u128::from(self.now - counters.sent_since);
        let latency = counters.reads.merged(&counters.writes).latency();
        let metadata_latency = counters.metadata.latency();
        let ticks = series.clients.first().map_or(0, Vec::len);
        let totals: Vec<f64> = (0..ticks)
            .map(|tick| series.clients.iter().map(|client| client[tick]).sum())
            .collect();
        let means: Vec<f64> = series.clients.iter().map(|client| mean(client)).collect();
        let moves_data = counters.groups.iter().any(|group| group.moves_data);
        let metadata_rates: Vec<f64> = self
            .clients
            .iter()
            .map(|client| client.metadata_operations as f64 / elapsed_ns as f64 * 1e9)
            .collect();
        let pooled: Vec<f64> = series.clients.concat();
        Outcome {
            seed,
            virtual_seconds: elapsed_ns as f64 / 1e9,
            events: self.events.popped(),
            requests: latency.requests,
            operations: sum(|group| group.operations),
            throughput_mb_per_s: mb_per_s(bytes),
            read_mb_per_s: mb_per_s(read_bytes),
            write_mb_per_s: mb_per_s(written_bytes),
            served_mb_per_s: mb_per_s(counters.served_bytes),
            cache_hit_mb_per_s: mb_per_s(counters.cache_hit_bytes),
            throughput_while_active_mb_per_s: if active_ns == 0 {
                0.0
            } else {
                bytes as f64 / active_ns as f64 * 1e3
            },
            throughput_per_client_mb_per_s: mean(&pooled),
            stdev_pooled_mb_per_s: deviation(&pooled),
            stdev_total_mb_per_s: deviation(&totals),
            jain_index: jain(if moves_data { &means } else { &metadata_rates }),
            latency,
            read_latency: counters.reads.latency(),
            write_latency: counters.writes.latency(),
            service_time: counters.services.latency(),
            operation_latency: counters.transfers.latency(),
            metadata_operations_per_s: metadata_latency.requests as f64 / elapsed_ns as f64 * 1e9,
            metadata_latency,
            in_flight_mean: (counters.sent_area + sent_now) as f64 / elapsed_ns as f64,
            timeouts: counters.timeouts,
            incast_losses: self.network.losses - counters.losses_before,
            tick_s,
            total_mb_per_s: totals,
            clients_mb_per_s: series.clients.clone(),
            clients_metadata_per_s: metadata_rates,
            groups: counters
                .groups
                .iter()
                .map(|group| GroupReport {
                    clients: group.number.0,
                    threads: group.number.1,
                    moves_data: group.moves_data,
                    read_mb_per_s: mb_per_s(group.read_bytes),
                    write_mb_per_s: mb_per_s(group.written_bytes),
                    operations: group.operations,
                    passes: group.passes,
                })
                .collect(),
            servers: (0..self.servers.len())
                .map(|number| {
                    let before = (number, counters.servers_before.as_slice());
                    self.server_report(before, elapsed_ns as f64)
                })
                .collect(),
            streams: series.streams.clone(),
        }
    }
}

fn mean(values: &[f64]) -> f64 {
    if values.is_empty() {
        0.0
    } else {
        values.iter().sum::<f64>() / values.len() as f64
    }
}

/// The standard deviation of all values there are (not an estimate from a sample).
fn deviation(values: &[f64]) -> f64 {
    let centre = mean(values);
    let squares: f64 = values.iter().map(|value| (value - centre).powi(2)).sum();
    if values.is_empty() {
        0.0
    } else {
        (squares / values.len() as f64).sqrt()
    }
}

/// Jain's fairness index: (sum x)^2 / (n * sum x^2); 1 when all are alike, and when there is nothing to share.
fn jain(values: &[f64]) -> f64 {
    let squares: f64 = values.iter().map(|value| value * value).sum();
    if squares == 0.0 {
        return 1.0;
    }
    // Rounding may bring a little more than the 1 that is the most.
    (values.iter().sum::<f64>().powi(2) / (values.len() as f64 * squares)).min(1.0)
}
