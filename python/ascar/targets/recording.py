"""Recorded measurements as a table: distinct configurations, each with the rows that were measured of it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from ascar.errors import SpaceError, StudyError
from ascar.space import ChangeCost, Choices, Configuration, Parameter, Range, Space

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from ascar.space import Domain, Value

__all__ = ["Columns", "Recording", "name_of"]

FILE_BYTES_MAX = 2 * 2**30
_LISTED_MAX = 64  # a numeric column with more distinct values than this is a range
_COLUMNS_MAX = 2_000
_CACHE_MAX = 100_000
_OWN = "trial."  # what ascar's own tables say of each trial; neither set nor measured by the load


@dataclass(frozen=True, slots=True)
class Columns:
    """What the columns of a file are, by their names there or as formulas write them (see `name_of`).

    Columns whose names begin with "trial.", as in ascar's own tables, are ignored unless they are named; such
    a table knows which of the others were set.

    Attributes:
        parameters: what was set; empty: all that is neither metric, nor ignored, nor constant.
        metrics: what was measured; empty: every other numeric column. One of the two must be named.
        ignore: columns that are neither.
        seconds: the column that tells what one evaluation took; None: unknown.
    """

    parameters: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    seconds: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """A table of measurements.

    Attributes:
        space: every combination of the parameters' values; the table may hold fewer.
        configurations: the distinct ones in the table, in the order of their first rows.
        values: by metric, float64 (rows,), sorted by configuration; NaN where an evaluation failed.
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
    def read(cls, path: Path, columns: Columns, *, listed_max: int = _LISTED_MAX) -> Recording:
        """Read a CSV or Parquet file.

        Args:
            path: of the file; what does not end in .parquet or .pq is read as CSV.
            columns: what its columns are.
            listed_max: a numeric parameter with more distinct values becomes a range.

        Raises:
            StudyError: the file cannot be read, or its columns are not as said.
        """
        frame = _frame(path)
        originals = {name_of(column): column for column in frame.columns}
        renamed = frame.rename({column: name_of(column) for column in frame.columns})
        roles = _roles(renamed, columns, originals)
        return cls.of(renamed, roles, listed_max=listed_max)

    @classmethod
    def of(cls, frame: pl.DataFrame, columns: Columns, *, listed_max: int = _LISTED_MAX) -> Recording:
        """From a frame whose columns are all named in `columns`, by the names that formulas use."""
        names = columns.parameters
        numbered = frame.select(names).with_row_index("row number")
        keys = numbered.group_by(names, maintain_order=True).agg("row number")
        members: list[list[int]] = keys["row number"].to_list()
        order = np.array([row for rows in members for row in rows], np.intp)
        lengths = np.array([len(rows) for rows in members], np.intp)
        domains = {name: _domain(frame[name], listed_max) for name in names}
        distinct = keys.select(names)
        rows = [
            Configuration(
                {name: domains[name].canonical(value) for name, value in zip(names, row, strict=True)}
            )
            for row in distinct.iter_rows()
        ]
        space = Space(
            tuple(
                Parameter(name=name, domain=domains[name], default=rows[0][name], cost=ChangeCost.DYN_APP)
                for name in names
            ),
            name="table",
        )
        seconds = None if columns.seconds is None else _numbers(frame[columns.seconds])[order]
        return cls(
            space=space,
            configurations=tuple(rows),
            values={name: _numbers(frame[name])[order] for name in columns.metrics},
            seconds=seconds,
            starts=np.concatenate([[0], np.cumsum(lengths)]).astype(np.intp),
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
        numbers, and of 1 where categories differ. The first in the table is taken among equals.
        """
        place = self._places.get(configuration, self._snapped.get(configuration))
        if place is not None:
            return place
        point = _point(self.space, configuration)
        categorical = np.array([not _numeric(self.space.domain(name)) for name in self.space.names])
        difference = np.abs(self._points - point)
        difference[:, categorical] = difference[:, categorical] > 0
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


def name_of(column: str) -> str:
    """A column's name as formulas write it: what is no letter, digit or "_" becomes "_"."""
    name = re.sub(r"[^A-Za-z0-9_]", "_", column) or "_"
    return f"_{name}" if name[0].isdigit() else name


def _frame(path: Path) -> pl.DataFrame:
    """The file as a frame; no two of its columns have the same name in formulas."""
    shown = f"table {str(path)!r}"
    try:
        if not path.is_file():
            raise StudyError(f"{shown}: no such file; give the path of a CSV or Parquet file")
        if path.stat().st_size > FILE_BYTES_MAX:
            raise StudyError(f"{shown}: larger than {FILE_BYTES_MAX} bytes; keep the columns that are needed")
        if path.suffix.lower() in (".parquet", ".pq"):
            frame = pl.read_parquet(path)
        else:
            frame = pl.read_csv(path, infer_schema_length=None)
    except (OSError, pl.exceptions.PolarsError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise StudyError(f"{shown}: cannot be read: {reason}; it must be a CSV or Parquet file") from error
    if frame.height == 0 or frame.width == 0:
        raise StudyError(f"{shown}: has no rows; give a table of measurements")
    if frame.width > _COLUMNS_MAX:
        raise StudyError(f"{shown}: has {frame.width} columns; at most {_COLUMNS_MAX}")
    renamed = {column: name_of(column) for column in frame.columns}
    if len(set(renamed.values())) < len(renamed):
        twice = [column for column, name in renamed.items() if list(renamed.values()).count(name) > 1]
        raise StudyError(f"{shown}: columns {twice} have the same name in formulas; rename all but one")
    return frame


def _roles(frame: pl.DataFrame, columns: Columns, originals: Mapping[str, str]) -> Columns:
    """The columns with nothing left to be inferred; messages call them as the file does."""
    all_of_them = ", ".join(list(originals.values())[:40])
    asked = {
        key: tuple(_known(originals, f"target.{key}", name) for name in names)
        for key, names in (
            ("parameters", columns.parameters),
            ("metrics", columns.metrics),
            ("ignore", columns.ignore),
            ("seconds", () if columns.seconds is None else (columns.seconds,)),
        )
    }
    named = [name for names in asked.values() for name in names]
    for name in named:
        if named.count(name) > 1:
            raise StudyError(f"target: column {originals[name]!r} is given two roles; name it once")
    if not asked["parameters"] and not asked["metrics"]:
        raise StudyError(f"target: name the metrics or the parameters among the columns {all_of_them}")
    left = [name for name in frame.columns if name not in named and not originals[name].startswith(_OWN)]
    tuned = _tuned(frame)
    parameters = asked["parameters"] or tuple(
        name for name in left if frame[name].n_unique() > 1 and (not tuned or name in tuned)
    )
    if tuned:
        left = [name for name in left if name not in tuned]
    metrics = asked["metrics"] or tuple(name for name in left if frame[name].dtype.is_numeric())
    if not parameters or not metrics:
        lacking = "metrics" if parameters else "parameters"
        raise StudyError(f"target.{lacking}: none is left among the columns {all_of_them}")
    for name in (*metrics, *asked["seconds"]):
        if not frame[name].dtype.is_numeric():
            raise StudyError(
                f"target: column {originals[name]!r} holds {frame[name].dtype}, but a metric must be numeric"
            )
    for name in parameters:
        _check_parameter(originals[name], frame[name])
    return Columns(parameters, metrics, (), asked["seconds"][0] if asked["seconds"] else None)


def _tuned(frame: pl.DataFrame) -> frozenset[str]:
    """The parameters of the run that a table of ascar's own holds; empty where it is another table."""
    name = name_of(f"{_OWN}run")
    if name not in frame.columns or frame[name].dtype != pl.String:
        return frozenset()
    try:
        run = json.loads(frame[name].drop_nulls()[0])
        return frozenset(name_of(str(parameter["name"])) for parameter in run["space"]["parameters"])
    except (IndexError, KeyError, TypeError, ValueError):
        return frozenset()


def _known(originals: Mapping[str, str], key: str, name: str) -> str:
    """A column by its name in the file or in formulas."""
    if name_of(name) not in originals:
        raise StudyError(
            f"{key}: {name!r} is no column; the table has {', '.join(list(originals.values())[:40])}"
        )
    return name_of(name)


def _check_parameter(name: str, column: pl.Series) -> None:
    if not (column.dtype.is_numeric() or isinstance(column.dtype, (pl.String, pl.Boolean))):
        raise StudyError(f"target.parameters: column {name!r} holds {column.dtype}; must be numbers or text")
    missing = column.is_null() | (
        column.is_nan() | column.is_infinite() if column.dtype.is_float() else False
    )
    if missing.any():
        row = int(missing.arg_max() or 0) + 1
        raise StudyError(
            f"target.parameters: column {name!r} has no value in row {row}; fill it, or ignore the column"
        )


def _domain(column: pl.Series, listed_max: int) -> Domain:
    """The values of a parameter's column: a list, or a range where numbers are many."""
    try:
        values: Sequence[Value] = column.unique(maintain_order=True).to_list()
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


def _numbers(column: pl.Series) -> NDArray[np.float64]:
    """float64; NaN where there is no finite number."""
    numbers = column.cast(pl.Float64).fill_null(float("nan")).to_numpy()
    return np.where(np.isfinite(numbers), numbers, np.nan)


def _numeric(domain: Domain) -> bool:
    return isinstance(domain, Range) or domain.ordered


def _point(space: Space, configuration: Mapping[str, Any]) -> NDArray[np.float64]:
    """(parameters,): positions of numbers between the least and greatest, ranks of categories."""
    point = np.empty(len(space.names))
    for index, name in enumerate(space.names):
        domain, value = space.domain(name), configuration[name]
        if isinstance(domain, Range):
            point[index] = domain.position(value)
        elif domain.ordered:
            low, high = float(domain.values[0]), float(domain.values[-1])
            point[index] = (float(value) - low) / (high - low) if high > low else 0.0
        else:
            point[index] = domain.values.index(value)
    return point
