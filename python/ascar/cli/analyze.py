"""`ascar analyze`: recorded readings to a mean with an interval."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ascar.cli.epilog import examples
from ascar.cli.options import (
    AutocorrelationLimit,
    Column,
    Combine,
    ConfidenceOrNone,
    Export,
    IntervalWidth,
    Json,
    Method,
    Plot,
    Preset,
    Time,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ascar.pilot import Goal, GoalVerdict, Phase
    from ascar.results.measurement import Measurement

EXAMPLES = examples(
    "ascar analyze run.csv --column throughput_mb_per_s",
    "ascar analyze fio_bw.1.log --plot run.svg",
    "ascar analyze hyperfine.json --preset strict --export result.md",
    "ascar analyze node1.csv node2.csv --column mb_per_s --time seconds --combine sum",
)


def analyze(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="CSV or TSV with a header, JSON lines, fio's JSON or its log of bandwidth, IOPS or latency, "
            "hyperfine's JSON. Give several for several nodes, combined by --combine.",
        ),
    ],
    column: Column = None,
    time: Time = None,
    combine: Combine = None,
    preset: Preset = "normal",
    interval_width: IntervalWidth = None,
    confidence: ConfidenceOrNone = None,
    method: Method = "corrected",
    autocorrelation_limit: AutocorrelationLimit = 0.1,
    export: Export = None,
    plot: Plot = None,
    json: Json = False,
) -> int:
    """Find the stable phase of recorded readings, their mean, and an interval that allows for correlation.

    Warm-up and cool-down are removed where the level of the readings changes; what remains must be more than
    half of them. Where no honest interval exists the reason is said instead of one.

    --preset quick asks for an interval 20% of the mean wide and 12 readings in the stable phase; normal for
    10% and 50 readings; strict for 10% and 200 readings.
    """
    from ascar.cli.goals import goal_of
    from ascar.cli.sheets import check_ending, write_sheet
    from ascar.errors import InputError
    from ascar.pilot import analyze as run_analysis
    from ascar.pilot import phases_of, verdict_on

    goal = goal_of(preset, interval_width, confidence)
    check_ending("--export", export)
    check_ending("--plot", plot, (".svg", ".png"))
    if method not in ("corrected", "faithful"):
        raise InputError(f"--method = {method!r}: must be 'corrected' or 'faithful'")
    name, values, note = _read(files, column, time, combine)
    measurement = run_analysis(values, goal.confidence, method, autocorrelation_limit=autocorrelation_limit)
    found = _Found(
        files,
        name,
        values,
        note,
        measurement,
        phases_of(values, measurement),
        goal,
        verdict_on(measurement, goal),
    )
    if export is not None:
        from ascar.cli.measured import sheet_of

        write_sheet(export, sheet_of({name: measurement}, [found.verdict.word]))
    if plot is not None:
        from ascar.cli.series_plot import write_plot

        write_plot(plot, name, values, measurement, found.phases)
    _emit(found) if json else _print(found)
    return 0


@dataclass(frozen=True, slots=True, eq=False)
class _Found:
    """Everything that is shown."""

    files: list[Path]
    name: str
    values: NDArray[np.float64]
    note: str
    measurement: Measurement
    phases: tuple[Phase, ...]
    goal: Goal
    verdict: GoalVerdict


def _read(
    files: list[Path], column: str | None, time: str | None, how: str | None
) -> tuple[str, NDArray[np.float64], str]:
    """The readings' name, the readings, and a note on them."""
    from ascar.errors import InputError
    from ascar.pilot import combine
    from ascar.pilot.sources import read_column
    from ascar.results.measurement import Series

    recorded = [read_column(path, column, time) for path in files]
    first = recorded[0]
    if len(files) == 1:
        return first.name, first.values, first.note
    if how not in ("sum", "mean"):
        raise InputError(
            f"{len(files)} files and --combine = {how!r}: must be 'sum' or 'mean'; or give one file"
        )
    nodes: dict[str, Series] = {}
    for path, one in zip(files, recorded, strict=True):
        if one.seconds is None:
            raise InputError(f"{str(path)!r}: to combine nodes, name the column with the seconds with --time")
        if str(path) in nodes:
            raise InputError(f"{str(path)!r} is given twice: give one file a node")
        nodes[str(path)] = Series(one.seconds, one.values)
    together = combine(nodes, how)
    note = f"{how} over {together.nodes} nodes"
    if together.left_out:
        note += f"; {together.left_out} instants at which a node was silent are left out"
    return first.name, together.series.values, note


def _emit(found: _Found) -> None:
    from ascar.cli.output import emit
    from ascar.pilot.measured import judged
    from ascar.results.analyze import AnalyzeResult, PhaseFound
    from ascar.results.encode import extended

    phases = tuple(
        PhaseFound(start=one.start, end=one.end, mean=one.mean, kind=one.kind.value, reason=one.reason)
        for one in found.phases
    )
    result = extended(
        AnalyzeResult,
        found.measurement,
        files=tuple(str(path) for path in found.files),
        name=found.name,
        readings=len(found.values),
        phases=phases,
        **judged(found.verdict, found.goal),
        note=found.note,
    )
    emit("analyze", result)


def _print(found: _Found) -> None:
    from rich.table import Table

    from ascar.cli.measured import lines_of, phase_line
    from ascar.cli.output import people

    console = people()
    console.print(f"{found.name} in {', '.join(map(str, found.files))}", style="bold", markup=False)
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim")
    table.add_column()
    for heading, fact in lines_of(found.measurement, len(found.values)):
        table.add_row(heading, fact)
    removed = [phase for phase in found.phases if phase.kind.value in ("warm-up", "cool-down")]
    for heading, phase in zip(["removed", *[""] * len(removed)], removed, strict=False):
        table.add_row(heading, phase_line(phase))
    if not removed:
        table.add_row("removed", "nothing")
    if found.note:
        table.add_row("note", found.note)
    table.add_row("verdict", f"{found.verdict.word}: {found.verdict.line}")
    console.print(table)
