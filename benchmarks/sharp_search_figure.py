"""Draws what searches for rules have found after how many runs (Li, Figure 3.3), from the results.

    .venv/bin/python -m benchmarks.sharp_search_figure

Reads what `python -m benchmarks.sharp_search_cost` has measured, and measures nothing. A line is the mean
over the searches of a schedule, a shade from the worst to the best of them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.ticker import NullFormatter, PercentFormatter, StrMethodFormatter

from ascar.analysis.drawing import COLOURS, axes_of, styled

from .sharp_search_cost import CASES, RUNS_MAX, searches_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

RESULTS = Path(__file__).parent / "results" / "sharp_search_cost.jsonl"
FIGURE = Path(__file__).parents[1] / "docs" / "benchmarks-sharp-search.svg"
LINES = {
    "sharp": ("ours", "best", "-"),
    "faithful": ("algorithm 1", "default", "--"),
    "remy": ("Remy's schedule", "ink", ":"),
}
RUNS = np.unique(np.geomspace(3, RUNS_MAX, 120).astype(int))


def main() -> None:
    """Write the figure."""
    lines: list[dict[str, Any]] = [json.loads(line) for line in RESULTS.read_text("utf-8").splitlines()]
    found = {str(one["key"]): one for one in lines}
    cases = [case for case in CASES if searches_of(case, found)["sharp"]]
    with styled(axes_grid_axis="both", svg_hashsalt="sharp-search"):
        figure, axes = axes_of(5.6, 9.0)
        figure.delaxes(axes)
        grid: Any = figure.subplots(2, (len(cases) + 1) // 2, sharex=True)
        panels: list[Axes] = list(grid.reshape(-1))
        for panel, case in zip(panels, cases, strict=False):
            panel.set_title(case.name.replace(", ", ",\n"), fontsize=8, loc="left")
            for schedule, searches in searches_of(case, found).items():
                draw(panel, schedule, searches)
            panel.set_xscale("log")
            panel.set_xticks([10, 100, 1_000])
            panel.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
            panel.xaxis.set_minor_formatter(NullFormatter())
            panel.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
            panel.set_ylim(bottom=-0.005)
        for panel in panels[len(cases) :]:
            figure.delaxes(panel)
        figure.supxlabel("runs of the workload", fontsize=9)
        figure.supylabel("gain over the scenario as it is", fontsize=9)
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper left", ncols=3)
        figure.savefig(FIGURE, metadata={"Date": None}, facecolor="white")


def draw(panel: Axes, schedule: str, searches: list[dict[str, Any]]) -> None:
    """One schedule's searches."""
    label, colour, style = LINES[schedule]
    gains = np.array([held_at(one["held"]) for one in searches])
    panel.plot(RUNS, gains.mean(axis=0), style, color=COLOURS[colour], lw=1.4, label=label)
    panel.fill_between(RUNS, gains.min(axis=0), gains.max(axis=0), color=COLOURS[colour], alpha=0.15, lw=0)


def held_at(held: list[list[float]]) -> NDArray[np.float64]:
    """What the search held after each of `RUNS`: the last thing is held on; nothing at first."""
    counts = np.array([count for count, _ in held])
    gains = np.array([0.0, *(gain for _, gain in held)])
    return gains[np.searchsorted(counts, RUNS, side="right")]


if __name__ == "__main__":
    main()
