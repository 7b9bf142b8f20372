"""`ascar variation`: how much runs of one configuration differ, and why."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ascar.cli.options import Json, examples

if TYPE_CHECKING:
    from collections.abc import Callable

    from ascar.cli.variation_source import Columns, Source

EXAMPLES = examples(
    "ascar variation mailserver --plots figures",
    "ascar variation --table results.csv --objective iops --parameters fs,scheduler --order date",
    "ascar variation --table dataset:storage-v5-fileserver --objective operations --by fs",
    "ascar variation fileserver mailserver --window 1 --window 10 --json",
)
_SILENT_S = 2.0


def variation(
    run: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[STUDY|RUN ...]", help="Studies by name or file (the latest run), or runs by number."
        ),
    ] = None,
    table: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Instead: CSV, Parquet, or dataset:NAME; may be repeated."),
    ] = None,
    objective: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The table's column that was measured.")
    ] = None,
    parameters: Annotated[
        str | None, typer.Option(metavar="A,B", help="Columns that were set; default: all others.")
    ] = None,
    ignore: Annotated[str | None, typer.Option(metavar="C,D", help="Columns that were not.")] = None,
    order: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="When each run was: a number or an instant.")
    ] = None,
    setup: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Which set-up (format, image) each run used.")
    ] = None,
    series: Annotated[
        str | None, typer.Option(metavar="NAME", help="Which recorded readings are the throughput over time.")
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="PARAMETER", help="Group by it; default: what variation goes with, if anything."
        ),
    ] = None,
    runs: Annotated[
        int | None,
        typer.Option(min=2, help="Only the first so many runs of each configuration: ranges compare then."),
    ] = None,
    window: Annotated[
        list[float] | None,
        typer.Option(metavar="S", min=0.001, help="Seconds of a window (Throughput-S); may be repeated."),
    ] = None,
    tolerance: Annotated[
        float, typer.Option(min=0.01, max=100, help="Per cent of its end in which a run counts as settled.")
    ] = 5.0,
    seed: Annotated[int, typer.Option(min=0, help="Of tests by permutation.")] = 1,
    plots: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Draw the figures that there is data for.")
    ] = None,
    json: Json = False,
) -> int:
    """Show how much runs of one configuration differ, over what times, and what may be the cause.

    Needs configurations that were measured at least twice. A cause is named only with the test that shows it.
    """
    from ascar.analysis.variation_runs import runs_of
    from ascar.analysis.variation_study import Asked, examined
    from ascar.cli.variation_output import draw, emit_variation, print_variation
    from ascar.cli.variation_source import Columns
    from ascar.errors import InputError

    step = _progress()
    columns = Columns(objective, parameters, ignore, order, setup, series)
    source = _source(run or [], table or [], columns, step)
    step("sorting runs by configuration")
    found_runs = runs_of(source.frame, source.layout)
    if runs is not None:
        found_runs = found_runs.first(runs)
        if not len(found_runs):
            raise InputError(f"--runs = {runs}: no configuration has so many runs; ask for fewer")
    found = examined(found_runs, Asked(by, tuple(dict.fromkeys(window or ())), tolerance / 100, seed), step)
    drawn = {} if plots is None else draw(found, plots, step)
    (emit_variation if json else print_variation)(source.name, found, drawn)
    return 0


def _source(run: list[str], table: list[Path], columns: Columns, step: Callable[[str], None]) -> Source:
    from ascar.cli.variation_source import joined, read_run, read_table
    from ascar.errors import InputError

    if bool(run) == bool(table):
        raise InputError("variation: name a study, or a table with --table; one of the two")
    if table:
        return joined([read_table(path, columns, step) for path in table])
    for option in ("objective", "parameters", "ignore", "order", "setup", "series"):
        value = getattr(columns, option)
        if value is not None:
            raise InputError(f"--{option} = {value!r}: a run knows that; leave it out, or give a --table")
    found: list[Source] = []
    for named in run:
        step(f"reading {named}")
        found.append(read_run(named))
    return joined(found)


def _progress() -> Callable[[str], None]:
    """Says on stderr what is being done, once the command has taken a while."""
    from ascar.cli.output import say

    begin = time.monotonic()

    def step(what: str) -> None:
        if time.monotonic() - begin > _SILENT_S:
            say(f"{what} ({time.monotonic() - begin:.0f} s)")

    return step
