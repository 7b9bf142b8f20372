"""Figures of variation between runs: Figs 6.2, 6.3, 6.4 of Cao's thesis, for any study with repetitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator, PercentFormatter

from ascar.analysis.drawing import COLOURS, Drawing, axes_of, styled
from ascar.analysis.labels import metric_label
from ascar.render import compact, in_percent, on_axis, percentage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from ascar.analysis.variation_runs import Runs
    from ascar.analysis.variation_summary import Spread

PALETTE = tuple(COLOURS[name] for name in ("best", "default", "measurement", "fill", "settle", "muted"))
"""Colours of groups; beyond them groups are grey."""
MARKERS = ("o", "s", "^", "D", "v", "P")

_WIDE = 20  # a greatest mean so many times the least asks for a logarithmic axis
_CROWDED = 8
_TICKS = (0, 0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)
_TICKS_APART = 0.07
_BOXES_MAX = 10
_BARS_MAX = 20
_DOTS_MAX = 20_000
_LABEL_MAX = 70


def label_of(runs: Runs, place: int, without: str | None = None) -> str:
    """A configuration in one line, by the parameters that configurations differ in."""
    values = runs.configuration(place)
    shown = [f"{name}={_text(values[name])}" for name in runs.varying if name in values and name != without]
    return ", ".join(shown) or "the only configuration"


def short_label(text: str, length: int = _LABEL_MAX) -> str:
    """A label that fits."""
    return text if len(text) <= length else f"{text[: length - 1]}\N{HORIZONTAL ELLIPSIS}"


def _values(runs: Runs, place: int, without: str | None = None) -> str:
    """The same without the names, as the thesis labels its axes."""
    values = runs.configuration(place)
    shown = [_text(values[name]) for name in runs.varying if name in values and name != without]
    return short_label("-".join(shown) or "all", 48)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, float) else str(value)


def scatter_figure(
    runs: Runs, spread: Spread, groups: tuple[Sequence[str], NDArray[np.intp]], by: str | None
) -> Drawing:
    """The relative range of each configuration against its mean, by group (Fig. 6.2)."""
    names, of = groups
    with styled(axes_grid_axis="both"):
        figure, axes = axes_of(3.7)
        for place, name in enumerate(names):
            mine = np.flatnonzero(of == place)
            if not len(mine):
                continue
            mine = mine[:: max(1, len(mine) * len(names) // _DOTS_MAX)]
            colour, marker = _look(place)
            axes.plot(
                np.abs(spread.mean[mine]), spread.range[mine], marker, ms=5 if len(mine) < 500 else 2.5,
                color=colour, alpha=0.65, mew=0, label=f"{name} ({int((of == place).sum())})",
            )  # fmt: skip
        scale = _range_axis(axes, spread.range)
        axes.set_xlabel(f"mean {metric_label(runs.title)} of a configuration's runs")
        axes.set_ylabel(f"relative range of the runs{scale}")
        if float(np.abs(spread.mean).max()) > _WIDE * float(np.abs(spread.mean).min()):
            log_axis(axes)
        if by is not None:
            _legend(axes, by)
    order = spread.order
    said = "; ".join(
        f"{name}: median {percentage(float(np.median(spread.range[of == place])))}"
        for place, name in enumerate(names)
        if (of == place).any()
    )
    return Drawing(
        figure,
        f"Relative range against mean of {len(runs)} configurations. {said}. The widest, "
        f"{percentage(float(spread.range[order[0]]))}: {label_of(runs, int(order[0]))}.",
    )


def across_figure(
    runs: Runs, spread: Spread, groups: tuple[Sequence[str], NDArray[np.intp]], by: str
) -> Drawing | str:
    """Bars of the range under each value of a parameter, e.g. a workload; beside them the means (Fig. 6.3).

    Those of the same configuration are side by side; the twenty that vary most.

    Returns:
        The drawing, or why there is none.
    """
    names, of = groups
    others = [name for name in runs.names if name != by]
    same: dict[tuple[object, ...], dict[int, int]] = {}
    for place, row in enumerate(runs.values.select(others).iter_rows() if others else ((),) * len(runs)):
        same.setdefault(row, {})[int(of[place])] = place
    matched = [places for places in same.values() if len(places) > 1]
    if not matched:
        return f"no configuration was measured under two values of {by}, all others being equal"
    matched.sort(key=lambda places: -max(spread.range[place] for place in places.values()))
    shown = matched[:_BARS_MAX]
    used = sorted({group for places in shown for group in places})
    if len(used) > len(PALETTE):
        return f"{by} has {len(used)} values; at most {len(PALETTE)} can be drawn side by side"
    width = 0.8 / len(used)
    with styled():
        figure, upper = axes_of(2.2 + 1.7 + 0.9)
        figure.delaxes(upper)
        upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
        for rank, group in enumerate(used):
            at = [row + (rank - (len(used) - 1) / 2) * width for row, one in enumerate(shown) if group in one]
            places = [one[group] for one in shown if group in one]
            colour, marker = _look(rank)
            upper.bar(at, spread.range[places], width=width * 0.9, color=colour, label=str(names[group]))
            lower.plot(at, np.abs(spread.mean[places]), marker, ms=5, color=colour, mew=0)
        upper.yaxis.set_major_formatter(PercentFormatter(1, decimals=None))
        upper.set_ylabel("relative range")
        lower.set_ylabel(f"mean {metric_label(runs.title)}", fontsize=8)
        lower.set_yscale("log")
        _log_labels(lower, "y")
        labels = [_values(runs, next(iter(one.values())), by) for one in shown]
        lower.set_xticks(range(len(shown)), labels, rotation=60, ha="right", fontsize=7)
        _legend(upper, by)
    medians: list[str] = []
    for group in used:
        ranges = spread.range[[one[group] for one in matched if group in one]]
        medians.append(f"{names[group]} {percentage(float(np.median(ranges)))}")
    return Drawing(
        figure,
        f"Relative ranges of the same configurations by {by}, the {len(shown)} widest of {len(matched)}. "
        f"Medians of all: {', '.join(medians)}.",
    )


def boxes_figure(runs: Runs, spread: Spread) -> Drawing:
    """Box plots of the configurations that vary most, each over its mean, every run a dot (Fig. 6.4)."""
    order = spread.order[:_BOXES_MAX]
    rng = np.random.default_rng(0)  # of the jitter only
    with styled(axes_grid_axis="x"):
        figure, axes = axes_of(0.9 + 0.42 * len(order))
        for row, place in enumerate(order):
            values = runs.scores[runs.of(int(place))] / abs(spread.mean[place])
            low, middle, high = np.percentile(values, [25, 50, 75])
            axes.plot([values.min(), values.max()], [row, row], color=COLOURS["muted"], lw=1)
            if len(values) > 3:  # of fewer a box says no more than the dots
                axes.barh(row, high - low, left=low, height=0.5, color=COLOURS["best"], alpha=0.25)
                axes.plot([middle, middle], [row - 0.25, row + 0.25], color=COLOURS["best"], lw=1.8)
            if len(values) <= 200:
                jitter = row + 0.32 + rng.uniform(-0.05, 0.05, len(values))
                axes.plot(values, jitter, "o", ms=3, color=COLOURS["default"], mew=0, alpha=0.8)
            axes.text(
                1.01, row,
                f"{percentage(float(spread.range[place]))}, mean {compact(float(spread.mean[place]))}",
                transform=axes.get_yaxis_transform(), va="center", fontsize=7.5, color=COLOURS["muted"],
            )  # fmt: skip
        labels = [
            f"{_values(runs, int(place))}  \N{MULTIPLICATION SIGN}{runs.counts[place]}" for place in order
        ]
        axes.set_yticks(range(len(order)), labels, fontsize=7.5)
        axes.set_ylim(len(order) - 0.3, -0.6)
        axes.spines["left"].set_visible(False)
        axes.tick_params(axis="y", length=0)
        axes.xaxis.set_major_formatter(PercentFormatter(1, decimals=None))
        axes.set_xlabel(f"{metric_label(runs.title)} of each run, over the mean of its configuration")
    said = "; ".join(f"{label_of(runs, int(p))}: {percentage(float(spread.range[p]))}" for p in order[:3])
    return Drawing(figure, f"Runs of the {len(order)} configurations with the widest relative range. {said}.")


def log_axis(axes: Axes, which: str = "x") -> None:
    """A logarithmic axis with labels such as "12k"."""
    (axes.set_xscale if which == "x" else axes.set_yscale)("log")
    _log_labels(axes, which)


def _range_axis(axes: Axes, ranges: NDArray[np.float64]) -> str:
    """From 0; where a few configurations hide all others, by square roots. What to add to the label."""
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=None))
    most = float(ranges.max())
    if most <= _CROWDED * float(np.median(ranges)):
        axes.set_ylim(bottom=0)
        return ""
    axes.set_yscale("function", functions=(_root, np.square))
    apart = _TICKS_APART * np.sqrt(most)
    ticks = [max(tick for tick in _TICKS if tick <= most)]
    for tick in reversed(_TICKS):
        if np.sqrt(ticks[-1]) - np.sqrt(tick) >= apart:
            ticks.append(tick)
    axes.set_yticks(ticks)
    axes.yaxis.set_major_formatter(FuncFormatter(percent_label))
    axes.set_ylim(0, most * 1.05)
    return " (square roots)"


def _log_labels(axes: Axes, which: str) -> None:
    axis = axes.xaxis if which == "x" else axes.yaxis
    low, high = axis.get_data_interval()
    subs = (1, 2, 5) if high / max(low, 1e-300) < 300 else (1,)
    axis.set_major_locator(LogLocator(10, subs=subs, numticks=12))
    axis.set_major_formatter(FuncFormatter(_number_label))
    axis.set_minor_locator(NullLocator())


def percent_label(value: float, position: int | None) -> str:  # noqa: ARG001
    """A share on an axis, with as many digits as it needs."""
    return f"{in_percent(value)}"


def _number_label(value: float, position: int | None) -> str:  # noqa: ARG001
    return on_axis(value)


def _root(ranges: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.sqrt(np.maximum(ranges, 0))


def _look(place: int) -> tuple[str, str]:
    colour = PALETTE[place] if place < len(PALETTE) else COLOURS["other"]
    return colour, MARKERS[place % len(MARKERS)]


def _legend(axes: Axes, title: str) -> None:
    axes.legend(
        title=short_label(title, 40), loc="lower left", bbox_to_anchor=(0, 1.0), ncols=6, borderaxespad=0.2,
        handlelength=1.2, alignment="left", title_fontsize=8,
    )  # fmt: skip
