"""Results of `ascar sim`."""

from __future__ import annotations

from typing import Literal

import msgspec

from ascar.results.measurement import Count


class SimulatedIntervals(msgspec.Struct, frozen=True, kw_only=True):
    """95% intervals of the means, low and high; null with one run."""

    throughput_mb_per_s: tuple[float, ...] | None
    stdev_mb_per_s: tuple[float, ...] | None
    latency_ms_p50: tuple[float, ...] | None
    latency_ms_p99: tuple[float, ...] | None
    jain_index: tuple[float, ...] | None
    read_mb_per_s: tuple[float, ...] | None
    write_mb_per_s: tuple[float, ...] | None
    served_mb_per_s: tuple[float, ...] | None
    cache_hit_mb_per_s: tuple[float, ...] | None
    throughput_while_active_mb_per_s: tuple[float, ...] | None
    throughput_per_client_mb_per_s: tuple[float, ...] | None
    stdev_pooled_mb_per_s: tuple[float, ...] | None
    stdev_total_mb_per_s: tuple[float, ...] | None
    latency_ms_mean: tuple[float, ...] | None
    in_flight_mean: tuple[float, ...] | None
    requests: tuple[float, ...] | None
    operations: tuple[float, ...] | None
    timeouts: tuple[float, ...] | None
    incast_losses: tuple[float, ...] | None


class LatencySummary(msgspec.Struct, frozen=True, kw_only=True):
    """Of the first run, as all that follows but runs."""

    requests: Count
    latency_ms_mean: float
    latency_ms_p50: float
    latency_ms_p90: float
    latency_ms_p99: float
    latency_ms_p999: float
    latency_ms_max: float


class ServerSeries(msgspec.Struct, frozen=True, kw_only=True):
    """A server, each indicator by tick.

    Attributes:
        read_mb_per_s: from its device.
        write_mb_per_s: to its device.
        device_positioning_percent: share of the time spent on seeks and rotation.
        device_sequential_percent: pieces that followed the one before.
        requests_mean: at the server, over time.
    """

    read_mb_per_s: float
    write_mb_per_s: float
    device_busy_percent: float
    device_positioning_percent: float
    device_sequential_percent: float
    link_in_busy_percent: float
    link_out_busy_percent: float
    requests_mean: float


class StreamSeries(msgspec.Struct, frozen=True, kw_only=True):
    """A client and a server, each indicator by tick."""

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


class SimulatedRun(msgspec.Struct, frozen=True, kw_only=True):
    """One simulated run.

    Attributes:
        throughput_mb_per_s: total of all clients, reading and writing.
        stdev_mb_per_s: deviation over clients and ticks together.
        latency_ms_p50: median latency of requests.
        latency_ms_p99: 99th percentile of it.
        jain_index: fairness between clients, 1 at best.
        read_mb_per_s: reading alone.
        write_mb_per_s: writing alone.
        served_mb_per_s: what servers have answered for.
        cache_hit_mb_per_s: read out of page caches.
        throughput_while_active_mb_per_s: over the time with file data under way.
        throughput_per_client_mb_per_s: mean over clients and ticks.
        stdev_pooled_mb_per_s: the same as stdev_mb_per_s.
        stdev_total_mb_per_s: deviation of the total over ticks.
        latency_ms_mean: mean latency of requests.
        in_flight_mean: requests sent and not answered.
        requests: answered by servers.
        operations: of threads.
        timeouts: requests sent again.
        incast_losses: transfers that lost segments in a switch port.
    """

    seed: Count
    events: Count
    throughput_mb_per_s: float
    stdev_mb_per_s: float
    latency_ms_p50: float
    latency_ms_p99: float
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


class SimRunResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/sim-run/1",
):
    """What one or more runs of a simulated cluster brought; figures are means over the runs.

    Attributes:
        name: of the scenario.
        window: requests in flight of a stream, at first.
        tau_us: least gap between a stream's requests, at first.
        warmup_s: virtual seconds before anything is counted.
        seeds: one a run.
        throughput_mb_per_s: total of all clients, reading and writing.
        stdev_mb_per_s: deviation over clients and ticks together.
        latency_ms_p50: median latency of requests.
        latency_ms_p99: 99th percentile of it.
        jain_index: fairness between clients, 1 at best.
        read_mb_per_s: reading alone.
        write_mb_per_s: writing alone.
        served_mb_per_s: what servers have answered for.
        cache_hit_mb_per_s: read out of page caches.
        throughput_while_active_mb_per_s: over the time with file data under way.
        throughput_per_client_mb_per_s: mean over clients and ticks.
        stdev_pooled_mb_per_s: the same as stdev_mb_per_s.
        stdev_total_mb_per_s: deviation of the total over ticks.
        latency_ms_mean: mean latency of requests.
        in_flight_mean: requests sent and not answered.
        requests: answered by servers.
        operations: of threads.
        timeouts: requests sent again.
        incast_losses: transfers that lost segments in a switch port.
        virtual_seconds: counted in each run.
        wall_seconds: of all runs together.
        events: of all runs together, warm-up included.
        intervals: 95% intervals of the means, low and high; null with one run.
        read_latency: of the first run, as all that follows but runs.
        total_mb_per_s: by tick.
        clients_mb_per_s: by client and tick.
        streams: null without --streams.
    """

    name: str
    clients: Count
    servers_count: Count
    controller: str
    window: float
    tau_us: float
    warmup_s: float
    seeds: tuple[Count, ...]
    throughput_mb_per_s: float
    stdev_mb_per_s: float
    latency_ms_p50: float
    latency_ms_p99: float
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
    virtual_seconds: float
    wall_seconds: float
    events: Count
    intervals: SimulatedIntervals
    read_latency: LatencySummary
    write_latency: LatencySummary
    tick_s: float
    total_mb_per_s: tuple[float, ...]
    clients_mb_per_s: tuple[tuple[float, ...], ...]
    servers: tuple[ServerSeries, ...]
    streams: tuple[StreamSeries, ...] | None
    runs: tuple[SimulatedRun, ...]
    plots: tuple[str, ...]


class ServedController(msgspec.Struct, frozen=True, kw_only=True):
    """A controller and its workload."""

    controller: str
    workload: str


class SimServeResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/sim-serve/1",
):
    """A simulated cluster that runs; printed as soon as its controllers answer.

    Attributes:
        url: of the message server.
        connection_file: for those who ask the controllers; null where the server runs elsewhere.
    """

    scenario: str
    url: str
    connection_file: str | None
    controllers: tuple[ServedController, ...]


class FigureMean(msgspec.Struct, frozen=True, kw_only=True):
    """A mean with its interval."""

    mean: float
    ci_low: float | None
    ci_high: float | None


class SweptFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of one point."""

    throughput_mb_per_s: FigureMean
    stdev_mb_per_s: FigureMean
    latency_ms_p50: FigureMean
    latency_ms_p99: FigureMean
    jain_index: FigureMean
    read_mb_per_s: FigureMean
    write_mb_per_s: FigureMean
    served_mb_per_s: FigureMean
    cache_hit_mb_per_s: FigureMean
    throughput_while_active_mb_per_s: FigureMean
    throughput_per_client_mb_per_s: FigureMean
    stdev_pooled_mb_per_s: FigureMean
    stdev_total_mb_per_s: FigureMean
    latency_ms_mean: FigureMean
    in_flight_mean: FigureMean
    requests: FigureMean
    operations: FigureMean
    timeouts: FigureMean
    incast_losses: FigureMean


class SweptPoint(msgspec.Struct, frozen=True, kw_only=True):
    """The scenario as it is.

    Attributes:
        window: requests in flight of a stream.
        tau_us: least gap between its requests.
    """

    window: float
    tau_us: float
    figures: SweptFigures


class BestPoint(msgspec.Struct, frozen=True, kw_only=True):
    """The point with the largest mean; its gain is that of other seeds.

    Attributes:
        gain_low: Welch's interval; null where there is none.
    """

    window: float
    tau_us: float
    gain_relative: float
    gain_low: float | None
    gain_high: float | None
    runs_per_side: Count


class SweptScenario(msgspec.Struct, frozen=True, kw_only=True):
    """A scenario with its points.

    Attributes:
        baseline: the scenario as it is.
        best: the point with the largest mean; its gain is that of other seeds.
    """

    name: str
    baseline: SweptPoint
    points: tuple[SweptPoint, ...]
    best: BestPoint
    events: Count


class SimSweepResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/sim-sweep/1",
):
    """A simulated cluster under static windows and gaps.

    Attributes:
        seeds: runs of each point.
        figure: by which points are compared, larger is better.
    """

    seeds: Count
    figure: Literal[
        "throughput_mb_per_s",
        "stdev_mb_per_s",
        "latency_ms_p50",
        "latency_ms_p99",
        "jain_index",
        "read_mb_per_s",
        "write_mb_per_s",
        "served_mb_per_s",
        "cache_hit_mb_per_s",
        "throughput_while_active_mb_per_s",
        "throughput_per_client_mb_per_s",
        "stdev_pooled_mb_per_s",
        "stdev_total_mb_per_s",
        "latency_ms_mean",
        "in_flight_mean",
        "requests",
        "operations",
        "timeouts",
        "incast_losses",
    ]
    scenarios: tuple[SweptScenario, ...]
    events: Count
    wall_seconds: float
    plots: tuple[str, ...]
