"""The simulated cluster beside what was published of the real one (Li, Table 3.4), and how fast it goes.

    python -m benchmarks.simulation calibration    published against simulated, best static window and gap
    python -m benchmarks.simulation windows        throughput against the window, as table and figure
    python -m benchmarks.simulation speed          time of a run, of large clusters, of a request

Every figure is the mean over seeds; nothing is kept between runs, the whole of it takes a minute.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import matplotlib

matplotlib.use("svg")

import matplotlib.pyplot as plt

from ascar.simulation import Cluster, Grid, Scenario, Swept, preset, sweep, with_settings

from .harness import table

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
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=("calibration", "windows", "speed"))
    parser.add_argument("--seeds", type=int, default=SEEDS)
    given = parser.parse_args()
    if given.part == "calibration":
        calibration(given.seeds)
    elif given.part == "windows":
        windows(given.seeds)
    else:
        speed()


def calibration(seeds: int) -> None:
    """Print published against simulated figures."""
    rows: list[list[str]] = []
    for row in ROWS:
        swept = _swept(row, Grid(WINDOWS, TAUS_US, seeds, row.figure))
        own = swept.baseline.figures[row.figure].mean
        pooled = swept.baseline.figures["stdev_total_mb_per_s"].mean
        best, gain = swept.best, swept.gain
        interval = "" if gain.low is None or gain.high is None else f" ({gain.low:+.1%} to {gain.high:+.1%})"
        rows.append(
            [
                row.name,
                f"{row.published_mb_per_s}",
                f"{own:.0f}",
                f"{own / row.published_mb_per_s - 1:+.1%}",
                f"{pooled:.0f}",
                f"{row.best_mb_per_s / row.published_mb_per_s - 1:+.0%}",
                f"{gain.relative:+.1%}{interval}",
                f"{best.window:g}",
                f"{best.tau_us / 1e3:g}",
            ]
        )
    heads = [
        "workload",
        "published MB/s",
        "simulated MB/s",
        "difference",
        "stdev over time",
        "published gain",
    ]
    table([*heads, "gain of the best static point (95%)", "its window", "its gap (ms)"], rows)


def windows(seeds: int) -> None:
    """Print throughput against the window, and draw it."""
    rows: list[list[str]] = []
    axes = plt.subplots(figsize=(7.0, 4.2), layout="constrained")[1]
    for row in ROWS:
        swept = _swept(row, Grid(WINDOWS, (0.0,), seeds, row.figure))
        means = [point.figures[row.figure].mean for point in swept.points]
        rows.append([row.name, *(f"{value:.0f}" for value in means)])
        axes.plot(WINDOWS, means, marker="o", markersize=3, label=row.name)
    axes.set_xscale("log", base=2)
    axes.set_xticks(WINDOWS, [f"{window:g}" for window in WINDOWS])
    axes.minorticks_off()
    axes.set_ylim(0)
    axes.set_xlabel("window of each stream (requests)")
    axes.set_ylabel("throughput of 5 clients, 4 servers (MB/s)")
    axes.legend(ncols=2, fontsize="small")
    plt.savefig(FIGURE, metadata={"Date": None})
    table(["workload", *(f"{window:g}" for window in WINDOWS)], rows)


def speed() -> None:
    """Print what runs and requests cost, in processor time of one thread."""
    scenario = preset("random-write")
    runs = [_run(scenario) for _ in range(50)]
    median_s = median(run.processor_s for run in runs)
    print(
        f"random-write, {scenario.duration_s:g} virtual seconds after {scenario.warmup_s:g} of warm-up: "
        f"{1e3 * median_s:.1f} ms (median of 50), {runs[0].events} events, "
        f"{runs[0].events / median_s / 1e6:.1f} million a second\n"
    )
    rows: list[list[str]] = []
    for name in ("random-write", "random-read", "sequential-write"):
        for clients, servers in ((10, 4), (100, 40), (1000, 100), (1000, 400)):
            large = with_settings(
                preset(name), [f"clients[0].count={clients}", f"servers[0].count={servers}", "duration_s=5"]
            )
            short, long = _run(large), _run(with_settings(large, ["duration_s=25"]))
            requests = long.requests - short.requests
            cost_us = 1e6 * (long.processor_s - short.processor_s) / requests
            whole_s = large.warmup_s + 25
            rows.append(
                [
                    name,
                    f"{clients:,}",
                    f"{servers}",
                    f"{requests / 20:,.0f}",
                    f"{cost_us:.2f}",
                    f"{whole_s / long.processor_s:,.0f}",
                ]
            )
    table(["workload", "clients", "servers", "requests/s", "µs a request", "times real time"], rows)


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
