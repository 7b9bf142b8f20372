"""`ascar importance`: which parameters matter."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ascar.cli.epilog import examples
from ascar.cli.options import (
    Across,
    Direction,
    Ignore,
    Json,
    ObjectiveTextOrNone,
    Parameters,
    Plots,
    Rsd,
    Samples,
    Seed,
    TableFile,
)

if TYPE_CHECKING:
    import numpy as np

    from ascar.analysis.importance_source import ImportanceSource
    from ascar.analysis.table_columns import ColumnOptions
    from ascar.cli.importance_output import RankedImportance
    from ascar.importance import SelectionOptions

EXAMPLES = examples(
    "ascar importance mailserver",
    "ascar importance --table results.csv --objective iops --direction max --plots figures",
    "ascar importance --table dataset:storage-v5-fileserver --objective operations --json",
    "ascar importance --table grid.parquet --objective time_s --ignore host,date --samples 32 --seed 7",
)


def importance(
    run: Annotated[
        str | None,
        typer.Argument(
            metavar="[STUDY|RUN]", help="A study's name or file (its latest run), or a run's number."
        ),
    ] = None,
    table: TableFile = None,
    objective: ObjectiveTextOrNone = None,
    direction: Direction = None,
    parameters: Parameters = None,
    ignore: Ignore = None,
    samples: Samples = None,
    seed: Seed = 1,
    rsd: Rsd = 2.0,
    across: Across = "mean",
    plots: Plots = None,
    json: Json = False,
) -> int:
    """Rank parameters by how much of the objective's variance each explains, given those ranked before it.

    Each importance has a bootstrap interval, and the order a share of resamples in which it is the same.
    """
    import numpy as np

    from ascar.analysis.table_columns import ColumnOptions
    from ascar.cli.importance_output import draw_importance, emit_importance, print_importance
    from ascar.errors import InputError
    from ascar.importance import FOR_PEOPLE

    if across not in ("max", "mean"):
        raise InputError(f"--across = {across!r}: must be max or mean")
    if direction not in (None, "min", "max"):
        raise InputError(f"--direction = {direction!r}: must be min or max")
    source = _source(run, table, ColumnOptions(objective, parameters, ignore))
    if direction is not None:
        source = replace(source, direction=direction)
    found = _ranked(
        source, samples, replace(FOR_PEOPLE, rsd_max=rsd / 100, across=across), np.random.default_rng(seed)
    )
    drawn = [] if plots is None else draw_importance(found, plots)
    (emit_importance if json else print_importance)(found, drawn)
    return 0


def _source(run: str | None, table: Path | None, columns: ColumnOptions) -> ImportanceSource:
    from ascar.analysis.importance_source import run_source, table_source
    from ascar.cli.studies import find_run
    from ascar.errors import InputError
    from ascar.history import History

    if (run is None) == (table is None):
        raise InputError("importance: name a study, or a table with --table; one of the two")
    if table is not None:
        return table_source(table, columns)
    columns.refuse()
    with History.existing() as history:
        return run_source(find_run(history, run or ""))


def _ranked(
    source: ImportanceSource, samples: int | None, rules: SelectionOptions, rng: np.random.Generator
) -> RankedImportance:
    from ascar.analysis.spectra import observations_of, sampled_rows
    from ascar.cli.importance_output import RankedImportance
    from ascar.importance import select

    observations = observations_of(source.frame, source.objective, source.sheet)
    failed = source.frame.height - len(observations.values)
    if samples is not None:
        observations = observations.rows(sampled_rows(observations, samples, rng))
    selection = select(observations, rules, rng)
    return RankedImportance(source.name, source.objective, failed, observations, selection, source.direction)
