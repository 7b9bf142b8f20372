"""Runs of a simulated cluster: figures over the counted time, series by tick, indicators by stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta

from ascar import typed
from ascar.results.measurement import Count


class Indicators(msgspec.Struct, frozen=True):
    """A stream (one client, one server) at the end of a tick.

    Attributes:
        window: the window in force, in requests.
        tau_us: least gap between requests in force.
        ack_ewma_us: moving average of gaps between replies.
        send_ewma_us: moving average of gaps between the send times of the requests replied to.
        pt_ratio: process time over the shortest seen.
        read_mb_per_s: read in the tick.
        write_mb_per_s: written in the tick, acknowledged by the server.
        dirty_bytes: the dirty bytes in the cache for this server.
        dirty_limit_bytes: dirty data allowed.
        in_flight: requests sent and not answered.
        waiting: requests that wait for window or pace.
        ping_us: round trip of a ping to the server.
    """

    window: float
    tau_us: float
    ack_ewma_us: float
    send_ewma_us: float
    pt_ratio: float
    read_mb_per_s: float
    write_mb_per_s: float
    dirty_bytes: int
    dirty_limit_bytes: int
    in_flight: int
    waiting: int
    ping_us: float


class Latency(msgspec.Struct, frozen=True):
    """Latencies of requests or operations of one kind; percentiles to 1.6%.

    Attributes:
        requests: the number of requests, or operations.
        latency_ms_mean: mean.
        latency_ms_p50: median.
        latency_ms_p90: 90th percentile.
        latency_ms_p99: 99th percentile.
        latency_ms_p999: 99.9th percentile.
        latency_ms_max: the largest.
    """

    requests: int
    latency_ms_mean: float
    latency_ms_p50: float
    latency_ms_p90: float
    latency_ms_p99: float
    latency_ms_p999: float
    latency_ms_max: float


class ServerReport(msgspec.Struct, frozen=True):
    """One server over the counted time.

    Attributes:
        read_mb_per_s: the rate of reads from its device.
        write_mb_per_s: the rate of writes to its device.
        device_busy_percent: the share of the time in which the device was busy.
        device_positioning_percent: share of the time that its device spent on seeks and rotation.
        device_sequential_percent: pieces that followed the one before without positioning.
        link_in_busy_percent: the utilisation of its incoming link.
        link_out_busy_percent: the utilisation of its outgoing link.
        requests_mean: the mean number of requests at the server, over time.
    """

    read_mb_per_s: float
    write_mb_per_s: float
    device_busy_percent: float
    device_positioning_percent: float
    device_sequential_percent: float
    link_in_busy_percent: float
    link_out_busy_percent: float
    requests_mean: float


class GroupReport(msgspec.Struct, frozen=True):
    """Threads that are alike, on all clients of a group, over the counted time.

    Attributes:
        clients: the client group, counted from 0.
        threads: the thread group of its workload, counted from 0.
        moves_data: whether their steps read or write file data.
        read_mb_per_s: read.
        write_mb_per_s: written.
        operations: the number of operations: reads and writes of any size, metadata operations.
        passes: the number of passes through their steps.
    """

    clients: int
    threads: int
    moves_data: bool
    read_mb_per_s: float
    write_mb_per_s: float
    operations: int
    passes: int


class StreamSeries(msgspec.Struct, frozen=True):
    """A stream, one entry a tick of the counted time.

    Attributes:
        client: counted from 0.
        server: counted from 0.
        ticks: the stream's indicators.
    """

    client: int
    server: int
    ticks: tuple[Indicators, ...]


class ClusterOutcome(msgspec.Struct, frozen=True):
    """What a run brings. Everything is counted after the warm-up.

    Attributes:
        seed: the seed of the run.
        virtual_seconds: counted.
        events: the number of events in the whole run, warm-up included.
        requests: answered by servers.
        operations: the number of operations of threads: reads and writes of any size, metadata operations.
        throughput_mb_per_s: the throughput of all clients' threads, reading and writing (TP of Li's Table
            3.4).
        read_mb_per_s: reading alone.
        write_mb_per_s: writing alone.
        served_mb_per_s: the rate of the servers' answers: without what page caches held, with what was read
            ahead.
        cache_hit_mb_per_s: the rate at which threads read from page caches.
        throughput_while_active_mb_per_s: bytes over the time during which at least one thread waited for file
            data: what a benchmark that times its I/O alone reports (BTIO).
        throughput_per_client_mb_per_s: mean over clients and ticks (tp of Li, section 3.1.5).
        stdev_pooled_mb_per_s: standard deviation over clients and ticks together (stdev of section 3.1.5).
        stdev_total_mb_per_s: standard deviation over ticks of the total.
        jain_index: Jain's fairness index of the clients' mean throughputs (of their rates of metadata
            operations where no file data moves): 1 is fair, 1/clients is one alone.
        latency: the response time of all requests to storage servers: from being asked for to the reply, with
            the wait for the window and the pace of their stream.
        read_latency: the latency of reads.
        write_latency: the latency of writes.
        service_time: from a request's last send to its reply, as its client's controller sees it.
        operation_latency: the response time of threads' operations on file data: from their arrival, where
            they arrive at a rate, or from their begin.
        metadata_operations_per_s: operations on metadata that the metadata server has answered.
        metadata_latency: the response time of threads' operations on metadata, with the wait for the window
            and the pace of their client's stream.
        in_flight_mean: requests sent and not answered, over time.
        timeouts: requests that were sent again.
        incast_losses: transfers that lost segments in a switch port.
        tick_s: length of a tick.
        total_mb_per_s: total by tick.
        clients_mb_per_s: each client by tick.
        clients_metadata_per_s: each client's operations on metadata a second.
        groups: each thread group of each client group.
        servers: each server.
        streams: each stream, where the scenario records them.
        rules: texts of the rule sets in force, with how often each rule was used and at which means, since
            the start, a client group each; None where no rules decide.
    """

    seed: int
    virtual_seconds: float
    events: int
    requests: int
    operations: int
    throughput_mb_per_s: float
    read_mb_per_s: float
    write_mb_per_s: float
    served_mb_per_s: float
    cache_hit_mb_per_s: float
    throughput_while_active_mb_per_s: float
    throughput_per_client_mb_per_s: float
    stdev_pooled_mb_per_s: float
    stdev_total_mb_per_s: float
    jain_index: float
    latency: Latency
    read_latency: Latency
    write_latency: Latency
    service_time: Latency
    operation_latency: Latency
    metadata_operations_per_s: float
    metadata_latency: Latency
    in_flight_mean: float
    timeouts: int
    incast_losses: int
    tick_s: float
    total_mb_per_s: tuple[float, ...]
    clients_mb_per_s: tuple[tuple[float, ...], ...]
    clients_metadata_per_s: tuple[float, ...]
    groups: tuple[GroupReport, ...]
    servers: tuple[ServerReport, ...]
    streams: tuple[StreamSeries, ...] = ()
    rules: tuple[str | None, ...] = ()

    @classmethod
    def from_json(cls, text: str) -> ClusterOutcome:
        """The outcome that the simulator wrote."""
        return typed.decode(text, cls)

    def figure(self, name: str) -> float:
        """One of `FIGURES`."""
        kind, is_latency, statistic = name.partition("_ms_")
        if is_latency:
            return float(getattr(getattr(self, kind), f"latency_ms_{statistic}"))
        return float(getattr(self, _ALIASES.get(name, name)))

    def figures(self) -> dict[str, float]:
        """All of `FIGURES` by name."""
        return {name: self.figure(name) for name in FIGURES}


_ALIASES = {"stdev_mb_per_s": "stdev_pooled_mb_per_s"}

FIGURES: Mapping[str, str] = {
    "throughput_mb_per_s": "total of all clients, reading and writing",
    "stdev_mb_per_s": "deviation over clients and ticks together",
    "latency_ms_p50": "median response time of requests, with the wait for window and pace",
    "latency_ms_p99": "99th percentile of it",
    "service_time_ms_mean": "mean time from the send of a request to the reply",
    "service_time_ms_p50": "median of it",
    "service_time_ms_p99": "99th percentile of it",
    "operation_latency_ms_mean": "mean response time of operations on file data",
    "operation_latency_ms_p50": "median of it",
    "operation_latency_ms_p99": "99th percentile of it",
    "metadata_operations_per_s": "operations on metadata",
    "metadata_latency_ms_mean": "mean response time of operations on metadata",
    "metadata_latency_ms_p50": "median of it",
    "metadata_latency_ms_p99": "99th percentile of it",
    "jain_index": "fairness between clients, 1 at best",
    "read_mb_per_s": "reading alone",
    "write_mb_per_s": "writing alone",
    "served_mb_per_s": "what servers have answered for",
    "cache_hit_mb_per_s": "read out of page caches",
    "throughput_while_active_mb_per_s": "over the time with file data under way",
    "throughput_per_client_mb_per_s": "mean over clients and ticks",
    "stdev_pooled_mb_per_s": "the same as stdev_mb_per_s",
    "stdev_total_mb_per_s": "deviation of the total over ticks",
    "latency_ms_mean": "mean latency of requests",
    "in_flight_mean": "requests sent and not answered",
    "requests": "answered by servers",
    "operations": "of threads",
    "timeouts": "requests sent again",
    "incast_losses": "transfers that lost segments in a switch port",
}
"""The figures of a run that are one number, each with its meaning."""


class SeedMean(msgspec.Struct, frozen=True):
    """A mean over independent runs, which differ in their seed.

    Attributes:
        mean: the mean over the runs.
        ci_low: the lower end of Student's 95% interval; null with one run.
        ci_high: the upper end of that interval.
        runs: the number of runs.
    """

    not_in_document: ClassVar = ("runs",)

    mean: float
    ci_low: float | None
    ci_high: float | None
    runs: int


Figures = Annotated[
    Mapping[str, SeedMean], Meta(extra_json_schema={"propertyNames": {"enum": list(FIGURES)}})
]
"""Each of `FIGURES` over several runs."""


class StaticSetting(msgspec.Struct, frozen=True):
    """A static window and gap, with the figures under it.

    Attributes:
        window: the number of requests in flight of a stream.
        tau_us: the least gap between a stream's requests.
        figures: the figures over the runs, by name.
    """

    window: float
    tau_us: float
    figures: Figures


class StaticGain(msgspec.Struct, frozen=True):
    """The gain of a static setting over the scenario's own, on seeds that were not used to choose it.

    Attributes:
        gain_relative: the difference of the means over the scenario's own mean.
        gain_low: the lower end of Welch's 95% interval; null with one run on each side, or a mean of zero.
        gain_high: the upper end of that interval.
        runs_per_side: the number of runs on each side.
    """

    gain_relative: float
    gain_low: float | None
    gain_high: float | None
    runs_per_side: Count
