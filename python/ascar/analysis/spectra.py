"""Importance of parameters on a table or on a system: from columns to factors, and samples of either.

Numeric columns with more than `TableRoles.bins_max` values are cut into ranges of about equally many rows,
as many as leave each at least `ROWS_PER_RANGE`; text is never binned. What is null does not apply. Rows
without a finite objective are failed trials, left out and counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, pairwise, product
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from ascar.errors import InputError
from ascar.importance import Factor, Observations, Selection, SelectionOptions, relative_deviation, select
from ascar.importance.observations import VALUES_MAX
from ascar.importance.sums import Parts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from ascar.space import Configuration, Space

ROWS_PER_RANGE = 10
_CANDIDATES = 16  # rows that compete for a place in the sample
_SETS_MAX = 20_000


@dataclass(frozen=True, slots=True)
class TableRoles:
    """How a frame is read.

    Attributes:
        parameters: the columns that were set. Empty: every column that takes at least two values, except the
            objective.
        bins_max: ranges that a numeric column is cut into at most.
    """

    parameters: tuple[str, ...] = ()
    bins_max: int = 8


def importance(
    frame: pl.DataFrame,
    objective: str,
    rules: SelectionOptions | None = None,
    sheet: TableRoles | None = None,
    seed: int = 1,
) -> Selection:
    """Which of a frame's columns matter for another one; see `ascar.importance.select`.

    Args:
        frame: a row an evaluation.
        objective: the column that was measured.
        rules: the options of the selection.
        sheet: the roles of the frame's columns.
        seed: the seed of the resampling.

    Raises:
        InputError: the frame is empty, has no such columns, or holds text where numbers belong.
    """
    observations = observations_of(frame, objective, sheet or TableRoles())
    return select(observations, rules or SelectionOptions(), np.random.default_rng(seed))


def observations_of(frame: pl.DataFrame, objective: str, sheet: TableRoles) -> Observations:
    """A frame's rows with a finite objective.

    Raises:
        InputError: see `importance`.
    """
    if frame.height == 0:
        raise InputError("the table has no rows; give one with a row for each evaluation")
    for name in (objective, *sheet.parameters):
        if name not in frame.columns:
            raise InputError(
                f"column {name!r}: the table has no such column; it has {', '.join(frame.columns[:40])}"
            )
    if objective in sheet.parameters:
        raise InputError(f"column {objective!r}: is the objective and a parameter; it can be one of them")
    column = frame[objective]
    if not column.dtype.is_numeric():
        raise InputError(f"column {objective!r}: {text_in(column)}; an objective must hold numbers")
    values = column.cast(pl.Float64).fill_null(float("nan")).to_numpy()
    measured = np.isfinite(values)
    if not measured.any():
        raise InputError(f"column {objective!r}: holds no finite number; every trial in the table failed")
    if not measured.all():
        frame, values = frame.filter(pl.Series(measured)), values[measured]
    names = sheet.parameters or tuple(name for name in frame.columns if name != objective)
    ranges = max(2, min(sheet.bins_max, len(values) // ROWS_PER_RANGE))
    factors = (factor_of(frame[name], ranges, sheet.bins_max) for name in names)
    return Observations(tuple(one for one in factors if one.varies), np.ascontiguousarray(values))


def text_in(column: pl.Series) -> str:
    """Where text stands in a column that should be numeric."""
    if column.dtype != pl.String:
        return f"holds {column.dtype}"
    wrong = column.is_not_null() & column.cast(pl.Float64, strict=False).is_null()
    row = int(wrong.arg_max() or 0)
    return f"row {row + 1} holds {str(column[row])[:40]!r}"


def factor_of(column: pl.Series, ranges: int, bins_max: int) -> Factor:
    """A column's values by number; -1 where it has none.

    Args:
        column: numbers, text or booleans.
        ranges: the number of ranges for a column with more than `bins_max` numeric values.
        bins_max: see `ranges`.

    Raises:
        InputError: it holds text of too many different values, or something else than numbers and text.
    """
    dtype = column.dtype
    if dtype == pl.Null:
        return Factor(column.name, np.full(len(column), -1, np.intp), ())
    if not (dtype.is_numeric() or isinstance(dtype, (pl.String, pl.Boolean, pl.Categorical, pl.Enum))):
        raise InputError(f"column {column.name!r}: holds {dtype}; a parameter must hold numbers or text")
    absent = column.is_null()
    if dtype.is_float():
        absent |= column.is_nan().fill_null(value=False)
    kept = column.filter(~absent) if absent.any() else column
    different = kept.n_unique()
    if dtype.is_numeric() and different > bins_max:
        codes, labels = _binned(kept.cast(pl.Float64).to_numpy(), ranges)
    elif different > VALUES_MAX:
        raise InputError(
            f"column {column.name!r}: holds text of {different} different values, at most {VALUES_MAX} "
            "can be compared; leave it out with --ignore, or bring alike values together"
        )
    else:
        ordered = kept.cast(pl.String) if isinstance(dtype, (pl.Categorical, pl.Enum)) else kept
        known = ordered.unique().sort()
        codes = _places(ordered, known)
        labels = tuple(str(value) for value in known.to_list())
    if len(kept) == len(column):
        return Factor(column.name, codes, labels)
    spread = np.full(len(column), -1, np.intp)
    spread[~absent.to_numpy()] = codes
    return Factor(column.name, spread, labels)


def _places(column: pl.Series, known: pl.Series) -> NDArray[np.intp]:
    """Each value's place among the known ones, which are in order."""
    if column.dtype == pl.Boolean or column.dtype.is_numeric():
        return np.searchsorted(known.to_numpy(), column.to_numpy()).astype(np.intp)
    names = pl.Enum(known.to_list())
    return column.cast(names).to_physical().to_numpy().astype(np.intp)


def _binned(values: NDArray[np.float64], ranges: int) -> tuple[NDArray[np.intp], tuple[str, ...]]:
    """Ranges of about equally many rows; a value that many rows have stays in one of them."""
    ordered = np.sort(values if len(values) <= 20_000 else values[:: len(values) // 20_000])
    places = (np.arange(1, ranges) * len(ordered)) // ranges
    edges = np.unique(ordered[places])
    edges = edges[edges > ordered[0]]
    if len(edges) == 0:  # most rows have the least value
        edges = ordered[ordered > ordered[0]][:1]
    codes = np.searchsorted(edges, values, side="right").astype(np.intp)
    bounds = [float(values.min()), *map(float, edges), float(values.max())]
    labels = [f"{low:g} to less than {high:g}" for low, high in pairwise(bounds[:-1])]
    return codes, (*labels, f"{bounds[-2]:g} to {bounds[-1]:g}")


def sampled_rows(observations: Observations, count: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Rows chosen as evenly over every parameter's values as the table holds them (compare 7.3.2).

    A table has the rows that it has, so a hypercube's cells may be empty. Instead each place in the sample
    goes to that one of a few random rows whose values are furthest behind their due share. On a full grid
    every value is chosen equally often, give or take one or two.

    Args:
        observations: the table.
        count: the number of rows to choose; all rows where the table has no more.
        rng: draws.

    Returns:
        Indices of rows, none twice.
    """
    rows = len(observations.values)
    widths = [len(one.labels) + 1 for one in observations.factors]
    starts = np.concatenate([[0], np.cumsum(widths)[:-1]])
    codes = np.stack([one.codes + 1 for one in observations.factors], 1) + starts
    share = np.bincount(codes.ravel(), minlength=sum(widths)) / rows
    left, taken = rng.permutation(rows), np.zeros(sum(widths))
    chosen = np.empty(min(count, rows), np.intp)
    for place in range(len(chosen)):
        open_rows = rows - place
        rivals = rng.integers(open_rows, size=_CANDIDATES)
        behind = (share * (place + 1) - taken)[codes[left[rivals]]].sum(1)
        winner = rivals[int(np.argmax(behind))]
        chosen[place] = left[winner]
        taken[codes[left[winner]]] += 1
        left[winner] = left[open_rows - 1]
    return chosen


def evaluated(
    space: Space, evaluate: Callable[[Configuration], float | None], count: int, seed: int = 1
) -> pl.DataFrame:
    """A Latin hypercube sample of a space, measured on a live system.

    Args:
        space: the space to sample.
        evaluate: measures one; None where that failed.
        count: the number of configurations to measure.
        seed: the seed of the sample.

    Returns:
        A row a configuration: its parameters (null where one does not apply) and "objective", for
        `importance`.
    """
    configurations = space.latin_hypercube(np.random.default_rng(seed), count)
    scores = [evaluate(one) for one in configurations]
    columns = [
        pl.Series(name, [one.get(name) for one in configurations], strict=False) for name in space.names
    ]
    return pl.DataFrame([*columns, pl.Series("objective", scores, pl.Float64)])


@dataclass(frozen=True, slots=True)
class FixedValues:
    """The rows in which some parameters have certain values: a point of Figs 7.2 and 7.3.

    Attributes:
        values: the fixed values, by parameter.
        rows: the number of rows.
        mean: the mean of the objective over these rows.
        rsd: the relative standard deviation of the objective over these rows (6.2).
    """

    values: tuple[tuple[str, str], ...]
    rows: int
    mean: float
    rsd: float


def fixed_values(observations: Observations, names: Sequence[str], count: int) -> list[FixedValues]:
    """Every way of fixing so many of these parameters that leaves two rows at least.

    Raises:
        InputError: they are more than can be shown.
    """
    found: list[FixedValues] = []
    chosen = [observations.factor(name) for name in names]
    for factors in combinations(chosen, count):
        number = int(np.prod([len(one.labels) for one in factors]))
        if len(found) + number > _SETS_MAX:
            raise InputError(f"{count} fixed parameters: more than {_SETS_MAX} sets of rows; fix fewer")
        found += _sets(observations, factors)
    return found


def best_values(observations: Observations, names: Sequence[str], *, maximize: bool) -> dict[str, str]:
    """The values of these parameters together with which the rows' mean is best, by parameter.

    Where one of them does not apply it is left out. Sets of one row count like others: of few rows this is
    the luckiest.

    Raises:
        InputError: no such parameter.
    """
    factors = [observations.factor(name) for name in names]
    if not factors:
        return {}
    parts = Parts.by(observations, names)
    means = np.bincount(parts.of_row, observations.values) / parts.sizes
    best = int(means.argmax() if maximize else means.argmin())
    row = int((parts.of_row == best).argmax())
    return {one.name: one.labels[one.codes[row]] for one in factors if one.codes[row] >= 0}


def _sets(observations: Observations, factors: Sequence[Factor]) -> Iterator[FixedValues]:
    applies = np.all([one.codes >= 0 for one in factors], axis=0)
    cells = np.zeros(int(applies.sum()), np.intp)
    for one in factors:
        cells = cells * len(one.labels) + one.codes[applies]
    order = np.argsort(cells, kind="stable")
    values, cells = observations.values[applies][order], cells[order]
    places = list(product(*(range(len(one.labels)) for one in factors)))
    bounds = np.searchsorted(cells, np.arange(len(places) + 1))
    for labels, low, high in zip(places, bounds[:-1], bounds[1:], strict=True):
        if high - low > 1:
            part = values[low:high]
            fixed = tuple((one.name, one.labels[place]) for one, place in zip(factors, labels, strict=True))
            yield FixedValues(fixed, len(part), float(part.mean()), relative_deviation(part))
