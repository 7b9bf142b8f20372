"""`ascar importance`: which parameters matter."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

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
    examples,
)

if TYPE_CHECKING:
    import numpy as np

    from ascar.cli.importance_output import RankedImportance
    from ascar.cli.importance_source import ImportanceSource
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
    across: Across = "max",
    plots: Plots = None,
    json: Json = False,
) -> int:
    """Rank parameters by how much of the objective's variance each explains, given those ranked before it.

    Each importance has a bootstrap interval, and the order a share of resamples in which it is the same.
    """
    import numpy as np

    from ascar.cli.importance_output import draw_importance, emit_importance, print_importance
    from ascar.errors import InputError
    from ascar.importance import SelectionOptions

    if across not in ("max", "mean"):
        raise InputError(f"--across = {across!r}: must be max or mean")
    if direction not in (None, "min", "max"):
        raise InputError(f"--direction = {direction!r}: must be min or max")
    source = _source(run, table, _Columns(objective, parameters, ignore))
    if direction is not None:
        source = replace(source, direction=direction)
    found = _ranked(
        source, samples, SelectionOptions(rsd_max=rsd / 100, across=across), np.random.default_rng(seed)
    )
    drawn = [] if plots is None else draw_importance(found, plots)
    (emit_importance if json else print_importance)(found, drawn)
    return 0


@dataclass(frozen=True, slots=True)
class _Columns:
    """The options that say what a table's columns are."""

    objective: str | None
    parameters: str | None
    ignore: str | None


def _source(run: str | None, table: Path | None, columns: _Columns) -> ImportanceSource:
    from ascar.cli.importance_source import read_run, read_table
    from ascar.errors import InputError

    if (run is None) == (table is None):
        raise InputError("importance: name a study, or a table with --table; one of the two")
    if table is not None:
        return read_table(table, columns.objective, columns.parameters, columns.ignore)
    for option in ("objective", "parameters", "ignore"):
        value = getattr(columns, option)
        if value is not None:
            raise InputError(f"--{option} = {value!r}: a run knows that; leave it out, or give a --table")
    return read_run(run or "")


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
