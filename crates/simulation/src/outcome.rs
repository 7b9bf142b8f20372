//! What a run brings: figures over the counted time, series by tick, indicators by stream.

use serde::Serialize;

/// Congestion indicators and settings of a stream (one client, one server) at the end of a tick.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Indicators {
    /// Window in force, in requests.
    pub window: f64,
    /// Least gap between requests in force.
    pub tau_us: f64,
    /// Moving average of gaps between replies.
    pub ack_ewma_us: f64,
    /// Moving average of gaps between the send times of the requests replied to.
    pub send_ewma_us: f64,
    /// Process time over the shortest seen.
    pub pt_ratio: f64,
    /// Read since the last observation; one tick in a recorded series.
    pub read_mb_per_s: f64,
    /// Written since then (acknowledged by the server).
    pub write_mb_per_s: f64,
    /// Dirty data in the cache for this server.
    pub dirty_bytes: u64,
    /// Largest amount of dirty data allowed.
    pub dirty_limit_bytes: u64,
    /// Requests sent and not answered.
    pub in_flight: u32,
    /// Requests that wait for window or pace.
    pub waiting: u32,
    /// Round trip of a ping to the server at the end of the tick.
    pub ping_us: f64,
}

/// Latencies of requests or operations of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Latency {
    /// Requests or operations counted.
    pub requests: u64,
    /// Mean.
    pub latency_ms_mean: f64,
    /// Median; as all percentiles within 1.6% (logarithmic buckets).
    pub latency_ms_p50: f64,
    /// 90th percentile.
    pub latency_ms_p90: f64,
    /// 99th percentile.
    pub latency_ms_p99: f64,
    /// 99.9th percentile.
    pub latency_ms_p999: f64,
    /// Largest.
    pub latency_ms_max: f64,
}

/// One server over the counted time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct ServerReport {
    /// Read from its device.
    pub read_mb_per_s: f64,
    /// Written to its device.
    pub write_mb_per_s: f64,
    /// Share of the time that its device was busy, in percent.
    pub device_busy_percent: f64,
    /// Share of the time that its device spent on seeks and rotation, in percent.
    pub device_positioning_percent: f64,
    /// Share of pieces that followed the one before without positioning, in percent.
    pub device_sequential_percent: f64,
    /// Share of the time that its incoming link was busy, in percent.
    pub link_in_busy_percent: f64,
    /// Share of the time that its outgoing link was busy, in percent.
    pub link_out_busy_percent: f64,
    /// Mean number of requests at the server.
    pub requests_mean: f64,
}

/// Threads that are alike, on all clients of a group, over the counted time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct GroupReport {
    /// Client group, counted from 0.
    pub clients: u32,
    /// Thread group of its workload, counted from 0.
    pub threads: u32,
    /// Whether its steps read or write file data.
    pub moves_data: bool,
    /// Read.
    pub read_mb_per_s: f64,
    /// Written.
    pub write_mb_per_s: f64,
    /// Operations done (reads and writes of any size, metadata operations).
    pub operations: u64,
    /// Passes through its steps.
    pub passes: u64,
}

/// The series of a stream, one entry a tick of the counted time.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct StreamSeries {
    /// Client, counted from 0.
    pub client: u32,
    /// Server, counted from 0.
    pub server: u32,
    /// Its indicators.
    pub ticks: Vec<Indicators>,
}

/// What a run of a scenario brings. Everything is counted after the warm-up; wall time is the caller's to add.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Outcome {
    /// The seed of the run.
    pub seed: u64,
    /// Counted virtual time.
    pub virtual_seconds: f64,
    /// Events of the whole run, warm-up included.
    pub events: u64,
    /// Requests answered by servers.
    pub requests: u64,
    /// Operations of threads done (reads and writes of any size, metadata operations).
    pub operations: u64,
    /// Total throughput of all clients' threads, reading and writing (TP of Table 3.4).
    pub throughput_mb_per_s: f64,
    /// Reading alone.
    pub read_mb_per_s: f64,
    /// Writing alone.
    pub write_mb_per_s: f64,
    /// What servers have answered for: without what page caches held, with what was read ahead.
    pub served_mb_per_s: f64,
    /// What threads read out of page caches.
    pub cache_hit_mb_per_s: f64,
    /// Bytes over the time during which at least one thread waited for file data: what a benchmark that times its
    /// I/O alone reports (BTIO).
    pub throughput_while_active_mb_per_s: f64,
    /// Mean over clients and ticks (section 3.1.5's tp).
    pub throughput_per_client_mb_per_s: f64,
    /// Standard deviation over clients and ticks, pooled (section 3.1.5's stdev).
    pub stdev_pooled_mb_per_s: f64,
    /// Standard deviation over ticks of the total.
    pub stdev_total_mb_per_s: f64,
    /// Jain's fairness index of the clients' mean throughputs; of their rates of metadata operations where no thread has
    /// to do with file data.
    pub jain_index: f64,
    /// Response time of all requests to storage servers: from being asked for to the reply, with the wait for window
    /// and pace.
    pub latency: Latency,
    /// Of reads.
    pub read_latency: Latency,
    /// Of writes.
    pub write_latency: Latency,
    /// Service time of all requests: from being sent (for the last time) to the reply, as a controller sees it.
    pub service_time: Latency,
    /// Response time of threads' operations on file data: from the arrival, or in a closed loop from the begin, to the
    /// end.
    pub operation_latency: Latency,
    /// Operations on metadata that the metadata server has answered.
    pub metadata_operations_per_s: f64,
    /// Response time of threads' operations on metadata: from being asked for to the reply, with the wait for window
    /// and pace.
    pub metadata_latency: Latency,
    /// Mean number of requests in flight (sent, not answered), by time: Little's law has it equal
    /// requests a second times mean service time.
    pub in_flight_mean: f64,
    /// Requests that were sent again after a time-out.
    pub timeouts: u64,
    /// Transfers that lost segments in a switch port (incast).
    pub incast_losses: u64,
    /// Length of a tick.
    pub tick_s: f64,
    /// Total throughput by tick.
    pub total_mb_per_s: Vec<f64>,
    /// Throughput of each client by tick.
    pub clients_mb_per_s: Vec<Vec<f64>>,
    /// Operations on metadata a second of each client.
    pub clients_metadata_per_s: Vec<f64>,
    /// Each thread group of each client group.
    pub groups: Vec<GroupReport>,
    /// Each server.
    pub servers: Vec<ServerReport>,
    /// Each stream, where the scenario records them.
    pub streams: Vec<StreamSeries>,
}
