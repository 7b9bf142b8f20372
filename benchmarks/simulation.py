"""The simulated cluster beside what was published of the real one (Li, Table 3.4), and how fast it goes.

    python -m benchmarks.simulation calibration    published against simulated, best static window and gap
    python -m benchmarks.simulation windows        throughput against the window, as table and figure
    python -m benchmarks.simulation speed          time of a run, of large clusters, of a request

Every figure is the mean over seeds. `--budget` and the other options of all benchmarks hold.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import matplotlib

matplotlib.use("svg")

import matplotlib.pyplot as plt

from ascar.simulation import Cluster, Grid, Scenario, Swept, preset, sweep, with_settings

from .harness import Benchmark, Piece, table

SEEDS = 10
WINDOWS = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 12.0, 16.0, 32.0, 64.0)
TAUS_US = (0.0, 10_000.0, 20_000.0, 30_000.0, 40_000.0, 60_000.0, 80_000.0)
FIGURE = Path(__file__).parents[1] / "docs" / "algorithms" / "simulation-windows.svg"


@dataclass(frozen=True, slots=True)
class Row:
    """A row of Table 3.4: throughput without control and under the best rules, in MB/s."""

    name: str
    published_mb_per_s: int
    best_mb_per_s: int
    figure: str = "throughput_mb_per_s"


ROWS = (
    Row("sequential-write", 421, 428),
    Row("sequential-read", 445, 452),
    Row("random-write", 219, 273),
    Row("random-read", 238, 244),
    Row("random-shared", 48, 50),
    Row("fileserver", 358, 414),
    Row("btio-b", 116, 150, "throughput_while_active_mb_per_s"),
    Row("btio-c", 119, 160, "throughput_while_active_mb_per_s"),
)


def main() -> None:
    """Do one part."""
    parser = Benchmark.parser(__doc__ or "", "10min")
    parser.add_argument("part", choices=("calibration", "windows", "speed"))
    parser.add_argument("--seeds", type=int, default=SEEDS)
    given = parser.parse_args()
    benchmark = Benchmark.of(given)
    if given.part == "calibration":
        calibration(benchmark, given.seeds)
    elif given.part == "windows":
        windows(benchmark, given.seeds)
    else:
        speed(benchmark)


def calibration(benchmark: Benchmark, seeds: int) -> None:
    """Print published against simulated figures."""
    found = benchmark.run(
        Piece(f"calibration {row.name}, {seeds} seeds", partial(_calibrated, row, seeds)) for row in ROWS
    )
    heads = ["workload", "published MB/s", "simulated MB/s", "difference", "stdev over time"]
    heads += ["published gain", "gain of the best static point (95%)", "its window", "its gap (ms)"]
    table(heads, [one["cells"] for one in found.values()])


def _calibrated(row: Row, seeds: int) -> dict[str, Any]:
    """A row's line."""
    swept = _swept(row, Grid(WINDOWS, TAUS_US, seeds, row.figure))
    own = swept.baseline.figures[row.figure].mean
    pooled = swept.baseline.figures["stdev_total_mb_per_s"].mean
    best, gain = swept.best, swept.gain
    interval = (
        ""
        if gain.gain_low is None or gain.gain_high is None
        else f" ({gain.gain_low:+.1%} to {gain.gain_high:+.1%})"
    )
    cells = [
        row.name,
        f"{row.published_mb_per_s}",
        f"{own:.0f}",
        f"{own / row.published_mb_per_s - 1:+.1%}",
        f"{pooled:.0f}",
        f"{row.best_mb_per_s / row.published_mb_per_s - 1:+.0%}",
        f"{gain.gain_relative:+.1%}{interval}",
        f"{best.window:g}",
        f"{best.tau_us / 1e3:g}",
    ]
    return {"cells": cells}


def windows(benchmark: Benchmark, seeds: int) -> None:
    """Print throughput against the window, and draw it."""
    keys = {row.name: f"windows {row.name}, {seeds} seeds" for row in ROWS}
    found = benchmark.run(Piece(keys[row.name], partial(_by_window, row, seeds)) for row in ROWS)
    means = {name: found[key]["means"] for name, key in keys.items() if key in found}
    axes = plt.subplots(figsize=(7.0, 4.2), layout="constrained")[1]
    for name, values in means.items():
        axes.plot(WINDOWS, values, marker="o", markersize=3, label=name)
    axes.set_xscale("log", base=2)
    axes.set_xticks(WINDOWS, [f"{window:g}" for window in WINDOWS])
    axes.minorticks_off()
    axes.set_ylim(0)
    axes.set_xlabel("window of each stream (requests)")
    axes.set_ylabel("throughput of 5 clients, 4 servers (MB/s)")
    axes.legend(ncols=2, fontsize="small")
    if len(means) == len(ROWS):
        plt.savefig(FIGURE, metadata={"Date": None})
    heads = ["workload", *(f"{window:g}" for window in WINDOWS)]
    table(heads, [[name, *(f"{value:.0f}" for value in values)] for name, values in means.items()])


def _by_window(row: Row, seeds: int) -> dict[str, Any]:
    swept = _swept(row, Grid(WINDOWS, (0.0,), seeds, row.figure))
    return {"means": [point.figures[row.figure].mean for point in swept.points]}


def speed(benchmark: Benchmark) -> None:
    """Print what runs and requests cost, in processor time of one thread."""
    sizes = [
        (name, clients, servers)
        for name in ("random-write", "random-read", "sequential-write")
        for clients, servers in ((10, 4), (100, 40), (1000, 100), (1000, 400))
    ]
    pieces = [Piece(f"speed {name}, {n} x {m}", partial(_costs, name, n, m)) for name, n, m in sizes]
    found = benchmark.run([Piece("speed, one run", _one_run), *pieces])
    if one := found.pop("speed, one run", None):
        scenario = preset("random-write")
        print(
            f"random-write, {scenario.duration_s:g} virtual seconds after {scenario.warmup_s:g} of warm-up: "
            f"{1e3 * one['processor_s']:.1f} ms (median of 50), {one['events']} events, "
            f"{one['events'] / one['processor_s'] / 1e6:.1f} million a second\n"
        )
    heads = ["workload", "clients", "servers", "requests/s", "µs a request", "times real time"]
    table(heads, [one["cells"] for one in found.values()])


def _one_run() -> dict[str, Any]:
    runs = [_run(preset("random-write")) for _ in range(50)]
    return asdict(runs[0]) | {"processor_s": median(run.processor_s for run in runs)}


def _costs(name: str, clients: int, servers: int) -> dict[str, Any]:
    """A request of a large cluster: the difference of a long run and a short one."""
    counts = [f"clients[0].count={clients}", f"servers[0].count={servers}", "duration_s=5"]
    large = with_settings(preset(name), counts)
    short, long = _run(large), _run(with_settings(large, ["duration_s=25"]))
    requests = long.requests - short.requests
    cost_us = 1e6 * (long.processor_s - short.processor_s) / requests
    times = (large.warmup_s + 25) / long.processor_s
    rates = [f"{requests / 20:,.0f}", f"{cost_us:.2f}", f"{times:,.0f}"]
    return {"cells": [name, f"{clients:,}", f"{servers}", *rates]}


@dataclass(frozen=True, slots=True)
class Spent:
    """What a run did, and the processor time of building and running it on one thread."""

    processor_s: float
    requests: int
    events: int


def _run(scenario: Scenario) -> Spent:
    started = time.thread_time()
    cluster = Cluster(scenario)
    while not cluster.finished:
        cluster.advance()
    spent_s = time.thread_time() - started
    outcome = cluster.outcome()
    return Spent(spent_s, outcome.requests, outcome.events)


def _swept(row: Row, grid: Grid) -> Swept:
    return sweep(preset(row.name), grid)


if __name__ == "__main__":
    main()
