"""Recorded measurements as a table: distinct configurations, each with the rows that were measured of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from ascar.datasets import located
from ascar.errors import SpaceError, StudyError
from ascar.space import ChangeCost, Choices, Configuration, Parameter, Range, Space
from ascar.systems.recording_columns import TableColumns, ended, name_of, own_space, roles_of
from ascar.systems.recording_relations import constraints_of
from ascar.tables import TableLimits, TableSource

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from ascar.space import Domain, Value

FILE_BYTES_MAX = 2 * 2**30
_LISTED_MAX = 64  # a numeric column with more distinct values than this is a range
_COLUMNS_MAX = 2_000
_CACHE_MAX = 100_000


@dataclass(frozen=True, slots=True, eq=False)
class MeasurementTable:
    """A table of measurements.

    Attributes:
        space: the space. A table that ascar made brings the space that was measured; for any other table it
            is every combination of the parameters' values, but for parameters that the rows show to be tied:
            these have the joint values of the rows. The table may hold fewer configurations.
        configurations: the distinct ones in the table, in the order of their first rows.
        values: the values of each metric, float64 (rows,), sorted by configuration; NaN where an evaluation
            failed.
        seconds: float64 (rows,), what each evaluation took; None where unknown.
        starts: int (configurations + 1,), where each configuration's rows begin.
    """

    space: Space
    configurations: tuple[Configuration, ...]
    values: Mapping[str, NDArray[np.float64]]
    seconds: NDArray[np.float64] | None
    starts: NDArray[np.intp]
    _places: dict[Configuration, int] = field(default_factory=dict[Configuration, int])
    _points: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 0)))
    _snapped: dict[Configuration, int] = field(default_factory=dict[Configuration, int])

    @classmethod
    def read(cls, path: Path, columns: TableColumns, *, listed_max: int = _LISTED_MAX) -> MeasurementTable:
        """Read a CSV or Parquet file.

        Args:
            path: the file, or `dataset:NAME`. A file that does not end in .parquet or .pq is read as CSV.
            columns: the roles of the file's columns.
            listed_max: a numeric parameter with more distinct values becomes a range.

        Raises:
            StudyError: the file cannot be read, or its columns are not as said.
        """
        path = located(path)
        frame = _frame(path)
        originals = {name_of(column): column for column in frame.columns}
        renamed = frame.rename({column: name_of(column) for column in frame.columns})
        own = None if columns.parameters else own_space(renamed)
        roles = roles_of(renamed, columns, originals, own)
        measured = ended(renamed, path)
        if own is not None:
            # What applied to none of the trials has no column.
            never = [name for name in own.names if name not in measured.columns]
            absent = (pl.lit(None).alias(name) for name in never)
            return cls.in_space(measured.with_columns(absent), roles, own)
        return cls.of(measured, roles, listed_max=listed_max)

    @classmethod
    def of(
        cls, frame: pl.DataFrame, columns: TableColumns, *, listed_max: int = _LISTED_MAX
    ) -> MeasurementTable:
        """From a frame whose columns are all named in `columns`, by the names that formulas use."""
        names = columns.parameters
        distinct, members = _distinct(frame, names)
        domains = {name: _domain(frame[name], listed_max) for name in names}
        rows = [
            Configuration(
                {
                    name: domains[name].canonical(value)
                    for name, value in zip(names, row, strict=True)
                    if value is not None
                }
            )
            for row in distinct.iter_rows()
        ]
        first = {name: next(row[name] for row in rows if name in row) for name in names}
        space = Space(
            tuple(
                Parameter(name=name, domain=domains[name], default=first[name], cost=ChangeCost.DYN_APP)
                for name in names
            ),
            constraints_of(
                distinct,
                {name: domains[name] for name in names if _tellable(domains[name], distinct[name])},
            ),
            name="table",
        )
        return cls._made(frame, columns, space, rows, members)

    @classmethod
    def in_space(cls, frame: pl.DataFrame, columns: TableColumns, space: Space) -> MeasurementTable:
        """From a frame of configurations of a known space; a parameter that does not apply is null.

        Raises:
            StudyError: a row is not a configuration of the space.
        """
        names = columns.parameters
        distinct, members = _distinct(frame, names)
        rows: list[Configuration] = []
        for row, places in zip(distinct.iter_rows(), members, strict=True):
            known = zip(names, row, strict=True)
            try:
                rows.append(
                    space.validate({name: _value(space, name, v) for name, v in known if v is not None})
                )
            except SpaceError as error:
                raise StudyError(f"table: row {places[0] + 1}: {error.message}") from error
        return cls._made(frame, columns, space, rows, members)

    @classmethod
    def _made(
        cls,
        frame: pl.DataFrame,
        columns: TableColumns,
        space: Space,
        rows: Sequence[Configuration],
        members: Sequence[Sequence[int]],
    ) -> MeasurementTable:
        order = np.array([row for places in members for row in places], np.intp)
        seconds = None if columns.seconds is None else _numbers(frame[columns.seconds])[order]
        return cls(
            space=space,
            configurations=tuple(rows),
            values={name: _numbers(frame[name])[order] for name in columns.metrics},
            seconds=seconds,
            starts=np.concatenate([[0], np.cumsum([len(places) for places in members])]).astype(np.intp),
            _places={row: index for index, row in enumerate(rows)},
            _points=np.array([_point(space, row) for row in rows], np.float64),
        )

    def __len__(self) -> int:
        return len(self.configurations)

    @property
    def complete(self) -> bool:
        """Whether every configuration of the space was measured."""
        return self.space.count() == len(self)

    def rows(self, index: int) -> slice:
        """Where a configuration's rows are."""
        return slice(int(self.starts[index]), int(self.starts[index + 1]))

    def place(self, configuration: Configuration) -> int | None:
        """The index of a configuration; None where it was not measured."""
        return self._places.get(configuration)

    def nearest(self, configuration: Configuration) -> int:
        """The index of the measured configuration nearest to one.

        The distance is Gower's: over the parameters, the sum of differences over the column's range for
        numbers, and of 1 where categories differ or a parameter applies to one of the two alone; but 0 where
        the space does not know which parameters apply. The first in the table is taken among equals.
        """
        place = self._places.get(configuration, self._snapped.get(configuration))
        if place is not None:
            return place
        point = _point(self.space, configuration)
        categorical = np.array([not _numeric(self.space.domain(name)) for name in self.space.names])
        difference = np.abs(self._points - point)
        difference[:, categorical] = difference[:, categorical] > 0
        absent = np.isnan(self._points) | np.isnan(point)
        known = any(parameter.condition is not None for parameter in self.space.parameters)
        difference[absent] = (np.isnan(self._points) != np.isnan(point))[absent] if known else 0.0
        place = int(np.argmin(difference.sum(1)))
        if len(self._snapped) < _CACHE_MAX:
            self._snapped[configuration] = place
        return place

    def truth(self, metric: str) -> NDArray[np.float64]:
        """float64 (configurations,): mean of each one's successful rows; NaN where none succeeded."""
        values = self.values[metric]
        good = np.isfinite(values)
        sums = np.add.reduceat(np.where(good, values, 0.0), self.starts[:-1])
        counts = np.add.reduceat(good.astype(np.float64), self.starts[:-1])
        return np.divide(sums, counts, out=np.full(len(self), np.nan), where=counts > 0)


def _frame(path: Path) -> pl.DataFrame:
    """The file as a frame; no two of its columns have the same name in formulas."""
    shown = f"table {str(path)!r}"
    limits = TableLimits(columns_max=_COLUMNS_MAX, file_bytes_max=FILE_BYTES_MAX)
    frame = TableSource(path, shown, limits, StudyError).read()
    if frame.height == 0 or frame.width == 0:
        raise StudyError(f"{shown}: has no rows; give a table of measurements")
    renamed = {column: name_of(column) for column in frame.columns}
    if len(set(renamed.values())) < len(renamed):
        twice = [column for column, name in renamed.items() if list(renamed.values()).count(name) > 1]
        raise StudyError(f"{shown}: columns {twice} have the same name in formulas; rename all but one")
    return frame


def _distinct(frame: pl.DataFrame, names: Sequence[str]) -> tuple[pl.DataFrame, list[list[int]]]:
    """The different rows of some columns, in the order of their first, and where each of them stands."""
    numbered = frame.select(names).with_row_index("row number")
    keys = numbered.group_by(names, maintain_order=True).agg("row number")
    return keys.select(names), keys["row number"].to_list()


def _value(space: Space, name: str, value: Any) -> Any:
    """A cell as the parameter holds it; a CSV file has whole numbers as fractions where some are null."""
    parameter = space[name]
    if isinstance(value, str):
        return parameter.parse(value)
    if isinstance(value, float) and value.is_integer():
        return parameter.canonical(int(value))
    return parameter.canonical(value)


def _domain(column: pl.Series, listed_max: int) -> Domain:
    """The values of a parameter's column: a list, or a range where numbers are many."""
    try:
        values: Sequence[Value] = column.drop_nulls().unique(maintain_order=True).to_list()
        if not column.dtype.is_numeric():
            return Choices(tuple(sorted(values)) if column.dtype == pl.Boolean else tuple(values))
        ordered = sorted(values)
        if len(ordered) <= listed_max:
            return Choices(tuple(ordered), ordered=True)
        low, high = float(ordered[0]), float(ordered[-1])
        integral = all(float(value).is_integer() for value in ordered)
        return Range(low, high, integer=integral)
    except SpaceError as error:
        raise StudyError(f"target.parameters: column {column.name!r}: {error.message}") from error


def _tellable(domain: Domain, column: pl.Series) -> bool:
    """Whether a column can be told to change together with others: a list of values, in every row."""
    return isinstance(domain, Choices) and column.null_count() == 0


def _numbers(column: pl.Series) -> NDArray[np.float64]:
    """float64; NaN where there is no finite number."""
    numbers = column.cast(pl.Float64).fill_null(float("nan")).to_numpy()
    return np.where(np.isfinite(numbers), numbers, np.nan)


def _numeric(domain: Domain) -> bool:
    return isinstance(domain, Range) or domain.ordered


def _point(space: Space, configuration: Mapping[str, Any]) -> NDArray[np.float64]:
    """(parameters,): positions of numbers from least to greatest, ranks of categories; NaN: absent."""
    point = np.full(len(space.names), np.nan)
    for index, name in enumerate(space.names):
        domain, value = space.domain(name), configuration.get(name)
        if value is None:
            continue
        if isinstance(domain, Range):
            point[index] = domain.position(value)
        elif domain.ordered:
            low, high = float(domain.values[0]), float(domain.values[-1])
            point[index] = (float(value) - low) / (high - low) if high > low else 0.0
        else:
            point[index] = domain.values.index(value)
    return point
