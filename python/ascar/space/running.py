"""Rules that remember less than the values they mention: a sum its total, a relation the rows that agree.

In a decision diagram (`ascar.space.diagram`), a formula keeps the values of its parameters until the last of
them is decided: 2^20 states for twenty switches. A comparison of sums of whole numbers needs only the total
so far, and of that only what the rest can still change; a relation only the ways in which its rows go on.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, Protocol

from ascar.errors import ExpressionError
from ascar.space.domain import Value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ascar.expression import Expression
    from ascar.space.relation import Relation

BROKEN: Final = "broken"
"""What a rule is in after a value with which it cannot hold."""
_HELD: Final = "held"
_EXACT_MAX: Final = 2**53


class RunningRule(Protocol):
    """A rule that is told the values of its parameters one by one.

    Attributes:
        names: the parameters, in the order in which they are decided.
        first: the state before any is.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """See the class."""
        ...

    @property
    def first(self) -> object:
        """See the class."""
        ...

    def after(self, state: Any, name: str, value: Value) -> object:
        """The state after one more value, or `BROKEN`; alike states allow the same further values."""
        ...


@dataclass(frozen=True, slots=True)
class RunningSum:
    """A comparison of a sum with 0.

    Attributes:
        sign: the comparison, such as "<=".
        shares: what each value of each parameter adds, by name, in the order of decision.
        first: the constant part.
        rest: the least and the most that the parameters after each one can add.
    """

    sign: str
    shares: Mapping[str, Mapping[Value, int]]
    first: int
    rest: Mapping[str, tuple[int, int]]

    @classmethod
    def of(cls, formula: Expression, values: Mapping[str, Sequence[Value]]) -> RunningSum | None:
        """The sum that a formula is; None where it is none, or not one of whole numbers.

        Args:
            formula: a constraint.
            values: the values of each of its parameters, in the order of decision.
        """
        found = formula.terms()
        if found is None or any(len(term.names) > 1 for _, term in found[1]):
            return None
        sign, terms = found
        constant, shares = 0, {name: dict.fromkeys(each, 0) for name, each in values.items()}
        for factor, term in terms:
            name = term.names[0] if term.names else None
            for value in values[name] if name is not None else (None,):
                share = _whole(term, {} if name is None else {name: value})
                if share is None:
                    return None
                if name is None or value is None:
                    constant += int(factor) * share
                else:
                    shares[name][value] += int(factor) * share
        if abs(constant) + sum(max(map(abs, each.values())) for each in shares.values()) > _EXACT_MAX:
            return None
        backwards = list(reversed(shares))
        least = accumulate((min(shares[name].values()) for name in backwards), initial=0)
        most = accumulate((max(shares[name].values()) for name in backwards), initial=0)
        rest = {name: (low, high) for name, low, high in zip(backwards, least, most, strict=False)}
        return cls(sign, shares, constant, rest)

    @property
    def names(self) -> tuple[str, ...]:
        """See `RunningRule`."""
        return tuple(self.shares)

    def after(self, state: Any, name: str, value: Value) -> object:
        """See `RunningRule`."""
        if state == _HELD:
            return _HELD
        total = state + self.shares[name][value]
        low, high = (total + one for one in self.rest[name])
        verdict = _verdict(self.sign, low, high)
        return total if verdict is None else _HELD if verdict else BROKEN


@dataclass(frozen=True, slots=True)
class RunningRelation:
    """A relation whose state is the set of the ways in which its rows can go on.

    Attributes:
        names: the parameters, in the order of decision.
        first: every row.
    """

    names: tuple[str, ...]
    first: frozenset[int]
    _ways: Sequence[tuple[Value, int]]
    _known: dict[tuple[frozenset[int], bool, Value], frozenset[int]] = field(
        default_factory=dict[tuple[frozenset[int], bool, Value], "frozenset[int]"]
    )

    @classmethod
    def of(cls, relation: Relation, order: Sequence[str]) -> RunningRelation:
        """A relation, told its values in this order."""
        places = [relation.names.index(name) for name in order]
        numbers: dict[tuple[bool, Value, int], int] = {}
        ends: set[int] = set()
        for row in relation.rows:
            way = -1  # from the last value backwards, so that alike ends are one
            for place in reversed(places):
                value = row[place]
                way = numbers.setdefault((isinstance(value, bool), value, way), len(numbers))
            ends.add(way)
        return cls(tuple(order), frozenset(ends), [(value, way) for _, value, way in numbers])

    def after(self, state: Any, name: str, value: Value) -> object:  # noqa: ARG002
        """See `RunningRule`."""
        key = (state, isinstance(value, bool), value)
        if key not in self._known:
            agreeing: frozenset[int] = state
            ways = [self._ways[number] for number in agreeing]
            self._known[key] = frozenset(
                way for known, way in ways if known == value and isinstance(known, bool) == key[1]
            )
        return self._known[key] or BROKEN


def _whole(term: Expression, values: Mapping[str, Any]) -> int | None:
    try:
        share = term.evaluate_or_none(values)
    except ExpressionError:
        return None
    if isinstance(share, bool) or not isinstance(share, (int, float)) or not float(share).is_integer():
        return None
    return int(share) if abs(share) <= _EXACT_MAX else None


def _verdict(sign: str, low: int, high: int) -> bool | None:
    """Whether what lies between two numbers compares so with 0; None: some does, some does not."""
    match sign:
        case "<=":
            return True if high <= 0 else False if low > 0 else None
        case "<":
            return True if high < 0 else False if low >= 0 else None
        case ">=":
            return _verdict("<=", -high, -low)
        case ">":
            return _verdict("<", -high, -low)
        case "==":
            return False if low > 0 or high < 0 else True if low == high else None
        case _:
            equal = _verdict("==", low, high)
            return None if equal is None else not equal
