"""Relation: parameters of which only listed joint values are valid, as the rows of a recorded table tell.

It stands among a space's constraints beside formulas, and answers what they answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from ascar.errors import SpaceError
from ascar.expression import Expression
from ascar.space.domain import Value, check_value

if TYPE_CHECKING:
    from collections.abc import Mapping

ROWS_MAX: Final = 4096
_SHOWN: Final = 6


@dataclass(frozen=True)
class Relation:
    """Joint values of some parameters; every other combination is not valid.

    Attributes:
        names: the parameters.
        rows: the joint values, each in the order of the names.

    Raises:
        SpaceError: fewer than two names, no rows or more than 4,096, or a row of another length.
    """

    names: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(self.names))
        object.__setattr__(self, "rows", tuple(tuple(row) for row in self.rows))
        shown = _listed(self.names)
        if len(self.names) < 2 or len(set(self.names)) < len(self.names):
            raise SpaceError(f"joint values of {shown}: must be of two or more different parameters")
        if not 1 <= len(self.rows) <= ROWS_MAX:
            raise SpaceError(f"joint values of {shown}: {len(self.rows)} rows; must be from 1 to {ROWS_MAX}")
        for row in self.rows:
            if len(row) != len(self.names):
                raise SpaceError(
                    f"joint values of {shown}: a row of {len(row)} values; each must have {len(self.names)}"
                )
            for value in row:
                check_value(value, f"joint values of {shown}")

    @cached_property
    def _known(self) -> frozenset[tuple[tuple[bool, Value], ...]]:
        return frozenset(_marked(row) for row in self.rows)

    def holds(self, values: Mapping[str, Value | None]) -> bool | None:
        """Whether these values stand together in a row; None where one of the parameters is not active."""
        row = [values[name] for name in self.names]
        known = [value for value in row if value is not None]
        return None if len(known) < len(row) else _marked(known) in self._known

    def __str__(self) -> str:
        return f"({_listed(self.names)}) in {len(self.rows)} joint values"


Constraint = Expression | Relation
"""What a configuration has to satisfy."""


def _marked(row: Any) -> tuple[tuple[bool, Value], ...]:
    """Values that tell true from 1."""
    return tuple((isinstance(value, bool), value) for value in row)


def _listed(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
