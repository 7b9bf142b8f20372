"""Which columns of a recorded table change together: what its rows tell of the constraints that it does not state.

Columns join where their joint values in the table are no more than moves of one column alone would reach, see
`ascar.space.groups`, and where so few are no accident of few rows. What the table never measured has no truth in
it: a search loses nothing by leaving it out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ascar.space.relation import ROWS_MAX, Relation

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from ascar.space import Configuration, Value

# Rows for each of the values that two sets of columns have: fewer show few joint values by accident.
_ROWS_MIN = 4
# Rows that are looked at before all of them are.
_GLANCE = 1024
# Sets whose joint values are counted in all rows, for one table.
_COUNTS_MAX = 2_000


@dataclass(slots=True)
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
    order = np.random.default_rng(0).permutation(len(rows)).tolist()
    shuffled = [rows[place] for place in order]
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
    return tuple(_relation(joint, shuffled) for joint in found if len(joint.names) > 1)


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


def _relation(joint: _Joint, rows: Sequence[Mapping[str, Value]]) -> Relation:
    _, places = np.unique(joint.codes, return_index=True)
    joint_rows = [tuple(rows[place][name] for name in joint.names) for place in places.tolist()]
    return Relation(joint.names, tuple(sorted(joint_rows, key=lambda row: [str(value) for value in row])))
