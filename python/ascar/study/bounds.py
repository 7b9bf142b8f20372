"""Constraints that no result can satisfy: two bounds of one metric that exclude each other."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, NamedTuple

from ascar.errors import StudyError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ascar.expression import Expression

_NUMBER = r"-?[0-9.]+(?:[eE][+-]?[0-9]+)?"
_BOUND = re.compile(rf"([A-Za-z_]\w*) (<=|<|>=|>|==) ({_NUMBER})")
_TURNED = re.compile(rf"({_NUMBER}) (<=|<|>=|>|==) ([A-Za-z_]\w*)")
_OPPOSITE = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "=="}


class _Bound(NamedTuple):
    """One end of what a metric may be.

    Attributes:
        value: the number.
        is_open: whether the number itself is excluded.
        text: the constraint that says so.
    """

    value: float
    is_open: bool
    text: str


def check_consistent(constraints: Iterable[Expression]) -> None:
    """Look for bounds of one metric that exclude each other; formulas of other forms are not judged.

    Raises:
        StudyError: no result can satisfy two of them.
    """
    lows: dict[str, _Bound] = {}
    highs: dict[str, _Bound] = {}
    for text in map(str, constraints):
        found = bound_of(text)
        if found is None:
            continue
        name, sign, value = found
        bound = _Bound(value, sign in "<>", text)
        if sign in (">", ">=", "=="):
            lows[name] = max(lows.get(name, _Bound(-math.inf, True, "")), bound)
        if sign in ("<", "<=", "=="):
            highs[name] = min(highs.get(name, _Bound(math.inf, False, "")), bound, key=_tightness)
        low, high = lows.get(name), highs.get(name)
        if low is None or high is None:
            continue
        if low.value > high.value or (low.value == high.value and (low.is_open or high.is_open)):
            raise StudyError(
                f"constraints {low.text!r} and {high.text!r}: no {name} satisfies both; change one of them"
            )


def _tightness(high: _Bound) -> tuple[float, bool]:
    """Of two upper ends, the lower one is less; of equals the one that excludes its number."""
    return high.value, not high.is_open


def bound_of(constraint: str) -> tuple[str, str, float] | None:
    """Name, comparison and number of a constraint that is just that; None: it has another form."""
    if (match := _BOUND.fullmatch(constraint)) is not None:
        return match[1], match[2], float(match[3])
    if (match := _TURNED.fullmatch(constraint)) is not None:
        return match[3], _OPPOSITE[match[2]], float(match[1])
    return None
