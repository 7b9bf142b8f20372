"""What `ascar variation` shows: tables for people, a document, figures."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ascar.analysis.variation_checks import LEVEL
from ascar.analysis.variation_figures import label_of, short_label
from ascar.analysis.variation_study import FIGURES, figures_of
from ascar.analysis.variation_summary import RANGE_LARGE, RSD_LARGE, deviation_of
from ascar.render import compact, in_percent, limits, p_value, percentage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from rich.console import Console

    from ascar.analysis.variation_study import Variation

_SHOWN, _LISTED_MAX = 10, 1_000
_CORRELATIONS_SHOWN = 8


def draw(found: Variation, directory: Path, step: Callable[[str], None]) -> dict[str, Path | str]:
    """Writes the figures; by name each one's path, or why there is none.

    Raises:
        WorkError: they cannot be written.
    """
    from ascar.analysis.drawing import styled
    from ascar.errors import WorkError

    step("drawing")
    written: dict[str, Path | str] = {}
    for name, drawing in figures_of(found).items():
        if isinstance(drawing, str):
            written[name] = drawing
            continue
        path = directory / f"{name}.svg"
        try:
            directory.mkdir(parents=True, exist_ok=True)
            with styled(svg_hashsalt=name):
                drawing.figure.savefig(
                    path, metadata={"Date": None, "Description": drawing.alt}, facecolor="white"
                )
        except OSError as error:
            raise WorkError(f"--plots = {str(directory)!r}: {error.strerror}; give another place") from error
        written[name] = path
    return written


def print_variation(name: str, found: Variation, drawn: Mapping[str, Path | str]) -> None:
    """Tables, advice, and what was drawn."""
    from ascar.cli.output import people

    console, runs, spread = people(), found.runs, found.spread

    def line(text: str) -> None:
        console.print(text, markup=False, soft_wrap=True)

    least, most = int(runs.counts.min()), int(runs.counts.max())
    each = f"{least}" if least == most else f"{least} to {most}"
    left = [f"{runs.alone} measured once"] if runs.alone else []
    left += [f"{runs.failed} failed runs"] if runs.failed else []
    left += [f"{runs.zero} with a mean of 0"] if runs.zero else []
    line(
        f"{runs.title} in {name}: {len(runs)} configurations, {len(runs.scores)} runs, {each} each"
        + (f"; left out: {', '.join(left)}" if left else "")
    )
    if runs.note:
        line(runs.note)
    _groups(console, found)
    line("Covers: the share of all runs that lies in the range of so few, with 95% confidence.")
    if least != most:
        line(f"Ranges grow with the number of runs; --first-runs {least} compares equally many.")
    for link in found.links[:3]:
        if link.p_adjusted <= LEVEL:
            p = p_value(link.p_adjusted)
            line(f"Variation goes with {link.parameter}: H = {link.statistic:.3g}, {p}.")
    rows: list[list[str]] = []
    for place in spread.order[:_SHOWN]:
        estimate = deviation_of(runs, int(place))
        interval = limits(estimate.low, estimate.high, partial(percentage, digits=1)) or "-"
        cells = [compact(float(spread.mean[place])), percentage(float(spread.rsd[place]), 1), interval]
        cells += [percentage(float(spread.range[place]), 1), str(runs.counts[place])]
        rows.append([*cells, short_label(label_of(runs, int(place)), 100)])
    _table(
        console, "Most varying", ["mean", "RSD", "95% interval", "range", "runs", "configuration"], rows, 5
    )
    _over_time(console, found)
    _latencies(console, found)
    _advice(console, found)
    for figure, path in drawn.items():
        line(f"not drawn: {FIGURES[figure]}: {path}" if isinstance(path, str) else f"plot: {path}")


def _groups(console: Console, found: Variation) -> None:
    heads = [
        found.by or "",
        "configurations",
        "runs",
        "mean",
        "RSD: median",
        "90%",
        "most",
        "range: median",
        "90%",
        "most",
    ]
    heads += [f"RSD > {percentage(RSD_LARGE, 0)}, range > {percentage(RANGE_LARGE, 0)}", "covers at least"]
    rows = [
        [
            short_label(one.name, 40), str(one.configurations),
            " to ".join(map(str, dict.fromkeys(one.runs))),
            " to ".join(compact(mean) for mean in dict.fromkeys(one.mean)),
            *(percentage(value, 1) for value in (*one.rsd, *one.range)),
            percentage(one.large, 0), percentage(one.coverage, 0),
        ]
        for one in found.groups
    ]  # fmt: skip
    _table(console, "At a glance", heads, rows, len(heads), left=1)


def _over_time(console: Console, found: Variation) -> None:
    rows: list[list[str]] = []
    for one in found.settled:
        times = (f"{one.run_s:.4g} s", f"{one.median_s:.3g} s", f"{one.most_s:.3g} s")
        rows.append([short_label(one.group, 40), str(one.runs), *times, percentage(one.late, 0)])
    heads = [found.by or "", "runs", "length", "half settle by", "90% by", "in the second half only"]
    _table(
        console,
        f"Until the cumulative throughput stays within {in_percent(found.asked.tolerance)} of its end",
        heads,
        rows,
        6,
        left=1,
    )
    rows = []
    for one in found.windows:
        idle = f"{one.idle}" if one.idle else ""
        rows.append(
            [short_label(one.group, 40), f"{one.window_s:g} s", str(one.configurations), str(len(one.ranges)),
             *(percentage(value, 1) for value in one.quantiles), idle]
        )  # fmt: skip
    heads = [
        found.by or "",
        "window",
        "configurations",
        "windows",
        "range: median",
        "90%",
        "most",
        "idle windows",
    ]
    _table(console, "Ranges of windows over the runs", heads, rows, 8, left=1)


def _latencies(console: Console, found: Variation) -> None:
    rows: list[list[str]] = []
    strongest = sorted(found.correlations, key=lambda one: -one.estimate.value)
    for one in strongest[:_CORRELATIONS_SHOWN]:
        low, high = one.estimate.low, one.estimate.high
        interval = limits(low, high, "{:+.2f}".format) or "-"
        rows.append(
            [
                short_label(one.group, 40),
                one.operation,
                f"{one.estimate.value:+.2f}",
                interval,
                str(one.configurations),
            ]
        )
    heads = [found.by or "", "operation", "correlation", "95% interval", "configurations"]
    _table(console, "Range of latencies and range of throughput", heads, rows, 5, left=2)


def _advice(console: Console, found: Variation) -> None:
    if not found.checks:
        console.print(
            "\nCauses: none could be looked for; that needs the order of runs, or readings over time."
        )
        return
    causes = ", ".join(one.cause for one in found.checks)
    chance = f"where none is, the chance of any advice is at most {percentage(LEVEL, 0)}"
    if not found.advice:
        console.print(
            f"\nNo cause has evidence. Looked for: {causes}; {chance}.", markup=False, soft_wrap=True
        )
    for place, one in enumerate(found.advice, 1):
        lead = "\n" if place == 1 else ""
        console.print(f"{lead}{place}. {one.title}", markup=False, soft_wrap=True)
        console.print(f"   evidence: {one.evidence}", markup=False, soft_wrap=True)
        console.print(f"   do: {one.action}", markup=False, soft_wrap=True)
    if found.advice:
        console.print(f"Looked for: {causes}; {chance}.", markup=False, soft_wrap=True)


def _table(
    console: Console,
    title: str,
    heads: Sequence[str],
    rows: Iterable[Sequence[str]],
    right: int,
    left: int = 0,
) -> None:
    """A table whose columns from `left` to `right` hold numbers; nothing where there are no rows."""
    from rich.table import Table
    from rich.text import Text

    lines = list(rows)
    if not lines:
        return
    console.print(f"\n{title}", markup=False, soft_wrap=True)
    table = Table(box=None, pad_edge=False)
    for place, head in enumerate(heads):
        table.add_column(Text(head), justify="right" if left <= place < right else "left")
    for row in lines:
        table.add_row(*(Text(cell) for cell in row))
    console.print(table)


def emit_variation(name: str, found: Variation, drawn: Mapping[str, Path | str]) -> None:
    """One document."""
    from ascar.analysis.variation_result import result_of
    from ascar.cli.output import emit

    emit("variation", result_of(name, found, drawn))
