"""What `ascar importance` works on: a table's file, or a run of the history."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ascar.analysis.frames import trials_frame
from ascar.analysis.spectra import TableRoles
from ascar.analysis.tables import ended_trials

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

    from ascar.analysis.table_columns import ColumnOptions
    from ascar.history import Run


@dataclass(frozen=True, slots=True, eq=False)
class ImportanceSource:
    """A frame and how it is read.

    Attributes:
        name: the name of the run or table.
        frame: a row an evaluation.
        objective: the column of the objective.
        sheet: the roles of the other columns.
        direction: "min", "max"; None: not said.
    """

    name: str
    frame: pl.DataFrame
    objective: str
    sheet: TableRoles
    direction: str | None = None


def run_source(run: Run) -> ImportanceSource:
    """The trials of a run of the history.

    Raises:
        InputError: nothing was measured.
    """
    frame = trials_frame(run.trials(readings=False), run.objective)
    names = tuple(name for name in run.space.names if name in frame.columns)
    direction = run.objective.direction[:3]
    return ImportanceSource(
        f"run {run.id} ({run.name})", ended_trials(frame), "trial.score", TableRoles(names), direction
    )


def table_source(path: Path, columns: ColumnOptions) -> ImportanceSource:
    """A CSV or Parquet file, or `dataset:NAME`.

    Raises:
        InputError: the file cannot be read, or has no such columns.
    """
    frame, objective, parameters = columns.read(path)
    if "trial.state" in frame.columns:
        frame = ended_trials(frame)
    return ImportanceSource(str(path), frame, objective, TableRoles(parameters))
