"""A sweep over static windows and gaps, as tables for people and as a document."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascar.cli.sim.result import speed_line, value
from ascar.render import estimate, percent
from ascar.results.encode import extended
from ascar.results.simulation import BestPoint, SimSweepResult, SweptScenario

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rich.console import Console

    from ascar.simulation import Grid, Swept


def result_of(found: Sequence[Swept], grid: Grid, wall_s: float, plots: Sequence[Path]) -> SimSweepResult:
    """The result of a sweep."""
    return SimSweepResult(
        seeds=grid.seeds,
        figure=grid.figure,
        scenarios=tuple(
            SweptScenario(
                name=one.scenario.name,
                baseline=one.baseline,
                points=one.points,
                best=extended(BestPoint, one.gain, window=one.best.window, tau_us=one.best.tau_us),
                events=one.events,
            )
            for one in found
        ),
        events=sum(one.events for one in found),
        wall_seconds=wall_s,
        plots=tuple(str(path) for path in plots),
    )


def print_sweep(console: Console, found: Sequence[Swept], grid: Grid, wall_s: float) -> None:
    """A table a scenario."""
    virtual_s = 0.0
    for one in found:
        _table(console, one, grid.figure)
        runs = (len(one.points) + 1) * one.best.figures["requests"].runs + 2 * one.gain.runs_per_side
        virtual_s += runs * one.scenario.duration_s
    console.print(speed_line(virtual_s, sum(one.events for one in found), wall_s))


def _table(console: Console, one: Swept, figure: str) -> None:
    from rich.table import Table

    table = Table(title=one.scenario.name, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for heading in (
        "window", "tau us", figure, "to baseline", "deviation MB/s", "median ms", "99% ms", "fairness",
    ):  # fmt: skip
        table.add_column(heading, justify="right")
    baseline = one.baseline.figures[figure].mean
    for point in (one.baseline, *one.points):
        figures = point.figures
        mean = figures[figure].mean
        table.add_row(
            f"{point.window:g}",
            f"{point.tau_us:g}",
            value(figures[figure]),
            "baseline" if point is one.baseline else percent(mean / baseline - 1) if baseline else "-",
            *(
                f"{figures[name].mean:.4g}"
                for name in ("stdev_mb_per_s", "latency_ms_p50", "latency_ms_p99", "jain_index")
            ),
            style="bold" if point is one.best else "",
        )
    console.print(table)
    gain = one.gain
    shown = estimate(gain.gain_relative, gain.gain_low, gain.gain_high)
    console.print(
        f"best: window {one.best.window:g}, tau {one.best.tau_us:g} us: {shown}"
        f" to the baseline, on {gain.runs_per_side} other seeds a side\n",
        soft_wrap=True,
    )
