"""Figures of variation within runs and of latencies: Figs 6.1 and 6.7 to 6.11 of Cao's thesis."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.ticker import FuncFormatter, NullLocator, PercentFormatter

from ascar.analysis.drawing import COLOURS, Drawing, axes_of, plain_numbers, styled
from ascar.analysis.labels import metric_label
from ascar.analysis.variation import STRONG_CORRELATION, throughput_normalized
from ascar.analysis.variation_figures import MARKERS, PALETTE, label_of, log_axis, percent_label, short_label
from ascar.analysis.variation_time import cumulative, throughput_n
from ascar.render import percentage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from ascar.analysis.variation_latency import Correlated, Percentiles
    from ascar.analysis.variation_runs import Runs
    from ascar.analysis.variation_time import RunLength, Windowed
    from ascar.results.measurement import Series

_RUNS_MAX = 12
_PANELS_MAX = 4
_OPERATIONS_MAX = 6
_DASHES = ("-", "--", "-.", ":", (0, (5, 1)))


def cumulative_figure(
    runs: Runs, chosen: Sequence[tuple[str, int]], tolerance: float, settled: Sequence[RunLength]
) -> Drawing | None:
    """Cumulative throughput over time, over its end, a line a run (Fig. 6.1).

    Args:
        runs: the study's runs.
        chosen: configurations, each with its group's name; the first four with readings are drawn.
        tolerance: share of the end, drawn as a band.
        settled: the numbers, for the description.
    """
    shown = [(name, place, series) for name, place in chosen if (series := _series(runs, place))][
        :_PANELS_MAX
    ]
    if not shown:
        return None
    with styled():
        figure, panels = _panels(len(shown), 1.75)
        for panel, (name, place, series) in zip(panels, shown, strict=True):
            panel.axhspan(1 - tolerance, 1 + tolerance, color=COLOURS["measurement"], alpha=0.15, lw=0)
            seen: list[float] = []
            for one in series:
                rates = cumulative(one)
                if rates[-1] != 0:
                    panel.plot(one.seconds, rates / rates[-1], lw=1, alpha=0.7, color=COLOURS["best"])
                    seen += [float(rate) for rate in rates[len(rates) // 20 :] / rates[-1]]
            low, high = (min(seen, default=1.0), max(seen, default=1.0))
            panel.set_ylim(
                max(0.0, min(low, 1 - 2 * tolerance)) * 0.95, min(3.0, max(high, 1 + 2 * tolerance)) * 1.05
            )
            panel.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
            _title(panel, runs, name, place)
        _time_axis(panels[-1])
        figure.supylabel(f"cumulative {metric_label(runs.rate)}, over its end", fontsize=9)
    said = "; ".join(
        f"{one.group}: half settle by {one.median_s:.3g} s, 90% by {one.most_s:.3g} s of {one.run_s:.3g} s"
        for one in settled
    )
    return Drawing(
        figure, f"Cumulative throughput over time; within {percentage(tolerance)} of its end: {said}."
    )


def bands_figure(runs: Runs, chosen: Sequence[tuple[str, int]], window_s: float) -> Drawing | None:
    """Throughput-N over time: from the lowest to the highest of the runs, their mean within (Fig. 6.7)."""
    shown: list[tuple[str, int, NDArray[np.float64]]] = []
    for name, place in chosen:
        long = [one for one in (throughput_n(s, window_s) for s in _series(runs, place)) if len(one) > 1]
        if len(long) > 1:
            shown.append((name, place, np.stack([one[: min(map(len, long))] for one in long])))
    shown = shown[:_PANELS_MAX]
    if not shown:
        return None
    said: list[str] = []
    with styled():
        figure, panels = _panels(len(shown), 1.75)
        for at, (panel, (name, place, windows)) in enumerate(zip(panels, shown, strict=True)):
            end_s: NDArray[np.float64] = window_s * np.arange(1, windows.shape[1] + 1, dtype=np.float64)
            panel.fill_between(end_s, windows.min(0), windows.max(0), color=PALETTE[at], alpha=0.3, lw=0)
            panel.plot(end_s, windows.mean(0), color=PALETTE[at], lw=1.8)
            panel.set_ylim(bottom=min(0.0, float(windows.min())))
            plain_numbers(panel)
            _title(panel, runs, name, place)
            means = windows.mean(0)
            ranges = np.ptp(windows, 0)[means != 0] / np.abs(means[means != 0])
            if len(ranges):
                said.append(f"{name}: {percentage(float(ranges.min()))} to {percentage(float(ranges.max()))}")
        _time_axis(panels[-1])
        figure.supylabel(f"Throughput-{window_s:g}: {metric_label(runs.rate)}", fontsize=9)
    return Drawing(
        figure,
        f"Throughput of windows of {window_s:g} s over time, lowest to highest run of a configuration. "
        f"Relative ranges over the runs, {'; '.join(said)}.",
    )


def ranges_figure(found: Sequence[Windowed]) -> Drawing | None:
    """The distribution of the windows' ranges, a line a length of window, by group (Fig. 6.8)."""
    groups = list(dict.fromkeys(one.group for one in found))[:6]
    if not groups:
        return None
    lengths = sorted({one.window_s for one in found})
    above = [one.ranges[one.ranges > 0] for one in found if (one.ranges > 0).any()]
    if not above:
        return None
    least = max(1e-4, min(float(np.quantile(one, 0.02)) for one in above))
    most = max(2 * least, *(float(one[-1]) for one in above))
    columns = min(3, len(groups))
    rows = -(-len(groups) // columns)
    with styled(axes_grid_axis="both"):
        figure, axes = axes_of(0.6 + 1.9 * rows)
        figure.delaxes(axes)
        panels: list[Axes] = list(
            figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).flat
        )
        for panel, group in zip(panels, groups, strict=False):
            for one in (one for one in found if one.group == group):
                rank = lengths.index(one.window_s)
                panel.step(
                    np.maximum(np.r_[least, one.ranges], least),
                    np.arange(len(one.ranges) + 1) / len(one.ranges),
                    where="post",
                    color=COLOURS["best"],
                    lw=1.6,
                    ls=_DASHES[rank % len(_DASHES)],
                    alpha=0.25 + 0.75 * rank / max(1, len(lengths) - 1),
                    label=f"{one.window_s:g} s",
                )
            panel.set_title(short_label(group, 36), fontsize=8.5, loc="left")
            panel.set_xscale("log")
            panel.set_xlim(least, most)
            panel.set_ylim(0, 1.02)
            panel.xaxis.set_minor_locator(NullLocator())
            panel.xaxis.set_major_formatter(FuncFormatter(percent_label))
            panel.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        for panel in panels[max(0, len(groups) - columns) : len(groups)]:
            panel.tick_params(labelbottom=True)  # none is below
        for panel in panels[len(groups) :]:
            panel.set_axis_off()
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(
            handles,
            labels,
            loc="outside upper left",
            ncols=8,
            title="window",
            title_fontsize=8,
            alignment="left",
        )
        figure.supxlabel("relative range over the runs of a configuration", fontsize=9)
        figure.supylabel("windows at or below", fontsize=9)
    said = "; ".join(
        f"{one.group}, {one.window_s:g} s: {percentage(float(np.median(one.ranges)))}" for one in found
    )
    return Drawing(figure, f"Relative ranges of windows by their length; medians: {said}.")


def instantaneous_figure(runs: Runs, chosen: Sequence[tuple[str, int]]) -> Drawing | None:
    """Every reading of one run over the largest of that run (Fig. 6.9)."""
    shown: list[tuple[str, int, Series]] = []
    for name, place in chosen:
        series = _series(runs, place)
        if series and float(series[0].values.max()) > 0:
            shown.append((name, place, series[0]))
    shown = shown[:_PANELS_MAX]
    if not shown:
        return None
    said: list[str] = []
    with styled():
        figure, panels = _panels(len(shown), 1.5)
        for at, (panel, (name, place, one)) in enumerate(zip(panels, shown, strict=True)):
            values = throughput_normalized(one.values)
            panel.plot(one.seconds, values, lw=1, color=PALETTE[at])
            panel.set_ylim(min(0.0, float(values.min())), 1.05)
            panel.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
            _title(panel, runs, name, place)
            low, high = np.quantile(values, [0.05, 0.95])
            said.append(f"{name}: 90% between {percentage(float(low))} and {percentage(float(high))}")
        _time_axis(panels[-1])
        figure.supylabel(f"{metric_label(runs.rate)}, over the run's largest", fontsize=9)
    return Drawing(figure, f"Readings of one run over its largest. {'; '.join(said)}.")


def latency_figure(known: Sequence[Percentiles], runs: Runs, place: int) -> Drawing | None:
    """Latency distributions: of the operations in one run, and of one operation in all runs (Fig. 6.10).

    Args:
        known: the percentiles of each operation; the one whose runs differ most is drawn for all runs.
        runs: the study's runs.
        place: the configuration.
    """
    rows = runs.of(place)
    drawn: list[tuple[str, Percentiles, NDArray[np.float64]]] = []
    for one in known:
        values = one.values[rows]
        values = values[np.isfinite(values).all(1) & (values > 0).all(1)]
        if len(values):
            drawn.append((one.operation, one, values))
    if not drawn:
        return None
    # Operations whose latencies hardly differ crowd the figure; the slowest ones are what a user waits for.
    drawn.sort(key=lambda item: -float(item[2][:, -1].max()))
    several = [item for item in drawn if len(item[2]) > 1]
    with styled(axes_grid_axis="both"):
        figure, axes = axes_of(3.0)
        figure.delaxes(axes)
        left, right = figure.subplots(1, 2, sharey=True)
        for at, (operation, one, values) in enumerate(drawn[:_OPERATIONS_MAX]):
            left.plot(
                values[0], one.levels, f"-{MARKERS[at]}", ms=4, lw=1.2, color=PALETTE[at], label=operation
            )
        left.set_title("operations of one run, the slowest", fontsize=8.5, loc="left")
        left.legend(fontsize=7, loc="best")
        log_axis(left)
        left.set_xlabel(f"latency ({drawn[0][1].unit})")
        left.set_ylabel("operations at or below")
        left.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        said = ""
        if several:
            widest = max(several, key=lambda item: float((item[2].max(0) / item[2].min(0)).max()))
            for values in widest[2][:_RUNS_MAX]:
                right.plot(values, widest[1].levels, "-o", ms=3.5, lw=1.1, color=COLOURS["best"], alpha=0.7)
            right.set_title(f"{widest[0]}, each run", fontsize=8.5, loc="left")
            log_axis(right)
            right.set_xlabel(f"latency ({widest[1].unit})")
            factor = float((widest[2].max(0) / widest[2].min(0)).max())
            said = f" {widest[0]} differs most between runs: by a factor of {factor:.3g}."
        else:
            right.set_axis_off()
    return Drawing(figure, f"Latency percentiles of {label_of(runs, place)}; lines join what is known.{said}")


def correlation_figure(found: Sequence[Correlated]) -> Drawing | None:
    """Correlation of each operation's latency range with the range of the throughput (Fig. 6.11)."""
    groups = list(dict.fromkeys(one.group for one in found))[: len(PALETTE)]
    if not groups:
        return None
    best: dict[str, float] = {}
    for one in found:
        best[one.operation] = max(best.get(one.operation, -1.0), one.estimate.value)
    operations = sorted(best, key=lambda name: -best[name])[:16]
    with styled(axes_grid_axis="x"):
        figure, axes = axes_of(0.9 + 0.1 * len(operations) + 0.13 * len(operations) * len(groups))
        axes.axvline(STRONG_CORRELATION, color=COLOURS["default"], ls=(0, (5, 3)), lw=1.2)
        axes.axvline(0, color=COLOURS["muted"], lw=0.8)
        for rank, group in enumerate(groups):
            label: str | None = group
            for one in found:
                if one.group != group or one.operation not in operations:
                    continue
                row = operations.index(one.operation) + (rank - (len(groups) - 1) / 2) * 0.7 / len(groups)
                estimate = one.estimate
                if estimate.low is not None and estimate.high is not None:
                    axes.plot(
                        [estimate.low, estimate.high], [row, row], color=PALETTE[rank], lw=1.2, alpha=0.6
                    )
                axes.plot(estimate.value, row, MARKERS[rank], ms=5, color=PALETTE[rank], mew=0, label=label)
                label = None
        axes.set_yticks(range(len(operations)), operations)
        axes.set_ylim(len(operations) - 0.5, -0.5)
        axes.set_xlim(-1, 1)
        axes.set_xlabel("correlation of latency range and throughput range")
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=6, borderaxespad=0.2, handlelength=1.2)
    said = "; ".join(f"{one.group}, {one.operation}: {one.estimate.value:+.2f}" for one in found[:6])
    return Drawing(figure, f"Correlations of operations' latency ranges with the throughput's range. {said}.")


def _panels(count: int, height_in: float) -> tuple[Figure, list[Axes]]:
    figure, axes = axes_of(0.5 + height_in * count)
    figure.delaxes(axes)
    return figure, list(figure.subplots(count, 1, sharex=True, squeeze=False)[:, 0])


def _title(panel: Axes, runs: Runs, name: str, place: int) -> None:
    text = label_of(runs, place)
    panel.set_title(
        short_label(text if name in text or name == "all" else f"{name}: {text}", 110),
        fontsize=7.5,
        loc="left",
    )


def _time_axis(panel: Axes) -> None:
    panel.set_xlim(left=0)
    panel.set_xlabel("time since the load began (s)")


def _series(runs: Runs, place: int) -> list[Series]:
    if not runs.series:
        return []
    kept = [one for one in runs.series[runs.of(place)] if one is not None and len(one) > 1]
    return kept[:_RUNS_MAX]
