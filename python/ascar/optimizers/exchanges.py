"""Exchanges: one parameter goes up, another down, where a constraint ties numbers (a sum, joint values).

At a cap no number can rise by itself. A search that moves one parameter at a time would have to accept a
worse configuration in between. Where a constraint compares numbers (`inode <= block`), both go the same way.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from typing import TYPE_CHECKING

from ascar.space import Choices, Configuration
from ascar.space.relation import Relation

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy as np

    from ascar.space import Domain, Space, Value
    from ascar.space.relation import Constraint

_STEPS_MAX = 8  # values of the partner that are tried
_STRIDE = 0.02  # of the scale of a wide range


@dataclass(frozen=True, slots=True)
class Exchanges:
    """The exchanges of one space.

    Attributes:
        space: the space.
        domains: the values of each parameter.
        partners: of each parameter that a constraint ties to others, these, each with the ways in which it
            answers a rise: -1 down, 1 up.
    """

    space: Space
    domains: Mapping[str, Domain]
    partners: Mapping[str, tuple[tuple[str, tuple[int, ...]], ...]]

    @classmethod
    def of(cls, space: Space, domains: Mapping[str, Domain]) -> Exchanges:
        """The exchanges of a space, with these values of its parameters."""
        partners: dict[str, dict[str, tuple[int, ...]]] = {}
        for constraint in space.constraints:
            signs = {name: sign for name, sign in _tied(constraint).items() if _numeric(domains[name])}
            for one, two in permutations(signs, 2):
                way = -signs[one] * signs[two]
                partners.setdefault(one, {}).setdefault(two, (way,) if way else (-1, 1))
        return cls(space, domains, {name: tuple(others.items()) for name, others in partners.items()})

    def exchanged(
        self, configuration: Configuration, name: str, other: Value, rng: np.random.Generator
    ) -> Configuration | None:
        """With another value of one parameter, which a partner answers; None where none can.

        Args:
            configuration: valid.
            name: a parameter that has partners.
            other: its new value.
            rng: the random generator for the order of the partners.
        """
        partners = [(one, way) for one, ways in self.partners[name] for way in ways if one in configuration]
        change = _number(other) - _number(configuration[name])
        for place in rng.permutation(len(partners)) if change else ():
            partner, way = partners[int(place)]
            for value in _answers(self.domains[partner], configuration[partner], way * change):
                wanted = configuration.replaced(**{name: other, partner: value})
                if self.space.is_valid(wanted):
                    return wanted
        return None


def _tied(constraint: Constraint) -> dict[str, int]:
    """The parameters that a sum or a relation ties, each with its sign in the sum; 0: it has none."""
    if isinstance(constraint, Relation):
        return dict.fromkeys(constraint.names, 0)
    found = constraint.terms()
    if found is None or any(len(term.names) > 1 for _, term in found[1]):
        return {}
    return {term.names[0]: int(sign) for sign, term in found[1] if term.names}


def _numeric(domain: Domain) -> bool:
    if isinstance(domain, Choices):
        return domain.ordered and all(_is_number(value) for value in domain.values)
    return domain.size != 1


def _is_number(value: Value) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _number(value: Value) -> float:
    assert isinstance(value, (int, float)), "partners are numbers"
    return float(value)


def _answers(domain: Domain, value: Value, change: float) -> Iterator[Value]:
    """Values that answer a partner's change: this much further, then ever further that way."""
    if isinstance(domain, Choices):
        exact, place = _number(value) + change, domain.values.index(value)
        if exact in domain.values:
            yield domain.values[domain.values.index(exact)]
        way = domain.values[place + 1 :] if change > 0 else tuple(reversed(domain.values[:place]))
        yield from way[:_STEPS_MAX]
        return
    if value in domain.special:
        return
    exact = _number(value) + change
    if domain.low <= exact <= domain.high:
        yield domain.nearest(domain.position(exact))
    here = domain.position(_number(value))
    for step in range(_STEPS_MAX):
        stride = _STRIDE * 2**step
        found = domain.nearest(here + stride if change > 0 else here - stride)
        if found != value:
            yield found
