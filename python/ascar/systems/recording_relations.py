"""Which columns of a recorded table are tied: what its rows tell of the constraints that it does not state.

- Columns change together where their joint values are no more than moves of one column alone would reach, see
  `ascar.space.groups`: one of several switches, equal values.
- Others are tied where some of their joint values stand in no row, although each would stand in several if
  they were independent: a sum below a cap.

In both cases rows have to be many enough that this is no accident. What the table never measured has no truth
in it: a search loses nothing by leaving it out.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from ascar.space.relation import ROWS_MAX, Relation

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from ascar.space import Configuration, Value

# Rows for each of the values that two sets of columns have: fewer show few joint values by accident.
_ROWS_MIN = 4
# Rows for each joint value of independent columns: one that stands in none of them is then no accident.
_ROWS_EACH_MIN = 8
# Columns that are looked at in pairs, for one table.
_PAIRED_MAX = 64
# Rows that are looked at before all of them are.
_GLANCE = 1024
# Sets whose joint values are counted in all rows, for one table.
_COUNTS_MAX = 2_000


@dataclass(slots=True, eq=False)
class _Joint:
    """Columns that change together.

    Attributes:
        names: the columns.
        codes: int (rows,), which joint value each row has.
        size: the number of joint values.
    """

    names: tuple[str, ...]
    codes: NDArray[np.int64]
    size: int


def relations_of(rows: Sequence[Configuration], names: Sequence[str]) -> tuple[Relation, ...]:
    """The joint values of columns that only change together.

    Args:
        rows: the distinct configurations of a table.
        names: columns with a list of values, present in every row.
    """
    # In any order but the table's, whose first rows may all be alike.
    shuffled = [rows[int(place)] for place in np.random.default_rng(0).permutation(len(rows))]
    found: list[_Joint] = []
    counts = 0
    for name in names:
        column = _column(name, shuffled)
        for joint in found if column.size > 1 and counts < _COUNTS_MAX else ():
            if not _may_join(joint, column):
                continue
            counts += 1
            together, codes = np.unique(joint.codes * column.size + column.codes, return_inverse=True)
            if len(together) < joint.size + column.size and len(together) <= ROWS_MAX:
                joint.names += (name,)
                joint.codes, joint.size = codes.astype(np.int64), len(together)
                break
        else:
            found.append(column)
    together = [joint for joint in found if len(joint.names) > 1]
    single = [joint for joint in found if len(joint.names) == 1 and joint.size > 1]
    tied = _tied(single) if len(single) <= _PAIRED_MAX else []
    return tuple(_relation(joint, shuffled, names) for joint in (*together, *tied))


def _tied(columns: Sequence[_Joint]) -> list[_Joint]:
    """Sets of columns some of whose joint values are missing, as far as the rows are many enough to tell."""
    sets = [[column] for column in columns]
    for one, two in combinations(columns, 2):
        mine = [members for members in sets if one in members or two in members]
        united = [member for members in mine for member in members]
        if len(mine) == 2 and _told(united) and _missing([one, two]):
            sets = [*(members for members in sets if members not in mine), united]
    return [_joined(members) for members in sets if len(members) > 1 and _missing(members)]


def _told(columns: Sequence[_Joint]) -> bool:
    """Whether the rows are enough for each joint value of independent columns."""
    size = prod(column.size for column in columns)
    return size <= ROWS_MAX and len(columns[0].codes) >= _ROWS_EACH_MIN * size


def _missing(columns: Sequence[_Joint]) -> bool:
    return _joined(columns).size < prod(column.size for column in columns)


def _joined(columns: Sequence[_Joint]) -> _Joint:
    codes = np.zeros(len(columns[0].codes), np.int64)
    for column in columns:
        codes = codes * column.size + column.codes
    values, dense = np.unique(codes, return_inverse=True)
    return _Joint(tuple(one for column in columns for one in column.names), dense, len(values))


def _column(name: str, rows: Sequence[Mapping[str, Value]]) -> _Joint:
    numbers: dict[Value, int] = {}
    codes = np.array([numbers.setdefault(row[name], len(numbers)) for row in rows], np.int64)
    return _Joint((name,), codes, len(numbers))


def _may_join(joint: _Joint, column: _Joint) -> bool:
    """Whether the rows are enough to tell, and the first of them do not speak against it."""
    few = joint.size + column.size - 1
    if joint.size == 1 or len(joint.codes) < _ROWS_MIN * few:
        return False
    glance = joint.codes[:_GLANCE] * column.size + column.codes[:_GLANCE]
    return len(np.unique(glance)) <= few


def _relation(joint: _Joint, rows: Sequence[Mapping[str, Value]], names: Sequence[str]) -> Relation:
    _, places = np.unique(joint.codes, return_index=True)
    own = [name for name in names if name in joint.names]
    joint_rows = [tuple(rows[place][name] for name in own) for place in map(int, places)]
    return Relation(tuple(own), tuple(sorted(joint_rows, key=lambda row: [str(value) for value in row])))
