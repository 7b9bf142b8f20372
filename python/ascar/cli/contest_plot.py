"""The plot of a comparison: every reading, each mean with its interval, the best on top."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ascar.analysis.drawing import COLOURS, axes_of, on_white, write_figure

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ascar.results.measurement import Measurement

_DOTS_MAX = 500


@dataclass(frozen=True, slots=True)
class Bar:
    """One that was compared.

    Attributes:
        label: the label of the contestant.
        measurement: the contestant's mean.
        readings: (n,) in order.
    """

    label: str
    measurement: Measurement
    readings: Sequence[float]


def write_contest_plot(path: Path, metric: str, bars: Sequence[Bar], lines: Sequence[str]) -> None:
    """Write the plot; its format follows from the name's ending.

    Args:
        path: ends in .svg or .png.
        metric: the metric that was compared; it labels the axis.
        bars: the best first.
        lines: the comparison of each with the next; one fewer than bars.

    Raises:
        WorkError: the file cannot be written.
    """
    with on_white():
        figure, axes = axes_of()
        for place, bar in enumerate(bars):
            stride = -(-len(bar.readings) // _DOTS_MAX)
            shown = np.asarray(bar.readings[:: max(stride, 1)], np.float64)
            # Spread in the order they were taken, so that a drift is seen.
            at = place + np.linspace(-0.3, 0.3, len(shown)) if len(shown) > 1 else np.full(len(shown), place)
            axes.plot(shown, at, ".", color=COLOURS["other"], ms=3, alpha=0.6, label="readings")
            own = bar.measurement
            if own.ci_low is not None and own.ci_high is not None:
                axes.plot([own.ci_low, own.ci_high], [place, place], color=COLOURS["best"], lw=4, alpha=0.5)
            axes.plot([own.mean], [place], "o", color=COLOURS["best"], ms=5)
        for place, line in enumerate(lines):
            axes.annotate(
                line.replace("$", r"\$"),
                (1.0, place + 0.5),
                xycoords=("axes fraction", "data"),
                ha="right",
                va="center",
                color=COLOURS["muted"],
            )
        axes.set_yticks(range(len(bars)), [bar.label.replace("$", r"\$") for bar in bars])
        axes.invert_yaxis()
        axes.set_xlabel(metric.replace("$", r"\$"))
        write_figure(figure, path)
