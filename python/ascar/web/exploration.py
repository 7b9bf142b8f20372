"""What is explored: rows of dimensions (what was set, under which load, where) and of metrics."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from ascar.analysis.spectra import ROWS_PER_RANGE, factor_of
from ascar.errors import InputError
from ascar.pilot.direction import lower_is_better

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from ascar.space import Space
    from ascar.web.part import RowSource

ABSENT = 0xFFFF
"""The code of a row to which a dimension does not apply."""
VALUES_MAX = 200
"""Different values of a dimension that is text: more bars than that tell nobody anything."""
UNKNOWN = 0xFF
"""Of a row of which nobody knows what a change to it costs."""
_BINS_MAX = 12
_RANGES = 8
_KEY_MAX = 1 << 62


class NothingYet(InputError):
    """There is too little to compare; of a run that goes on, there may soon be more."""


@dataclass(frozen=True, slots=True, eq=False)
class Dimension:
    """Something that was set, or was given: a parameter, the workload, the device.

    Attributes:
        name: the column's name.
        kind: "text", "boolean", "integer", "number".
        codes: uint16 (rows,), the place of each row's value in `labels`, or `ABSENT`.
        labels: the names of the values, or of ranges of values, in order.
        values: the values, JSON-ready; empty where they are cut into ranges.
        raw: float64 (rows,), the values where they are cut into ranges, NaN where there is none; else None.
        cost: the cost of a change (`ascar.space.ChangeCost`); None: unknown.
        category: the category of that cost, 0 to 3.
        given: whether it is what was measured under (load, device, study), and nothing that can be set.
    """

    name: str
    kind: str
    codes: NDArray[np.uint16]
    labels: tuple[str, ...]
    values: tuple[Any, ...]
    raw: NDArray[np.float64] | None = None
    cost: str | None = None
    category: int | None = None
    given: bool = False

    @property
    def varies(self) -> bool:
        """Whether it takes two values at least; applying or not is none."""
        taken = self.codes[self.codes != ABSENT]
        return len(taken) > 0 and bool(taken.min() != taken.max())


@dataclass(frozen=True, slots=True, eq=False)
class Metric:
    """Something that was measured.

    Attributes:
        name: the column's name.
        values: float64 (rows,); NaN where it was not measured.
        minimize: whether less is better, as far as its name says.
    """

    name: str
    values: NDArray[np.float64]
    minimize: bool


@dataclass(frozen=True, slots=True)
class RowOrigin:
    """Where rows come from.

    Attributes:
        name: the name of the file or the run.
        run_id: the run's id in the history; None: a table.
    """

    name: str
    run_id: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Exploration:
    """Everything the page shows.

    Attributes:
        name: a heading.
        dimensions: the columns that were set or given; at least one takes two values.
        metrics: the measured columns.
        objective: the name of the metric to begin with.
        minimize: whether less of it is better.
        configurations: uint32 (rows,), equal where all dimensions are.
        origins: the files and runs that the rows come from.
        origin: uint16 (rows,), each row's place in `origins`.
        trials: int32 (rows,), trial numbers; -1: none.
        notes: one line for each omission, and for percentiles of a closed loop.
        changes: uint8 (rows,), bit c set where a change from the default configuration is of category c
            (Cao, Table 9.1); `UNKNOWN` where there is no telling. None: nowhere.
    """

    name: str
    dimensions: tuple[Dimension, ...]
    metrics: tuple[Metric, ...]
    objective: str
    minimize: bool
    configurations: NDArray[np.uint32]
    origins: tuple[RowOrigin, ...]
    origin: NDArray[np.uint16]
    trials: NDArray[np.int32]
    notes: tuple[str, ...] = field(default=())
    changes: NDArray[np.uint8] | None = None

    @property
    def rows(self) -> int:
        """How many."""
        return len(self.configurations)

    def metric(self, name: str) -> Metric:
        """The metric of that name.

        Raises:
            InputError: there is none.
        """
        for one in self.metrics:
            if one.name == name:
                return one
        known = ", ".join(one.name for one in self.metrics[:40])
        raise InputError(f"metric {name!r}: does not exist; there are {known}")

    @classmethod
    def of(cls, parts: Sequence[RowSource], objective: str, minimize: bool | None) -> Exploration:
        """Parts side by side; columns that only some of them have are absent in the others.

        Args:
            parts: the parts to show side by side, at least one.
            objective: a metric of one of them.
            minimize: whether less of it is better; None: as its name says.

        Raises:
            InputError: no such metric, or a dimension of too many values.
            NothingYet: no dimension takes two values.
        """
        frame = parts[0].frame
        if len(parts) > 1:
            frame = pl.concat([part.frame for part in parts], how="diagonal_relaxed")
        names = list(dict.fromkeys(name for part in parts for name in part.dimensions))
        measured = [name for part in parts for name in part.metrics if name not in names]
        metrics = tuple(_metric(frame[name]) for name in dict.fromkeys(measured))
        space = {name: part.space for part in parts if part.space for name in part.space.names}
        given = {name for part in parts for name in part.given}
        dimensions = [
            replace(_dimension(frame[name], space.get(name)), given=name in given) for name in names
        ]
        origin = np.repeat(np.arange(len(parts), dtype=np.uint16), [part.frame.height for part in parts])
        if not any(one.varies for one in dimensions):
            raise NothingYet(
                f"{parts[0].origin.name}: no parameter takes two values, so there is nothing to compare; "
                "name the columns that were set with --parameters"
            )
        whole = cls(
            name=" and ".join(part.origin.name for part in parts[:3]) + (" ..." if len(parts) > 3 else ""),
            dimensions=tuple(dimensions),
            metrics=metrics,
            objective=objective,
            minimize=lower_is_better(objective) if minimize is None else minimize,
            configurations=_configurations(dimensions, frame.height),
            origins=tuple(part.origin for part in parts),
            origin=origin,
            trials=_numbers(frame),
            notes=tuple(dict.fromkeys(note for part in parts for note in part.notes)),
            changes=_changes(parts),
        )
        if not np.isfinite(whole.metric(objective).values).any():
            raise InputError(
                f"column {objective!r}: holds no finite number, so every trial failed; "
                "choose another objective, or measure again"
            )
        return whole


def _changes(parts: Sequence[RowSource]) -> NDArray[np.uint8] | None:
    if all(part.changes is None for part in parts):
        return None
    unknown = (np.full(part.frame.height, UNKNOWN, np.uint8) for part in parts)
    return np.concatenate(
        [other if part.changes is None else part.changes for part, other in zip(parts, unknown, strict=True)]
    )


def _metric(column: pl.Series) -> Metric:
    values = column.cast(pl.Float64).fill_null(float("nan")).to_numpy()
    return Metric(column.name, np.ascontiguousarray(values), lower_is_better(column.name))


def _dimension(column: pl.Series, space: Space | None) -> Dimension:
    """A column's values by number.

    Raises:
        InputError: it holds text of too many different values, or something else than numbers and text.
    """
    dtype = column.dtype
    if not dtype.is_numeric() and isinstance(dtype, (pl.String, pl.Categorical, pl.Enum)):
        different = column.drop_nulls().n_unique()
        if different > VALUES_MAX:
            raise InputError(
                f"column {column.name!r}: holds text of {different} different values, at most {VALUES_MAX} "
                "can be shown as bars; leave it out (ignore it), or bring alike values together"
            )
    if dtype.is_float():
        column = column.fill_nan(None)
    factor = factor_of(column, max(2, min(_RANGES, len(column) // ROWS_PER_RANGE)), _BINS_MAX)
    codes = np.where(factor.codes < 0, ABSENT, factor.codes).astype(np.uint16)
    numeric = dtype.is_numeric()
    binned = numeric and column.drop_nulls().n_unique() > _BINS_MAX
    whole = numeric and (dtype.is_integer() or _all_whole(column))
    kind = "boolean" if dtype == pl.Boolean else "integer" if whole else "number" if numeric else "text"
    labels = tuple(_label(text, kind) for text in factor.labels) if not binned else factor.labels
    raw = column.cast(pl.Float64).fill_null(float("nan")).to_numpy() if binned else None
    cost = space[column.name].cost if space is not None and column.name in space else None
    return Dimension(
        column.name,
        kind,
        codes,
        labels,
        () if binned else tuple(_value(text, kind) for text in factor.labels),
        None if raw is None else np.ascontiguousarray(raw),
        None if cost is None else cost.value,
        None if cost is None else cost.category,
    )


def _all_whole(column: pl.Series) -> bool:
    """Whether a column of floating-point numbers holds whole ones alone, as after an outer join."""
    values = column.drop_nulls()
    return bool(((values.round(0) == values) & (values.abs() < 2**53)).all())


def _label(text: str, kind: str) -> str:
    if kind == "integer":
        return str(int(float(text)))
    return text.lower() if kind == "boolean" else text


def _value(text: str, kind: str) -> str | int | float | bool:
    match kind:
        case "boolean":
            return text == "True"
        case "integer":
            return int(float(text))
        case "number":
            return float(text)
        case _:
            return text


def _configurations(dimensions: Sequence[Dimension], rows: int) -> NDArray[np.uint32]:
    """Rows of equal values by number; ranges do not make values equal."""
    key, width = np.zeros(rows, np.int64), 1
    for one in dimensions:
        codes = one.codes.astype(np.int64) if one.raw is None else _numbered(one.raw)
        codes[one.codes == ABSENT] = -1
        span = int(codes.max()) + 2
        if width * span > _KEY_MAX:
            key = _numbered(key)
            width = int(key.max()) + 1
        key = key * span + codes + 1
        width *= span
    return _numbered(key).astype(np.uint32)


def _numbered(values: NDArray[Any]) -> NDArray[np.int64]:
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


def _numbers(frame: pl.DataFrame) -> NDArray[np.int32]:
    if "trial.number" not in frame.columns or not frame["trial.number"].dtype.is_integer():
        return np.full(frame.height, -1, np.int32)
    return frame["trial.number"].cast(pl.Int32).fill_null(-1).to_numpy().astype(np.int32)
