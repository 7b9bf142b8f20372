"""`ascar variation`: how much runs of one configuration differ, and why."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ascar.cli.epilog import examples
from ascar.cli.options import (
    Averaging,
    By,
    FirstRuns,
    Ignore,
    Json,
    ObjectiveTextOrNone,
    Order,
    Parameters,
    Plots,
    Seed,
    Series,
    Setup,
    TableFiles,
    Tolerance,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from ascar.analysis.table_columns import ColumnOptions
    from ascar.analysis.variation_source import VariationSource

EXAMPLES = examples(
    "ascar variation mailserver --plots figures",
    "ascar variation --table results.csv --objective iops --parameters fs,scheduler --order date",
    "ascar variation --table dataset:storage-v5-fileserver --objective operations --by fs",
    "ascar variation fileserver mailserver --averaging 1 --averaging 10 --json",
)
_SILENT_S = 2.0


def variation(
    run: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[STUDY|RUN ...]", help="Studies by name or file (the latest run), or runs by number."
        ),
    ] = None,
    table: TableFiles = None,
    objective: ObjectiveTextOrNone = None,
    parameters: Parameters = None,
    ignore: Ignore = None,
    order: Order = None,
    setup: Setup = None,
    series: Series = None,
    by: By = None,
    runs: FirstRuns = None,
    window: Averaging = None,
    tolerance: Tolerance = 5.0,
    seed: Seed = 1,
    plots: Plots = None,
    json: Json = False,
) -> int:
    """Show how much runs of one configuration differ, over what times, and what may be the cause.

    Needs configurations that were measured at least twice. A cause is named only with the test that shows it.
    """
    from ascar.analysis.table_columns import ColumnOptions
    from ascar.analysis.variation_runs import runs_of
    from ascar.analysis.variation_study import VariationRequest, examined
    from ascar.cli.variation_output import draw, emit_variation, print_variation
    from ascar.errors import InputError

    step = _progress()
    columns = ColumnOptions(objective, parameters, ignore, order, setup, series)
    source = _source(run or [], table or [], columns, step)
    step("sorting runs by configuration")
    found_runs = runs_of(source.frame, source.layout)
    if runs is not None:
        found_runs = found_runs.first(runs)
        if not len(found_runs):
            raise InputError(f"--first-runs = {runs}: no configuration has so many runs; ask for fewer")
    found = examined(
        found_runs, VariationRequest(by, tuple(dict.fromkeys(window or ())), tolerance / 100, seed), step
    )
    drawn = {} if plots is None else draw(found, plots, step)
    (emit_variation if json else print_variation)(source.name, found, drawn)
    return 0


def _source(
    run: list[str], table: list[Path], columns: ColumnOptions, step: Callable[[str], None]
) -> VariationSource:
    from ascar.analysis.variation_source import joined, run_source, table_source
    from ascar.cli.studies import find_run
    from ascar.errors import InputError
    from ascar.history import History

    if bool(run) == bool(table):
        raise InputError("variation: name a study, or a table with --table; one of the two")
    if table:
        return joined([table_source(path, columns, step) for path in table])
    columns.refuse()
    found: list[VariationSource] = []
    with History.existing() as history:
        for named in run:
            step(f"reading {named}")
            found.append(run_source(find_run(history, named)))
    return joined(found)


def _progress() -> Callable[[str], None]:
    """Says on stderr what is being done, once the command has taken a while."""
    from ascar.cli.output import say

    begin = time.monotonic()

    def step(what: str) -> None:
        if time.monotonic() - begin > _SILENT_S:
            say(f"{what} ({time.monotonic() - begin:.0f} s)")

    return step
