"""Exchanges: one parameter goes up, another down, where a constraint ties numbers (a sum, joint values).

At a cap no number can rise by itself. A search that moves one parameter at a time would have to accept a
worse configuration in between.
"""

from __future__ import annotations

from dataclasses import dataclass
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
        partners: of each parameter that a constraint ties to others, these.
    """

    space: Space
    domains: Mapping[str, Domain]
    partners: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, space: Space, domains: Mapping[str, Domain]) -> Exchanges:
        """The exchanges of a space, with these values of its parameters."""
        partners: dict[str, dict[str, None]] = {}
        for constraint in space.constraints:
            names = [name for name in _tied(constraint) if _numeric(domains[name])]
            for name in names if len(names) > 1 else ():
                partners.setdefault(name, {}).update(dict.fromkeys(one for one in names if one != name))
        return cls(space, domains, {name: tuple(others) for name, others in partners.items()})

    def exchanged(
        self, configuration: Configuration, name: str, other: Value, rng: np.random.Generator
    ) -> Configuration | None:
        """With another value of one parameter, for which a partner moves the other way; None where none can.

        Args:
            configuration: valid.
            name: a parameter that has partners.
            other: its new value.
            rng: the random generator for the order of the partners.
        """
        names = [one for one in self.partners[name] if one in configuration]
        change = _number(other) - _number(configuration[name])
        for place in rng.permutation(len(names)) if change else ():
            partner = names[int(place)]
            for value in _answers(self.domains[partner], configuration[partner], change):
                wanted = configuration.replaced(**{name: other, partner: value})
                if self.space.is_valid(wanted):
                    return wanted
        return None


def _tied(constraint: Constraint) -> tuple[str, ...]:
    """The parameters that a sum or a relation ties."""
    if isinstance(constraint, Relation):
        return constraint.names
    terms = constraint.terms()
    sums = terms is not None and all(len(term.names) <= 1 for _, term in terms[1])
    return constraint.names if sums and len(constraint.names) > 1 else ()


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
    """Values that answer a partner's change: as much the other way, then ever further that way."""
    if isinstance(domain, Choices):
        exact, place = _number(value) - change, domain.values.index(value)
        if exact in domain.values:
            yield domain.values[domain.values.index(exact)]
        way = domain.values[place + 1 :] if change < 0 else tuple(reversed(domain.values[:place]))
        yield from way[:_STEPS_MAX]
        return
    if value in domain.special:
        return
    exact = _number(value) - change
    if domain.low <= exact <= domain.high:
        yield domain.nearest(domain.position(exact))
    here = domain.position(_number(value))
    for step in range(_STEPS_MAX):
        stride = _STRIDE * 2**step
        found = domain.nearest(here - stride if change > 0 else here + stride)
        if found != value:
            yield found
