"""Results of `ascar sim`."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - msgspec reads the annotations
from typing import Annotated

import msgspec
from msgspec import Meta

from ascar.results.cluster import FIGURES, Latency, ServerReport, StaticGain, StaticSetting
from ascar.results.measurement import Count

_NAMED = Meta(extra_json_schema={"propertyNames": {"enum": list(FIGURES)}})


class ClusterFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of a run, or their means over runs.

    Attributes:
        throughput_mb_per_s: the total of all clients, reading and writing.
        stdev_mb_per_s: the deviation over clients and ticks together.
        latency_ms_p50: the median response time of requests, with the wait for window and pace.
        latency_ms_p99: the 99th percentile of the response time of requests.
        service_time_ms_mean: the mean time from the send of a request to its reply.
        service_time_ms_p50: the median time from the send of a request to its reply.
        service_time_ms_p99: the 99th percentile of that time.
        operation_latency_ms_mean: the mean response time of operations on file data.
        operation_latency_ms_p50: the median response time of operations on file data.
        operation_latency_ms_p99: the 99th percentile of the response time of operations.
        metadata_operations_per_s: the rate of operations on metadata.
        metadata_latency_ms_mean: the mean response time of operations on metadata.
        metadata_latency_ms_p50: the median response time of operations on metadata.
        metadata_latency_ms_p99: the 99th percentile of the response time of operations on metadata.
        jain_index: the fairness between clients; 1 is the best.
        read_mb_per_s: the throughput of reads.
        write_mb_per_s: the throughput of writes.
        served_mb_per_s: the rate of the servers' answers.
        cache_hit_mb_per_s: the rate of reads from page caches.
        throughput_while_active_mb_per_s: the throughput over the time with file data in flight.
        throughput_per_client_mb_per_s: the mean over clients and ticks.
        stdev_pooled_mb_per_s: the same as stdev_mb_per_s.
        stdev_total_mb_per_s: the deviation of the total over ticks.
        latency_ms_mean: the mean latency of requests.
        in_flight_mean: the mean number of requests in flight.
        requests: the number of requests that servers answered.
        operations: the number of operations of threads.
        timeouts: the number of requests that were sent again.
        incast_losses: the number of transfers that lost segments in a switch port.
    """

    throughput_mb_per_s: float
    stdev_mb_per_s: float
    latency_ms_p50: float
    latency_ms_p99: float
    service_time_ms_mean: float
    service_time_ms_p50: float
    service_time_ms_p99: float
    operation_latency_ms_mean: float
    operation_latency_ms_p50: float
    operation_latency_ms_p99: float
    metadata_operations_per_s: float = 0.0
    metadata_latency_ms_mean: float = 0.0
    metadata_latency_ms_p50: float = 0.0
    metadata_latency_ms_p99: float = 0.0
    jain_index: float
    read_mb_per_s: float
    write_mb_per_s: float
    served_mb_per_s: float
    cache_hit_mb_per_s: float
    throughput_while_active_mb_per_s: float
    throughput_per_client_mb_per_s: float
    stdev_pooled_mb_per_s: float
    stdev_total_mb_per_s: float
    latency_ms_mean: float
    in_flight_mean: float
    requests: float
    operations: float
    timeouts: float
    incast_losses: float


class SimulatedRun(ClusterFigures, frozen=True, kw_only=True):
    """One simulated run.

    Attributes:
        seed: the seed of the run.
        events: the number of events in the run, warm-up included.
    """

    seed: Count
    events: Count


class StreamTicks(msgspec.Struct, frozen=True, kw_only=True):
    """A stream, which is one client with one server: each indicator by tick.

    Attributes:
        client: the client, counted from 0.
        server: the server, counted from 0.
        window: the window in force, in requests.
        tau_us: the least gap between requests in force.
        ack_ewma_us: the moving average of gaps between replies.
        send_ewma_us: the moving average of gaps between the sending times of the answered requests.
        pt_ratio: the process time over the shortest one seen.
        read_mb_per_s: the data read in the tick.
        write_mb_per_s: the data written in the tick and acknowledged by the server.
        dirty_bytes: the dirty data in the cache for this server.
        dirty_limit_bytes: the limit of dirty data.
        in_flight: the number of requests in flight.
        waiting: the number of requests that wait for window or pace.
        ping_us: the round trip of a ping to the server.
    """

    client: Count
    server: Count
    window: tuple[float, ...]
    tau_us: tuple[float, ...]
    ack_ewma_us: tuple[float, ...]
    send_ewma_us: tuple[float, ...]
    pt_ratio: tuple[float, ...]
    read_mb_per_s: tuple[float, ...]
    write_mb_per_s: tuple[float, ...]
    dirty_bytes: tuple[float, ...]
    dirty_limit_bytes: tuple[float, ...]
    in_flight: tuple[float, ...]
    waiting: tuple[float, ...]
    ping_us: tuple[float, ...]


class SimRunResult(ClusterFigures, frozen=True, kw_only=True, tag_field="schema", tag="ascar/sim-run/1"):
    """One or more runs of a simulated cluster; figures are means over the runs.

    Attributes:
        name: the name of the scenario.
        clients: the number of clients.
        servers_count: the number of servers.
        controller: the traffic controller of the clients.
        window: the initial number of requests in flight of a stream.
        tau_us: the initial gap between a stream's requests.
        warmup_s: the virtual seconds of warm-up, which do not count.
        seeds: the seed of each run.
        virtual_seconds: the counted virtual seconds of each run.
        wall_seconds: the real time of all runs together.
        events: the number of events in all runs, warm-up included.
        intervals: the 95% intervals of the means, low and high; null with one run.
        read_latency: the response time of reads in the first run.
        write_latency: the latency of writes in the first run.
        tick_s: the length of a tick.
        total_mb_per_s: the total throughput of the first run by tick.
        clients_mb_per_s: the throughput of the first run by client and tick.
        servers: the servers of the first run.
        streams: the streams of the first run; null without --streams.
        runs: the figures of each run.
        plots: the files of the plots.
    """

    name: str
    clients: Count
    servers_count: Count
    controller: str
    window: float
    tau_us: float
    warmup_s: float
    seeds: tuple[Count, ...]
    virtual_seconds: float
    wall_seconds: float
    events: Count
    intervals: Annotated[Mapping[str, tuple[float, float] | None], _NAMED]
    read_latency: Latency
    write_latency: Latency
    tick_s: float
    total_mb_per_s: tuple[float, ...]
    clients_mb_per_s: tuple[tuple[float, ...], ...]
    servers: tuple[ServerReport, ...]
    streams: tuple[StreamTicks, ...] | None
    runs: tuple[SimulatedRun, ...]
    plots: tuple[str, ...]


class ServedController(msgspec.Struct, frozen=True, kw_only=True):
    """A controller of a served cluster.

    Attributes:
        controller: the name of the controller.
        workload: the workload of its client.
    """

    controller: str
    workload: str


class SimServeResult(msgspec.Struct, frozen=True, kw_only=True, tag_field="schema", tag="ascar/sim-serve/1"):
    """A running simulated cluster; printed as soon as its controllers answer.

    Attributes:
        scenario: the name of the scenario.
        url: the address of the message server.
        connection_file: the file with which others connect; null if the server runs elsewhere.
        controllers: the controllers that answer.
    """

    scenario: str
    url: str
    connection_file: str | None
    controllers: tuple[ServedController, ...]


class BestPoint(StaticGain, frozen=True, kw_only=True):
    """The setting with the largest mean; its gain is measured on other seeds.

    Attributes:
        window: the number of requests in flight of a stream.
        tau_us: the least gap between a stream's requests.
    """

    window: float
    tau_us: float


class SweptScenario(msgspec.Struct, frozen=True, kw_only=True):
    """A scenario under static settings.

    Attributes:
        name: the name of the scenario.
        baseline: the scenario's own window and gap.
        points: the settings of the grid.
        best: the setting with the largest mean.
        events: the number of events in all runs.
    """

    name: str
    baseline: StaticSetting
    points: tuple[StaticSetting, ...]
    best: BestPoint
    events: Count


class SimSweepResult(msgspec.Struct, frozen=True, kw_only=True, tag_field="schema", tag="ascar/sim-sweep/1"):
    """A simulated cluster under static windows and gaps.

    Attributes:
        seeds: the number of runs of each setting.
        figure: the figure by which settings are compared; larger is better.
        scenarios: the scenarios with their settings.
        events: the number of events in all runs.
        wall_seconds: the real time of all runs together.
        plots: the files of the plots.
    """

    seeds: Count
    figure: Annotated[str, Meta(extra_json_schema={"enum": list(FIGURES)})]
    scenarios: tuple[SweptScenario, ...]
    events: Count
    wall_seconds: float
    plots: tuple[str, ...]
