"""A rule set drawn: its regions, and the course of a stream under it (Li, figure 3.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ascar.analysis.drawing import COLOURS, on_white, write_figure
from ascar.rules import INFINITY
from ascar.sharp.words import window_after

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from ascar.sharp import RuleSet
    from ascar.simulation import ClusterOutcome

_WINDOW = 8.0  # at which a rule's change of the window is shown
_NUMBERED_MAX = 40
_RATIO = 2
_PLANES = ((0, 1), (0, _RATIO), (1, _RATIO))
"""Pairs of ack_ewma, send_ewma and pt_ratio that are drawn."""
_SCALES = (1_000.0, 1_000.0, 100.0)
_LABELS = ("ack EWMA (ms)", "send EWMA (ms)", "PT ratio")


def draw_rules(rules: RuleSet, path: Path) -> Path:
    """Draw the regions, coloured by what rules do to the window (above) and by their gap (below).

    The space has three dimensions at least; shown are its projections on the three planes of ack_ewma,
    send_ewma and pt_ratio. Where several rules lie behind each other, that is drawn which was used most, or,
    where nothing was counted, which reaches farthest along what is projected away.

    Raises:
        WorkError: the file cannot be written.
    """
    with on_white():
        return write_figure(_regions(rules), path)


def draw_stream(outcome: ClusterOutcome, stream: int, path: Path) -> Path:
    """Draw the course of one stream: EWMAs, window, queue, throughput, PT ratio and gap over time.

    Raises:
        WorkError: the file cannot be written.
    """
    with on_white():
        return write_figure(_course(outcome, stream), path)


def _regions(rules: RuleSet) -> Figure:
    from matplotlib.figure import Figure as NewFigure
    from matplotlib.ticker import FuncFormatter, NullFormatter

    windows = np.array([window_after(one.action, _WINDOW) - _WINDOW for one in rules.rules])
    taus = np.array([one.action.tau_us / 1_000 for one in rules.rules])
    most = max(float(np.abs(windows).max()), 0.01)
    figure = NewFigure(figsize=(9.0, 5.8), layout="constrained")
    rows = figure.subplots(2, len(_PLANES), squeeze=False)
    for panels, values, scale, label in (
        (rows[0], windows, ("RdBu", -most, most), f"change of a window of {_WINDOW:g} (requests)"),
        (rows[1], taus, ("viridis", 0.0, max(float(taus.max()), 0.01)), "gap between requests (ms)"),
    ):
        name, low, high = scale
        mesh = None
        for axes, (across, up) in zip(panels, _PLANES, strict=True):
            at, over = _edges(rules, across), _edges(rules, up)
            numbers = _numbers(rules, (across, up), at, over)
            mesh = axes.pcolormesh(
                at / _SCALES[across], over / _SCALES[up], values[numbers], cmap=name, vmin=low, vmax=high
            )
            axes.set_xscale("log")
            axes.set_yscale("log")
            for axis in (axes.xaxis, axes.yaxis):
                axis.set_major_formatter(FuncFormatter(_plain))
                axis.set_minor_formatter(NullFormatter())
            axes.set_xlabel(_LABELS[across])
            axes.set_ylabel(_LABELS[up])
            axes.grid(visible=False)
            _outlined(axes, numbers, at / _SCALES[across], over / _SCALES[up])
            _labelled(axes, numbers, at / _SCALES[across], over / _SCALES[up])
            _used(axes, rules, (across, up))
        assert mesh is not None, "there are planes"
        figure.colorbar(mesh, ax=list(panels), label=label, location="right", shrink=0.9)
    return figure


def _plain(value: float, _: int | None) -> str:
    return f"{value:g}"


def _edges(rules: RuleSet, axis: int) -> NDArray[np.float64]:
    """Edges of cells along an indicator: every bound of a rule, and a margin around."""
    regions = [rule.region[axis] for rule in rules.rules]
    bounds = {float(edge) for at in regions for edge in (at.lo, at.hi)}
    means = {
        float(rule.observed.means[axis])
        for rule in rules.rules
        if rule.observed is not None and rule.observed.used_times
    }
    finite = {edge for edge in bounds if 0 < edge < INFINITY}
    shown = finite | {mean for mean in means if mean > 0}
    if axis == _RATIO:
        low, high = 100.0, max([2 * edge for edge in shown], default=1_000.0)
    else:
        low = min([edge / 4 for edge in shown], default=100.0)
        high = max([4 * edge for edge in shown], default=1e6)
    inside = sorted(edge for edge in finite if low < edge < high)
    return np.array([low, *inside, max(high, low * 1.1)])


def _numbers(
    rules: RuleSet, plane: tuple[int, int], at: NDArray[np.float64], over: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Which rule is seen in each cell of a plane: (up, across)."""
    across, up = np.sqrt(at[:-1] * at[1:]), np.sqrt(over[:-1] * over[1:])
    order = sorted(range(len(rules.rules)), key=lambda number: _weight(rules, number, plane), reverse=True)
    return np.array([[_seen(rules, order, plane, (x, y)) for x in across] for y in up], np.int64)


def _seen(rules: RuleSet, order: list[int], plane: tuple[int, int], point: tuple[float, float]) -> int:
    """The first one in this order that holds somewhere behind a point of the plane."""
    for number in order:
        region = rules.rules[number].region
        if all(region[axis].lo <= value < region[axis].hi for axis, value in zip(plane, point, strict=True)):
            return number
    raise AssertionError("rules cover the space")


def _weight(rules: RuleSet, number: int, plane: tuple[int, int]) -> tuple[float, float, int]:
    """What is drawn before the others: what was used most, what reaches farthest, what counts first."""
    rule = rules.rules[number]
    used = 0 if rule.observed is None else rule.observed.used_times
    behind = [at for axis, at in enumerate(rule.region) if axis not in plane]
    depth = sum(float(np.log((at.hi + 1) / (at.lo + 1))) for at in behind)
    return used, depth, -number


def _outlined(
    axes: Axes, numbers: NDArray[np.int64], acks: NDArray[np.float64], ratios: NDArray[np.float64]
) -> None:
    """A line wherever two neighbouring cells follow different rules."""
    for row in range(numbers.shape[0]):
        for column in range(numbers.shape[1] - 1):
            if numbers[row, column] != numbers[row, column + 1]:
                axes.plot([acks[column + 1]] * 2, ratios[row : row + 2], color=COLOURS["ink"], lw=0.6)
    for row in range(numbers.shape[0] - 1):
        for column in range(numbers.shape[1]):
            if numbers[row, column] != numbers[row + 1, column]:
                axes.plot(acks[column : column + 2], [ratios[row + 1]] * 2, color=COLOURS["ink"], lw=0.6)


def _used(axes: Axes, rules: RuleSet, plane: tuple[int, int]) -> None:
    """A dot where each rule was used on average, its area the share of uses."""
    seen = [one.observed for one in rules.rules if one.observed is not None and one.observed.used_times]
    uses = sum(one.used_times for one in seen)
    for one in seen:
        at = [one.means[axis] / _SCALES[axis] for axis in plane]
        area = 10 + 190 * one.used_times / uses
        axes.scatter(*at, s=area, color="white", edgecolor=COLOURS["ink"], lw=0.8, zorder=3)


def _labelled(
    axes: Axes, numbers: NDArray[np.int64], acks: NDArray[np.float64], ratios: NDArray[np.float64]
) -> None:
    """The number of each rule in the largest of its cells."""
    found = np.unique(numbers)
    if len(found) > _NUMBERED_MAX:
        return
    widths = np.log(ratios[1:] / ratios[:-1])[:, None] * np.log(acks[1:] / acks[:-1])[None, :]
    for number in found:
        row, column = np.unravel_index(np.argmax(np.where(numbers == number, widths, 0)), numbers.shape)
        x = float(np.sqrt(acks[column] * acks[column + 1]))
        y = float(np.sqrt(ratios[row] * ratios[row + 1]))
        plate = {"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 1.2}
        axes.text(
            x, y, str(number + 1), ha="center", va="center", fontsize=7, color=COLOURS["ink"], bbox=plate
        )


def _course(outcome: ClusterOutcome, stream: int) -> Figure:
    from matplotlib.figure import Figure as NewFigure

    chosen = outcome.streams[stream]
    ticks = chosen.ticks
    at = outcome.tick_s * (1 + np.arange(len(ticks)))
    panels: tuple[tuple[str, Iterable[tuple[str, list[float]]]], ...] = (
        (
            "EWMA (ms)",
            (
                ("ack", [one.ack_ewma_us / 1_000 for one in ticks]),
                ("send", [one.send_ewma_us / 1_000 for one in ticks]),
            ),
        ),
        ("window (requests)", (("", [one.window for one in ticks]),)),
        (
            "requests",
            (
                ("in flight", [float(one.in_flight) for one in ticks]),
                ("waiting", [float(one.waiting) for one in ticks]),
            ),
        ),
        ("throughput (MB/s)", (("", [one.read_mb_per_s + one.write_mb_per_s for one in ticks]),)),
        ("PT ratio", (("", [one.pt_ratio for one in ticks]),)),
        ("tau (ms)", (("", [one.tau_us / 1_000 for one in ticks]),)),
    )
    figure = NewFigure(figsize=(7.4, 8.6), layout="constrained")
    rows = figure.subplots(len(panels), 1, sharex=True)
    for axes, (label, lines) in zip(rows, panels, strict=True):
        for (name, series), colour in zip(lines, (COLOURS["best"], COLOURS["default"]), strict=False):
            axes.plot(at, series, lw=1.1, color=colour, label=name or None)
            if name:
                axes.legend(loc="upper right", ncols=2)
        axes.set_ylabel(label)
        axes.set_ylim(bottom=0)
    rows[0].set_title(f"client {chosen.client}, server {chosen.server}", fontsize=9, loc="left")
    rows[-1].set_xlabel("virtual time (s)")
    return figure
