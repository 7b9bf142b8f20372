"""Runs as one table: those of people and other programs, and complete for an import.

Beside the columns that people want, two hold everything: `trial.record`, and `trial.run` in the first row of
each run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
from polars.exceptions import PolarsError

from ascar.history import codec
from ascar.history.record import trial_record
from ascar.history.table import RECORD_COLUMN, RUN_COLUMN, trials_table
from ascar.tables import TableSource

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from ascar.results.trial import Trial
    from ascar.tables import TableLimits


def write_runs_table(
    path: Path, suffix: str, runs: Sequence[tuple[dict[str, Any], Sequence[Trial]]], *, readings: bool
) -> None:
    """Write runs to a table.

    Args:
        path: the file, whatever its name.
        suffix: ".parquet" or ".csv".
        runs: each as a record without its trials, and its trials.
        readings: include the unit readings.

    Raises:
        OSError: it cannot be written.
    """
    try:
        table = _table(runs, readings=readings)
        if suffix == ".parquet":
            table.write_parquet(path, compression="zstd")
        else:
            table.write_csv(path)
    except PolarsError as error:
        raise OSError(str(error)) from error


def rows_of_runs(path: Path, where: str, limits: TableLimits) -> Iterable[tuple[str | None, str | None]]:
    """The record of the run, if any, and of the trial, if any, of each row of a table.

    Args:
        path: the table.
        where: the file as the user named it, for messages.
        limits: what the table may have.

    Raises:
        InputError: it cannot be read within the limits.
        ValueError: it lacks the columns.
    """
    columns = (RUN_COLUMN, RECORD_COLUMN)
    try:
        frame = TableSource(path, where, limits).read(columns=columns, typed=False)
        return frame.select(columns).cast(pl.String).iter_rows()
    except PolarsError as error:
        raise ValueError(str(error)) from error


def _table(runs: Sequence[tuple[dict[str, Any], Sequence[Trial]]], *, readings: bool) -> pl.DataFrame:
    """All runs in one table; columns that only some runs have are null in the others."""
    frames: list[pl.DataFrame] = []
    for run, trials in runs:
        if not trials:
            nothing = pl.Series([None], dtype=pl.String)
            frames.append(pl.DataFrame({RUN_COLUMN: [codec.dump(run)], RECORD_COLUMN: nothing}))
            continue
        records = [codec.dump(trial_record(trial, readings=readings)) for trial in trials]
        first = [codec.dump(run), *[None] * (len(trials) - 1)]
        all_of_it = pl.Series(RECORD_COLUMN, records), pl.Series(RUN_COLUMN, first, pl.String)
        frames.append(trials_table(trials).with_columns(*all_of_it))
    table = pl.concat(frames, how="diagonal_relaxed")
    last = (RECORD_COLUMN, RUN_COLUMN)
    return table.select(*(name for name in table.columns if name not in last), *last)
