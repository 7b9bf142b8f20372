"""Runs of configurations that were measured more than once, by configuration and in order of their times."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import polars.selectors as cs

from ascar.analysis.spectra import text_in
from ascar.analysis.variation_latency import is_latency
from ascar.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from ascar.results.measurement import Series

_NAMES_SHOWN = 40
_LARGEST = 1e100  # its square is a number too


@dataclass(frozen=True, slots=True, eq=False)
class FrameLayout:
    """What the columns of a frame are, and what is known beside it.

    Attributes:
        objective: the column that was measured.
        parameters: the columns that were set; none: all rows are of one configuration.
        order: the column that sorts runs by time: numbers, or instants in ISO 8601; None: unknown.
        setup: the column that names the set-up of a run (which format, which image); None: unknown.
        series: readings of each row, None where there are none; empty: of no row.
        title: the measured quantity as people call it; empty: the column's name.
        rate: the name and unit of the rate that the readings give.
        note: a caveat about the readings for the reader; empty: none.
        lazily: whether a file system may have been initialised after its set-up; None: unknown.
    """

    objective: str
    parameters: tuple[str, ...] = ()
    order: str | None = None
    setup: str | None = None
    series: Sequence[Series | None] = ()
    title: str = ""
    rate: str = ""
    note: str = ""
    lazily: bool | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Runs:
    """Configurations with at least two runs each.

    Attributes:
        objective: the column that was measured.
        names: the parameters' names.
        values: (k, names) what the configurations are; null where a parameter does not apply.
        bounds: intp (k + 1,); the runs of configuration i are those from bounds[i] to bounds[i + 1], in the
            order of time where that is known, else in that of the table.
        scores: float64 (n,), one a run.
        at: float64 (n,), what places each run in time; None: unknown.
        clock: whether that is seconds since 1970.
        setup: intp (n,), runs with the same number shared one set-up; None: unknown.
        series: (n,) readings; None where a run has none.
        columns: float64 (n,) by name: the columns of latencies, NaN where there is none.
        alone: configurations left out because they were measured once.
        failed: rows left out because they have no finite objective.
        zero: configurations left out because the mean of their runs is 0.
        title: see `FrameLayout`.
        rate: see `FrameLayout`.
        note: see `FrameLayout`.
        lazily: see `FrameLayout`.
    """

    objective: str
    names: tuple[str, ...]
    values: pl.DataFrame
    bounds: NDArray[np.intp]
    scores: NDArray[np.float64]
    at: NDArray[np.float64] | None
    clock: bool
    setup: NDArray[np.intp] | None
    series: Sequence[Series | None]
    columns: Mapping[str, NDArray[np.float64]] = field(default_factory=dict[str, "NDArray[np.float64]"])
    alone: int = 0
    failed: int = 0
    zero: int = 0
    title: str = ""
    rate: str = ""
    note: str = ""
    lazily: bool | None = None

    def __len__(self) -> int:
        return len(self.bounds) - 1

    @property
    def counts(self) -> NDArray[np.intp]:
        """(k,) runs of each configuration."""
        return np.diff(self.bounds)

    @property
    def owner(self) -> NDArray[np.intp]:
        """(n,) the configuration of each run."""
        return np.repeat(np.arange(len(self)), self.counts)

    @property
    def varying(self) -> tuple[str, ...]:
        """Parameters that not all configurations have in common."""
        known = {name: self.values[name].drop_nulls().n_unique() for name in self.names}
        apart = tuple(name for name, count in known.items() if count > 1)
        # Where no values differ, what applies or does not is all that is left.
        return apart or tuple(name for name in self.names if self.values[name].n_unique() > 1)

    def of(self, place: int) -> slice:
        """Where the runs of a configuration are."""
        return slice(int(self.bounds[place]), int(self.bounds[place + 1]))

    def configuration(self, place: int) -> dict[str, object]:
        """A configuration's values; what does not apply is absent."""
        return {
            name: value for name, value in self.values.row(place, named=True).items() if value is not None
        }

    def only(self, kept: NDArray[np.bool_]) -> Runs:
        """The configurations for which `kept` (k,) is true."""
        rows = np.flatnonzero(np.repeat(kept, self.counts))
        return self._rows(rows, self.values.filter(pl.Series(kept)), self.counts[kept])

    def first(self, count: int) -> Runs:
        """The first so many runs of every configuration that has them: ranges of these can be compared."""
        kept = self.only(self.counts >= count)
        rows = (kept.bounds[:-1, None] + np.arange(count)).ravel()
        return kept._rows(rows, kept.values, np.full(len(kept), count))

    def _rows(self, rows: NDArray[np.intp], values: pl.DataFrame, counts: NDArray[np.intp]) -> Runs:
        return replace(
            self,
            values=values,
            bounds=np.concatenate([[0], np.cumsum(counts)]).astype(np.intp),
            scores=self.scores[rows],
            at=None if self.at is None else self.at[rows],
            setup=None if self.setup is None else self.setup[rows],
            series=[self.series[row] for row in rows] if self.series else (),
            columns={name: column[rows] for name, column in self.columns.items()},
        )


def runs_of(frame: pl.DataFrame, layout: FrameLayout) -> Runs:
    """The runs in a frame, a row each, by configuration.

    Raises:
        InputError: a column is missing or holds what it must not, or no configuration was measured twice.
    """
    _check_columns(frame, layout)
    scores = frame[layout.objective].cast(pl.Float64).fill_null(math.nan).to_numpy()
    measured = np.isfinite(scores)
    if measured.any() and np.abs(scores[measured]).max() > _LARGEST:
        raise InputError(f"column {layout.objective!r}: holds numbers beyond {_LARGEST:g}; use a larger unit")
    instants = None if layout.order is None else _instants(frame[layout.order])
    if instants is not None and layout.order is not None and np.isnan(instants[0][measured]).any():
        raise InputError(f"column {layout.order!r}: some runs have none; it must place every run in time")
    kept = np.flatnonzero(measured)
    if instants is not None:
        kept = kept[np.argsort(instants[0][kept], kind="stable")]
    names = layout.parameters
    # Grouping without a name is not defined; one constant stands for the one configuration.
    keys = (
        frame.select(names).with_columns(cs.float().fill_nan(None))[kept]
        if names
        else pl.DataFrame({"": np.zeros(len(kept), np.int8)})
    )
    groups = keys.with_row_index("#row").group_by(keys.columns, maintain_order=True).agg(pl.col("#row"))
    counts = groups["#row"].list.len().to_numpy().astype(np.intp)
    rows = groups["#row"].explode().to_numpy().astype(np.intp)
    alone = int((counts < 2).sum())
    if alone == len(counts):
        raise InputError(_none_twice(layout, len(counts)))
    known = {*names, layout.objective, layout.order, layout.setup}
    columns = {
        name: frame[name].cast(pl.Float64).fill_null(math.nan).to_numpy()[kept[rows]]
        for name in frame.columns
        if name not in known and is_latency(name) and frame[name].dtype.is_numeric()
    }
    every: NDArray[np.intp] = kept[rows]
    numbers: list[int] = every.tolist()
    found = Runs(
        layout.objective,
        names,
        groups.select(names),
        np.concatenate([[0], np.cumsum(counts)]).astype(np.intp),
        scores[every],
        None if instants is None else instants[0][every],
        instants is not None and instants[1],
        None if layout.setup is None else _numbered(frame[layout.setup])[every],
        tuple(layout.series[row] for row in numbers) if layout.series else (),
        columns,
        alone,
        int((~measured).sum()),
        title=layout.title or layout.objective,
        rate=layout.rate or layout.title or layout.objective,
        note=layout.note,
        lazily=layout.lazily,
    )
    if not names:
        found = replace(found, values=pl.DataFrame({"all": ["all"]}), names=("all",))
    means = np.add.reduceat(found.scores, found.bounds[:-1]) / counts
    zero = (means == 0) & (counts > 1)
    found = replace(found.only((counts > 1) & ~zero), zero=int(zero.sum()))
    if not len(found):
        raise InputError(
            f"column {layout.objective!r}: its mean is 0 everywhere; nothing is relative to that"
        )
    return found


def _check_columns(frame: pl.DataFrame, layout: FrameLayout) -> None:
    if len(set(frame.columns)) != len(frame.columns) or "#row" in frame.columns:
        raise InputError("a column is called '#row'; rename it")
    for name in (layout.objective, *layout.parameters, layout.order, layout.setup):
        if name is not None and name not in frame.columns:
            shown = ", ".join(frame.columns[:_NAMES_SHOWN])
            raise InputError(f"column {name!r}: does not exist; there are {shown}")
    if layout.objective in layout.parameters:
        raise InputError(
            f"column {layout.objective!r}: is the objective and a parameter; it can be one of them"
        )
    column = frame[layout.objective]
    if not column.dtype.is_numeric():
        raise InputError(f"column {layout.objective!r}: {text_in(column)}; an objective must hold numbers")
    for name in layout.parameters:
        if frame[name].dtype.is_nested():
            raise InputError(f"column {name!r}: holds {frame[name].dtype}; a parameter is a number or a text")


def _none_twice(layout: FrameLayout, configurations: int) -> str:
    if not configurations:
        return f"column {layout.objective!r}: holds no number; nothing was measured"
    names = ", ".join(layout.parameters[:_NAMES_SHOWN])
    return (
        f"none of {configurations} configurations was measured twice, so nothing is known of variation; "
        "measure with `ascar sweep --replicates`; of a table, name what was set with --parameters "
        f"(taken for that: {names})"
    )


def _instants(column: pl.Series) -> tuple[NDArray[np.float64], bool]:
    """What sorts by time, and whether it is seconds since 1970."""
    if column.dtype.is_numeric():
        return column.cast(pl.Float64).fill_null(math.nan).to_numpy(), False
    if column.dtype == pl.String:
        column = column.str.replace(r"Z$", "+00:00").str.to_datetime(
            "%+", strict=False, time_unit="us", time_zone="UTC"
        )
    if column.dtype.is_temporal() and column.null_count() < len(column):
        stamps = column.cast(pl.Datetime("us", "UTC")).dt.epoch("us")
        return stamps.cast(pl.Float64).fill_null(math.nan).to_numpy() / 1e6, True
    raise InputError(
        f"column {column.name!r}: must hold numbers or instants such as 2030-01-31T12:00:00+00:00"
    )


def _numbered(column: pl.Series) -> NDArray[np.intp]:
    """Equal values by equal numbers."""
    return column.cast(pl.String).fill_null("").rank("dense").to_numpy().astype(np.intp)
