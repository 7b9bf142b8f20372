"""The plot of a series: its readings, phases, change points, and the mean with its interval."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ascar.analysis.drawing import COLOURS, axes_of, on_white, write_figure

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from ascar.pilot import Phase
    from ascar.results.measurement import Measurement

ENDINGS = (".svg", ".png")
# More points than a page has pixels show nothing more: of each stretch its least and greatest reading stay.
_STRETCHES_MAX = 1500
_DOTS_MAX = 400


def write_plot(
    path: Path, name: str, values: NDArray[np.float64], measurement: Measurement, phases: Sequence[Phase]
) -> None:
    """Write the plot; its format follows from the name's ending.

    Args:
        path: ends in one of ENDINGS.
        name: the name of the metric; it labels the axis.
        values: (n,) the whole series.
        measurement: the mean of the readings.
        phases: all of them.

    Raises:
        WorkError: the file cannot be written.
    """
    with on_white():
        figure, axes = axes_of()
        for phase in phases:
            kept = phase.kind.value == "stable"
            if not kept:
                axes.axvspan(phase.start - 0.5, phase.end - 0.5, color=COLOURS["other"], alpha=0.18, lw=0)
            at, shown = _thinned(values[phase.start : phase.end])
            colour = COLOURS["best"] if kept else COLOURS["muted"]
            marker = "." if len(values) <= _DOTS_MAX else ""
            axes.plot(
                at + phase.start, shown, color=colour, lw=0.8, marker=marker, ms=3, label=phase.kind.value
            )
        for point in measurement.change_points:
            axes.axvline(point - 0.5, color=COLOURS["default"], lw=1.2, ls=(0, (4, 3)), label="change point")
        span = [measurement.stable_start - 0.5, measurement.stable_end - 0.5]
        if measurement.ci_low is not None and measurement.ci_high is not None:
            label = f"{measurement.confidence:.4g} interval"
            band = COLOURS["measurement"]
            axes.fill_between(
                span, measurement.ci_low, measurement.ci_high, color=band, alpha=0.4, label=label
            )
        axes.plot(span, [measurement.mean] * 2, color=COLOURS["measurement"], lw=1.6, label="mean")
        axes.set_xlabel("reading")
        axes.set_ylabel(name)
        axes.set_xlim(-0.5, len(values) - 0.5)
        handles, labels = axes.get_legend_handles_labels()
        once = dict(zip(labels, handles, strict=True))
        figure.legend(once.values(), once.keys(), loc="outside upper left", ncols=len(once))
        write_figure(figure, path)


def _thinned(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Where the readings lie, and what they are; of long series the extremes of each stretch."""
    stride = -(-len(values) // _STRETCHES_MAX)
    if stride <= 2:
        return np.arange(len(values), dtype=np.float64), values
    whole = len(values) // stride * stride
    rows = values[:whole].reshape(-1, stride)
    at = np.arange(0, whole, stride, dtype=np.float64)
    middle = np.repeat(at + stride / 2, 2)
    return middle, np.stack([rows.min(axis=1), rows.max(axis=1)], axis=1).ravel()
