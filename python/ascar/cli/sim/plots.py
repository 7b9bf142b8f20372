"""The plots of simulated runs, and their files."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from ascar.analysis.drawing import COLOURS, axes_of, on_white, write_figure

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ascar.simulation import ClusterOutcome, Scenario, StaticSetting, Swept

_LINES_MAX = 32
_CYCLE = [COLOURS[name] for name in ("best", "default", "measurement", "settle", "fill", "muted", "ink")]


def draw_run(
    scenario: Scenario, outcomes: Sequence[ClusterOutcome], directory: Path, ending: str
) -> list[Path]:
    """Draw the first run's throughput over time, and its streams where they were recorded.

    Returns:
        The files.

    Raises:
        WorkError: one cannot be written.
    """
    name, first = _safe(scenario.name), outcomes[0]
    with on_white():
        written = [write_figure(_throughput(first), directory / f"{name}-throughput.{ending}")]
        if first.streams:
            written.append(write_figure(_streams(first), directory / f"{name}-streams.{ending}"))
    return written


def draw_sweep(found: Sequence[Swept], figure: str, directory: Path, ending: str) -> list[Path]:
    """Draw a figure of the runs against the window, a plot a scenario and a line a gap.

    Returns:
        The files.

    Raises:
        WorkError: one cannot be written.
    """
    with on_white():
        return [
            write_figure(_curves(one, figure), directory / f"{_safe(one.scenario.name)}-window.{ending}")
            for one in found
        ]


def _throughput(outcome: ClusterOutcome) -> Figure:
    figure, axes = axes_of()
    at = outcome.tick_s * (1 + np.arange(len(outcome.total_mb_per_s)))
    for index, series in enumerate(outcome.clients_mb_per_s[:_LINES_MAX]):
        label = "each client" if index == 0 else None
        axes.plot(at, series, color=COLOURS["other"], lw=0.8, label=label)
    axes.plot(at, outcome.total_mb_per_s, color=COLOURS["best"], lw=1.6, label="all clients")
    axes.set_ylim(bottom=0)
    _labelled(figure, axes, "virtual time (s)", "throughput (MB/s)")
    return figure


def _streams(outcome: ClusterOutcome) -> Figure:
    """Window, pace and throughput of each stream over time."""
    from matplotlib.figure import Figure as NewFigure

    panels = (
        ("window", "window (requests)"),
        ("tau_us", "tau (us)"),
        ("ack_ewma_us", "ack EWMA (us)"),
        ("pt_ratio", "PT ratio"),
        ("in_flight", "in flight (requests)"),
    )
    figure = NewFigure(figsize=(7.4, 8.0), layout="constrained")
    rows = figure.subplots(len(panels), 1, sharex=True)
    for axes, (name, label) in zip(rows, panels, strict=True):
        for index, stream in enumerate(outcome.streams[:_LINES_MAX]):
            at = outcome.tick_s * (1 + np.arange(len(stream.ticks)))
            series = [getattr(tick, name) for tick in stream.ticks]
            axes.plot(at, series, lw=0.8, color=_CYCLE[index % len(_CYCLE)])
        axes.set_ylabel(label)
    rows[-1].set_xlabel("virtual time (s)")
    return figure


def _curves(one: Swept, name: str) -> Figure:
    figure, axes = axes_of()
    taus = dict.fromkeys(point.tau_us for point in one.points)
    for index, tau_us in enumerate(taus):
        line = [point for point in one.points if point.tau_us == tau_us]
        _curve(axes, line, name, _CYCLE[index % len(_CYCLE)])
    own = one.baseline
    label, colour = "as the scenario is", COLOURS["ink"]
    axes.plot([own.window], [own.figures[name].mean], "o", color=colour, mfc="none", ms=8, label=label)
    if min(point.window for point in one.points) > 0:
        windows = sorted({point.window for point in one.points})
        axes.set_xscale("log", base=2)
        axes.set_xticks(windows, [f"{window:g}" for window in windows])
        axes.minorticks_off()
    axes.set_ylim(bottom=0)
    _labelled(figure, axes, "window of a stream (requests)", name)
    axes.set_title(one.scenario.name, fontsize=9, loc="left")
    return figure


def _curve(axes: Axes, line: Sequence[StaticSetting], name: str, colour: str) -> None:
    windows = [point.window for point in line]
    figures = [point.figures[name] for point in line]
    label = f"tau {line[0].tau_us:g} us"
    axes.plot(windows, [one.mean for one in figures], color=colour, marker=".", lw=1.4, label=label)
    low = [one.mean if one.ci_low is None else one.ci_low for one in figures]
    high = [one.mean if one.ci_high is None else one.ci_high for one in figures]
    axes.fill_between(windows, low, high, color=colour, alpha=0.2, lw=0)


def _labelled(figure: Figure, axes: Axes, across: str, up: str) -> None:
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    figure.legend(loc="outside upper right", ncols=4)


def _safe(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name)[:80].strip(".") or "scenario"
