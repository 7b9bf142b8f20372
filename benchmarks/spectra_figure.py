"""Draws how few measurements find the parameters that matter (Cao, Fig. 7.4), from the benchmark's results.

    .venv/bin/python -m benchmarks.spectra_figure

Reads what `python -m benchmarks.spectra` has measured, and measures nothing.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.spectra import SIZES, STABLE, TABLES
from matplotlib.ticker import FuncFormatter, NullLocator, PercentFormatter

from ascar.analysis.drawing import COLOURS, axes_of, styled
from ascar.significance import share

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes

RESULTS = Path(__file__).parent / "results" / "spectra.jsonl"
FIGURE = Path(__file__).parents[1] / "docs" / "benchmarks-importance-samples.svg"
GOAL = 0.95
LINES = {
    "hsqldb": ("best", "o"),
    "lrzip": ("other", "v"),
    "redis": ("muted", "P"),
    "fileserver": ("fill", "s"),
    "fileserver p99": ("default", "^"),
    "mailserver": ("measurement", "D"),
    "mailserver p99": ("settle", "X"),
}
PANELS: tuple[tuple[str, Callable[[dict[str, Any]], int]], ...] = (
    ("the first", lambda one: one["hits"][0]),
    ("the first two, in either order", lambda one: one["either"]),
    ("the first three, in order", lambda one: one["hits"][2]),
)


def main() -> None:
    """Write the figure."""
    results = {one["key"]: one for one in map(json.loads, RESULTS.read_text("utf-8").splitlines())}
    with styled(axes_grid_axis="both", svg_hashsalt="spectra"):
        figure, axes = axes_of(3.6, 9.0)
        figure.delaxes(axes)
        panels: list[Axes] = list(figure.subplots(1, len(PANELS), sharey=True))
        for panel, (title, read) in zip(panels, PANELS, strict=True):
            panel.set_title(title, fontsize=9, loc="left")
            panel.axhline(GOAL, color=COLOURS["ink"], lw=0.8, ls=(0, (4, 3)))
            for name, _, _ in TABLES:
                draw(panel, name, read, results)
            panel.set_xscale("log", base=2)
            panel.set_xticks(SIZES)
            panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            panel.xaxis.set_minor_locator(NullLocator())
            panel.set_xlabel("configurations measured")
            panel.set_ylim(0, 1.02)
            panel.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        panels[0].set_ylabel("draws in which they are found")
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper left", ncols=4)
        figure.savefig(FIGURE, metadata={"Date": None}, facecolor="white")
    print(FIGURE)


def draw(
    panel: Axes, name: str, read: Callable[[dict[str, Any]], int], results: dict[str, dict[str, Any]]
) -> None:
    """One table's line, with its intervals; dashed where the whole table's own order is not stable."""
    known = [(size, one) for size in SIZES if (one := results.get(f"draws {name} {size}"))]
    if not known:
        return
    shares = [share(read(one), one["draws"]) for _, one in known]
    stable = results[f"whole {name}"]["stability"] >= STABLE
    colour, marker = LINES[name]
    below = [[value - low for value, low, _ in shares], [high - value for value, _, high in shares]]
    panel.errorbar(
        [size for size, _ in known], [value for value, _, _ in shares], yerr=below, fmt=marker,
        ls="-" if stable else (0, (3, 2)), lw=1.6 if stable else 1.0, ms=4, color=COLOURS[colour], capsize=2,
        label=name if stable else f"{name} (order not stable)",
    )  # fmt: skip


if __name__ == "__main__":
    main()
