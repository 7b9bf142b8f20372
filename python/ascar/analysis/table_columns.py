"""What a user says of a table's columns, checked against the table."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from ascar.analysis.tables import read_frame
from ascar.datasets import located
from ascar.errors import InputError
from ascar.names import names_of
from ascar.systems.recording_columns import name_of, own_space

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import polars as pl

_SHOWN_MAX = 40


@dataclass(frozen=True, slots=True)
class ColumnOptions:
    """The options that say what a table's columns are; None: not given.

    Attributes:
        objective: the column that was measured.
        parameters: the columns that are parameters, with commas between them.
        ignore: the columns to leave out, with commas between them.
        order: the column that orders the rows in time.
        setup: the column that numbers the set-ups.
        series: the metric whose readings over time are used.
    """

    objective: str | None = None
    parameters: str | None = None
    ignore: str | None = None
    order: str | None = None
    setup: str | None = None
    series: str | None = None

    def refuse(self) -> None:
        """Refuse every option beside a run of the history, which knows its columns.

        Raises:
            InputError: an option is given.
        """
        for one in fields(self):
            value = getattr(self, one.name)
            if value is not None:
                raise InputError(f"--{one.name} = {value!r}: applies only to a --table; leave it out")

    def read(
        self, path: Path, is_measured: Callable[[str], bool] = lambda _: False
    ) -> tuple[pl.DataFrame, str, tuple[str, ...]]:
        """Read a CSV or Parquet file, or `dataset:NAME`.

        Args:
            path: the table.
            is_measured: whether a column that no option names is a measurement, by its name.

        Returns:
            The table, the column of its objective, and the columns of its parameters: those that are named,
            those of the space that the table brings along, or all that are left.

        Raises:
            InputError: the file cannot be read, or has no such columns.
        """
        if self.objective is None:
            raise InputError("--objective: name the table's column that was measured")
        if self.parameters is not None and self.ignore is not None:
            raise InputError("--parameters and --ignore: give one of the two; the other columns follow")
        frame = read_frame(located(path), f"--table = {str(path)!r}")
        chosen = column_names("--parameters", self.parameters)
        left_out = column_names("--ignore", self.ignore)
        single = {"--objective": self.objective, "--order": self.order, "--setup": self.setup}
        named = {"--parameters": chosen, "--ignore": left_out}
        named |= {option: (name,) for option, name in single.items() if name}
        for option, names in named.items():
            for name in names:
                if name not in frame.columns:
                    shown = ", ".join(frame.columns[:_SHOWN_MAX])
                    raise InputError(f"{option} = {name!r}: the table has no such column; it has {shown}")
        own = own_space(frame.rename({name: name_of(name) for name in frame.columns}))
        if not chosen and own is not None:
            chosen = tuple(name for name in own.names if name in frame.columns and name not in left_out)
        elif not chosen:
            apart = {*single.values(), *left_out}
            chosen = tuple(
                name
                for name in frame.columns
                if name not in apart and not name.startswith("trial.") and not is_measured(name)
            )
        return frame, self.objective, chosen


def column_names(option: str, text: str | None) -> tuple[str, ...]:
    """The columns that an option lists; none where it is not given.

    Raises:
        InputError: it is given and lists none.
    """
    return () if text is None else names_of(option, text)
