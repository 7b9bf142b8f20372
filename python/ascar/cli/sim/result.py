"""What simulated runs brought, as tables for people and as a document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ascar.render import number
from ascar.results.simulation import SimRunResult, SimulatedRun, StreamTicks
from ascar.simulation import INDICATORS, spread_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from rich.console import Console

    from ascar.simulation import ClusterOutcome, Scenario, SeedMean, StreamSeries

_COUNTS = ("requests", "operations", "timeouts", "incast_losses")
_LEFT_OUT_AT_ZERO = (*_COUNTS, "metadata_operations_per_s", "metadata_latency_ms_p99")
_ROWS = (
    ("throughput", "throughput_mb_per_s", "MB/s", "of all clients"),
    ("  reading", "read_mb_per_s", "MB/s", ""),
    ("  writing", "write_mb_per_s", "MB/s", ""),
    ("  while active", "throughput_while_active_mb_per_s", "MB/s", "over the time with file data under way"),
    ("  per client", "throughput_per_client_mb_per_s", "MB/s", "mean over clients and ticks"),
    ("deviation, pooled", "stdev_pooled_mb_per_s", "MB/s", "over clients and ticks together"),
    ("deviation, total", "stdev_total_mb_per_s", "MB/s", "of the total over ticks"),
    ("latency, median", "latency_ms_p50", "ms", "of requests, with the wait for window and pace"),
    ("latency, 99%", "latency_ms_p99", "ms", ""),
    ("  service time, 99%", "service_time_ms_p99", "ms", "from the send to the reply"),
    ("  operations, 99%", "operation_latency_ms_p99", "ms", ""),
    ("metadata operations", "metadata_operations_per_s", "/s", "answered by the metadata server"),
    ("  latency, 99%", "metadata_latency_ms_p99", "ms", "with the wait for window and pace"),
    ("fairness", "jain_index", "", "Jain's index, 1 at best"),
    ("in flight", "in_flight_mean", "", "requests sent and not answered"),
    ("time-outs", "timeouts", "", "requests sent again"),
    ("incast losses", "incast_losses", "", "transfers that lost segments in a switch port"),
)
_LOOP = {
    True: "on file data, from their arrival",
    False: "on file data, in a closed loop: who waits asks for nothing meanwhile",
}
_SERVERS_SHOWN = 16


def result_of(
    scenario: Scenario, outcomes: Sequence[ClusterOutcome], wall_s: float, plots: Sequence[Path]
) -> SimRunResult:
    """The result of runs of a scenario; series, servers and streams are the first run's."""
    first, spread = outcomes[0], spread_of(outcomes)
    control = scenario.control
    return SimRunResult(
        name=scenario.name,
        clients=scenario.client_count,
        servers_count=scenario.server_count,
        controller=control.controller,
        window=control.window,
        tau_us=control.tau_us,
        warmup_s=scenario.warmup_s,
        seeds=tuple(one.seed for one in outcomes),
        **{name: _plain(name, one, len(outcomes)) for name, one in spread.items()},
        virtual_seconds=first.virtual_seconds,
        wall_seconds=wall_s,
        events=sum(one.events for one in outcomes),
        intervals={name: _interval(one) for name, one in spread.items()},
        read_latency=first.read_latency,
        write_latency=first.write_latency,
        tick_s=first.tick_s,
        total_mb_per_s=first.total_mb_per_s,
        clients_mb_per_s=first.clients_mb_per_s,
        servers=first.servers,
        streams=tuple(_columns(one) for one in first.streams) if scenario.record_streams else None,
        runs=tuple(
            SimulatedRun(seed=one.seed, events=one.events, **_whole(one.figures())) for one in outcomes
        ),
        plots=tuple(str(path) for path in plots),
    )


def print_run(
    console: Console, scenario: Scenario, outcomes: Sequence[ClusterOutcome], wall_s: float
) -> None:
    """Tables."""
    from rich.table import Table

    first, spread = outcomes[0], spread_of(outcomes)
    console.print(_headline(scenario, len(outcomes)), soft_wrap=True, markup=False)
    console.print(
        speed_line(first.virtual_seconds * len(outcomes), sum(one.events for one in outcomes), wall_s)
    )
    console.print()
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column()
    table.add_column(justify="right")
    table.add_column()
    table.add_column(style="dim")
    for label, name, unit, note in _ROWS:
        if name in _LEFT_OUT_AT_ZERO and not spread[name].mean:
            continue
        said = _LOOP[scenario.is_open] if name == "operation_latency_ms_p99" else note
        table.add_row(label, value(spread[name]), unit, said)
    console.print(table)
    console.print()
    console.print(_servers(first))
    if first.streams:
        console.print()
        console.print(_streams(first.streams))
    if len(outcomes) == 1:
        console.print("\none run, no intervals: --runs 10 gives them", style="dim")


def speed_line(virtual_s: float, events: int, wall_s: float) -> str:
    """How fast it was simulated."""
    wall_s = max(wall_s, 1e-9)
    return (
        f"{number(virtual_s)} s of virtual time in {wall_s:.3g} s; {events:,} events, "
        f"{number(events / wall_s, 3)} a second"
    )


def value(one: SeedMean) -> str:
    """A mean with its interval, where there is one."""
    text = number(one.mean)
    if one.ci_low is None or one.ci_high is None:
        return text
    return f"{text} [{number(one.ci_low)}, {number(one.ci_high)}]"


def _interval(one: SeedMean) -> tuple[float, float] | None:
    return None if one.ci_low is None or one.ci_high is None else (one.ci_low, one.ci_high)


def _plain(name: str, one: SeedMean, runs: int) -> float | int:
    return int(one.mean) if runs == 1 and name in _COUNTS else one.mean


def _whole(figures: Mapping[str, float]) -> dict[str, float | int]:
    return {name: int(one) if name in _COUNTS else one for name, one in figures.items()}


def _columns(series: StreamSeries) -> StreamTicks:
    columns = {name: tuple(getattr(tick, name) for tick in series.ticks) for name in INDICATORS}
    return StreamTicks(client=series.client, server=series.server, **columns)


def _headline(scenario: Scenario, runs: int) -> str:
    text = f": {scenario.description}" if scenario.description else ""
    control = scenario.control
    how = f"window {control.window:g}" + (f", tau {control.tau_us:g} us" if control.tau_us else "")
    ruled = how if control.controller == "fixed" else f"{control.controller}, {how} at first"
    many = "1 run" if runs == 1 else f"{runs} runs, means [95% intervals]"
    return (
        f"{scenario.name}{text}\n"
        f"{scenario.client_count} clients, {scenario.server_count} servers; {ruled}; {many}"
    )


def _servers(outcome: ClusterOutcome) -> Any:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("server")
    for heading in (
        "read MB/s", "write MB/s", "device busy", "positioning", "in sequence", "link in", "link out",
        "requests there",
    ):  # fmt: skip
        table.add_column(heading, justify="right")
    for index, one in enumerate(outcome.servers[:_SERVERS_SHOWN]):
        shares = (
            one.device_busy_percent, one.device_positioning_percent, one.device_sequential_percent,
            one.link_in_busy_percent, one.link_out_busy_percent,
        )  # fmt: skip
        table.add_row(
            str(index),
            number(one.read_mb_per_s),
            number(one.write_mb_per_s),
            *(f"{share:.0f}%" for share in shares),
            number(one.requests_mean, 3),
        )
    if len(outcome.servers) > _SERVERS_SHOWN:
        table.add_row("...", f"{len(outcome.servers) - _SERVERS_SHOWN} more: --json has them")
    return table


def _streams(series: Sequence[StreamSeries]) -> Any:
    """The last tick of each stream."""
    from rich.table import Table

    table = Table(
        title="streams at the end", title_justify="left", title_style="bold", box=None, pad_edge=False
    )
    for heading in ("client", "server", *(name.replace("_", " ") for name in INDICATORS)):
        table.add_column(heading, justify="right")
    for one in series[: 4 * _SERVERS_SHOWN]:
        if one.ticks:
            last = (getattr(one.ticks[-1], name) for name in INDICATORS)
            table.add_row(str(one.client), str(one.server), *(number(item, 3) for item in last))
    if len(series) > 4 * _SERVERS_SHOWN:
        table.add_row("...", "", f"{len(series) - 4 * _SERVERS_SHOWN} more: --json has them")
    return table
