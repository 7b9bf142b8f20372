"""What `ascar importance` works on: a table's file, or a run of the history."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ascar.analysis.spectra import TableRoles
from ascar.analysis.tables import ended_trials, read_frame
from ascar.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl


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


def read_run(named: str) -> ImportanceSource:
    """The latest run of a study, or a run by its number.

    Raises:
        InputError: there is none, or nothing was measured.
    """
    from ascar.analysis.frames import trials_frame
    from ascar.cli.studies import find_run
    from ascar.history import History

    with History.existing() as history:
        found = find_run(history, named)
        frame = trials_frame(found.trials(readings=False), found.objective)
        names = tuple(name for name in found.space.names if name in frame.columns)
        direction = found.objective.direction[:3]
        name = f"run {found.id} ({found.name})"
    return ImportanceSource(name, ended_trials(frame), "trial.score", TableRoles(names), direction)


def read_table(
    path: Path, objective: str | None, parameters: str | None, ignore: str | None
) -> ImportanceSource:
    """A CSV or Parquet file, or `dataset:NAME`.

    Raises:
        InputError: the file cannot be read, or has no such columns.
    """
    from ascar.datasets import located
    from ascar.targets.recording_columns import name_of, own_space

    if objective is None:
        raise InputError("--objective: name the table's column that was measured")
    if parameters is not None and ignore is not None:
        raise InputError("--parameters and --ignore: give one of the two; the other columns follow")
    frame = read_frame(located(path), f"--table = {str(path)!r}")
    chosen, left_out = column_names("--parameters", parameters), column_names("--ignore", ignore)
    for option, names in (("--parameters", chosen), ("--ignore", left_out), ("--objective", (objective,))):
        for name in names:
            if name not in frame.columns:
                raise InputError(
                    f"{option} = {name!r}: the table has no such column; it has "
                    f"{', '.join(frame.columns[:40])}"
                )
    own = own_space(frame.rename({name: name_of(name) for name in frame.columns}))
    if "trial.state" in frame.columns:
        frame = ended_trials(frame)
    if not chosen and own is not None:
        chosen = tuple(name for name in own.names if name in frame.columns and name not in left_out)
    elif not chosen:
        apart = {objective, *left_out}
        chosen = tuple(name for name in frame.columns if name not in apart and not name.startswith("trial."))
    return ImportanceSource(str(path), frame, objective, TableRoles(chosen))


def column_names(option: str, text: str | None) -> tuple[str, ...]:
    """The names that an option lists.

    Raises:
        InputError: it is given and lists none.
    """
    names = tuple(dict.fromkeys(part.strip() for part in (text or "").split(",") if part.strip()))
    if text is not None and not names:
        raise InputError(f"{option} = {text!r}: must be column names with commas between them")
    return names
