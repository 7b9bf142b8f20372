"""Which columns of a recorded table are tied: what its rows tell of the constraints that it does not state.

- Columns change together where their joint values are no more than moves of one column alone would reach, see
  `ascar.space.groups`: one of several switches, equal values.
- Others are tied where some of their joint values stand in no row, although each would stand in several if
  they were independent: a sum below a cap. Where the rows have every joint value of whole numbers up to some
  sum, or from one on, and no other, the constraint is that sum.

In both cases rows have to be many enough that this is no accident. What the table never measured has no truth
in it: a search loses nothing by leaving it out.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import prod
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from ascar.expression import parse
from ascar.space import Choices
from ascar.space.relation import ROWS_MAX, Relation

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from ascar.space import Domain, Value
    from ascar.space.relation import Constraint

# Rows for each of the values that two sets of columns have: fewer show few joint values by accident.
_ROWS_MIN = 4
# Rows for each joint value of independent columns: one that stands in none of them is then no accident.
_ROWS_EACH_MIN = 8
# Columns that are looked at in pairs, for one table.
_PAIRED_MAX = 64
# Rows that are looked at before all of them are.
_GLANCE = 1024
# Sums of numbers up to here are exact.
_WHOLE_MAX = 1 << 40


@dataclass(frozen=True, slots=True, eq=False)
class _Columns:
    """Columns of a table.

    Attributes:
        names: the columns.
        codes: int (rows,), which of their joint values each row has.
        size: the number of joint values.
    """

    names: tuple[str, ...]
    codes: NDArray[np.intp]
    size: int

    def product(self, other: _Columns, rows: int | None = None) -> NDArray[np.intp]:
        """The combination of values, int (rows,), that each of the first rows has, present or not."""
        return self.codes[:rows] * other.size + other.codes[:rows]

    def joined(self, other: _Columns) -> _Columns:
        """Both, with the joint values that the rows have."""
        codes = self.product(other)
        present = np.bincount(codes, minlength=self.size * other.size) > 0
        numbers = np.cumsum(present) - 1
        return _Columns((*self.names, *other.names), numbers[codes], int(present.sum()))


def constraints_of(distinct: pl.DataFrame, domains: Mapping[str, Domain]) -> tuple[Constraint, ...]:
    """What the joint values of columns that are tied come to: a sum with a limit, or the list of them.

    Args:
        distinct: the distinct configurations of a table.
        domains: the values of columns that have a list of them, and one in every row.
    """
    # In any order but the table's, whose first rows may all be alike.
    order = np.random.default_rng(0).permutation(len(distinct))
    found: list[_Columns] = []
    for name in domains:
        column = _column(name, distinct[name], order)
        for place, columns in enumerate(found):
            if _may_join(columns, column):
                joined = columns.joined(column)
                if joined.size < columns.size + column.size and joined.size <= ROWS_MAX:
                    found[place] = joined
                    break
        else:
            found.append(column)
    together = [columns for columns in found if len(columns.names) > 1]
    single = [columns for columns in found if len(columns.names) == 1 and columns.size > 1]
    tied = _tied(single) if len(single) <= _PAIRED_MAX else []
    return tuple(_constraint(columns, distinct, domains, order) for columns in (*together, *tied))


def _column(name: str, values: pl.Series, order: NDArray[np.int64]) -> _Columns:
    ranks = (values.cast(pl.Int8) if values.dtype == pl.Boolean else values).rank("dense")
    codes = ranks.to_numpy().astype(np.intp)[order] - 1
    return _Columns((name,), codes, int(codes.max()) + 1)


def _may_join(columns: _Columns, column: _Columns) -> bool:
    """Whether the rows are enough to tell, and the first of them do not speak against it."""
    few = columns.size + column.size - 1
    if column.size == 1 or columns.size == 1 or len(column.codes) < _ROWS_MIN * few:
        return False
    return len(np.unique(columns.product(column, _GLANCE))) <= few


def _tied(single: Sequence[_Columns]) -> list[_Columns]:
    """Sets of columns some of whose joint values are missing, as far as the rows are many enough to tell."""
    sets = [[column] for column in single]
    for one, two in combinations(single, 2):
        mine = [members for members in sets if one in members or two in members]
        united = [member for members in mine for member in members]
        if len(mine) == 2 and _tell(united) and one.joined(two).size < one.size * two.size:
            sets = [*(members for members in sets if members not in mine), united]
    return [_all(members) for members in sets if len(members) > 1]


def _tell(columns: Sequence[_Columns]) -> bool:
    """Whether the rows are enough for each joint value of independent columns."""
    size = prod(column.size for column in columns)
    return size <= ROWS_MAX and len(columns[0].codes) >= _ROWS_EACH_MIN * size


def _all(columns: Sequence[_Columns]) -> _Columns:
    joined = columns[0]
    for column in columns[1:]:
        joined = joined.joined(column)
    return joined


def _constraint(
    columns: _Columns, distinct: pl.DataFrame, domains: Mapping[str, Domain], order: NDArray[np.int64]
) -> Constraint:
    names = [name for name in domains if name in columns.names]
    _, places = np.unique(columns.codes, return_index=True)
    rows = distinct.select(names)[order[places].tolist()].sort(names).rows()
    found = Relation(
        tuple(names),
        tuple(tuple(domains[name].canonical(v) for name, v in zip(names, row, strict=True)) for row in rows),
    )
    limit = _limit_of_sum(found.rows, [domains[name] for name in names])
    return found if limit is None else parse(f"{' + '.join(names)} {limit}")


def _limit_of_sum(rows: Sequence[tuple[Value, ...]], domains: Sequence[Domain]) -> str | None:
    """The limit, e.g. "<= 12", of a sum of whole numbers that allows these joint values and no other."""
    listed = [domain.values for domain in domains if isinstance(domain, Choices)]
    if len(listed) < len(domains) or prod(map(len, listed)) > ROWS_MAX:
        return None
    if not all(_is_whole(value) for values in listed for value in values):
        return None
    every = np.zeros(1, np.int64)
    for values in listed:
        every = np.add.outer(every, np.array(values, np.int64)).reshape(-1)
    sums = [sum(map(int, row)) for row in rows]
    for limit, allowed in (("<=", every <= max(sums)), (">=", every >= min(sums))):
        if np.count_nonzero(allowed) == len(rows):
            return f"{limit} {max(sums) if limit == '<=' else min(sums)}"
    return None


def _is_whole(value: Value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _WHOLE_MAX
