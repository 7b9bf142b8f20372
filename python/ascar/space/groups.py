"""Groups: parameters that only change together, found in the structure of a space's constraints.

Of eight switches of which exactly one is on, no single one can change; of two values that must be equal,
neither can. A search that moves one parameter at a time stands still there. A group is

- *equal*: ranges alike that an equation `a == b` ties; one value stands for all of them;
- *joint*: parameters of which no more joint values are valid than 1 + the sum over them of (values - 1), as
  many as moves of one parameter alone reach: one of n switches (n of 2^n), at most one, implications (n + 1),
  equal values.

Constraints that forbid less (a sum of memory below a cap, one combination) leave parameters that move by
themselves, or in exchange, and form no group. Groups grow constraint by constraint, those with fewest
parameters first, so pairs (`not (a and b)`, ...) are found as well as one sum
(`if(a, 1, 0) + if(b, 1, 0) == 1`).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from ascar.space.domain import Choices, Range, Value
from ascar.space.relation import ROWS_MAX, Relation

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ascar.space.domain import Domain
    from ascar.space.parameter import Parameter
    from ascar.space.relation import Constraint
    from ascar.space.space import Space

_VALUES_MAX: Final = 256  # of one parameter of a joint group
_EDGES_MAX: Final = 20_000  # of the diagram that shows how few joint values are valid
_ATTEMPTS_MAX: Final = 400  # such diagrams, for one space


@dataclass(frozen=True, slots=True)
class ParameterGroup:
    """Parameters that only change together.

    Attributes:
        names: the parameters, in the space's order.
        rows: their valid joint values; none where they are equal. In lexicographic order where they are
            ordered, and in the reverse otherwise, in which exclusive switches come as their names do.
    """

    names: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...] = ()

    @property
    def equal(self) -> bool:
        """Whether one value stands for all parameters."""
        return not self.rows

    def ordered(self, domains: Mapping[str, Domain]) -> bool:
        """Whether each parameter only rises, or only falls, from row to row: neighbouring rows are near."""
        return all(
            _monotonous([_rank(domains[name], row[place]) for row in self.rows])
            for place, name in enumerate(self.names)
        )


def groups_of(space: Space) -> tuple[ParameterGroup, ...]:
    """The groups of a space; no parameter is in two of them, none has a condition."""
    domains = {one.name: space.domain(one.name) for one in space.parameters if one.condition is None}
    equal = _equal(space.constraints, domains)
    tied = {name for group in equal for name in group.names}
    search = _JointSearch(space, {name: domain for name, domain in domains.items() if name not in tied})
    found = [*equal, *search.groups()]
    return tuple(sorted(found, key=lambda group: space.names.index(group.names[0])))


def _equal(constraints: Iterable[Constraint], domains: Mapping[str, Domain]) -> list[ParameterGroup]:
    """Ranges alike that equations tie; their scale stays, and their values are not listed."""
    tied: dict[str, set[str]] = {}
    for constraint in constraints:
        pair = tied_pair(constraint)
        if pair is None or not set(pair) <= domains.keys():
            continue
        one, two = (domains[name] for name in pair)
        if isinstance(one, Range) and one == two and one.size != 1:
            together = tied.get(pair[0], {pair[0]}) | tied.get(pair[1], {pair[1]})
            tied |= dict.fromkeys(together, together)
    sets = {frozenset(names) for names in tied.values()}
    return [ParameterGroup(tuple(name for name in domains if name in names)) for names in sets]


def tied_pair(constraint: Constraint) -> tuple[str, str] | None:
    """The two parameters that an equation says are equal."""
    found = None if isinstance(constraint, Relation) else constraint.terms()
    terms = [] if found is None else [(sign, term) for sign, term in found[1] if str(term) != "0"]
    if found is None or found[0] != "==" or len(terms) != 2:
        return None
    (sign_one, one), (sign_two, two) = terms
    plain = all(term.names == (str(term),) for term in (one, two))
    return (str(one), str(two)) if plain and sign_one == -sign_two and str(one) != str(two) else None


class _JointSearch:
    """Grows sets of parameters as long as few of their joint values are valid."""

    def __init__(self, space: Space, domains: Mapping[str, Domain]) -> None:
        self._parameters = {one.name: one for one in space.parameters if one.name in domains}
        self._domains = {
            name: domain
            for name, domain in domains.items()
            if isinstance(domain, Choices) or (domain.size is not None and domain.size <= _VALUES_MAX)
        }
        within = [one for one in space.constraints if set(one.names) <= self._domains.keys()]
        self._constraints = sorted(within, key=lambda one: len(one.names))
        self._counts = {name: domain.size or 0 for name, domain in self._domains.items()}
        self._sets = {name: frozenset([name]) for name in self._domains}
        self._rows: dict[frozenset[str], tuple[tuple[Value, ...], ...]] = {}
        self._attempts = 0

    def groups(self) -> list[ParameterGroup]:
        """All that were found."""
        grown = True
        while grown:
            grown = False
            for constraint in self._constraints:
                grown |= self._grow(constraint)
        found = sorted(set(self._sets.values()) & self._rows.keys(), key=sorted)
        return [self._group(names) for names in found]

    def _group(self, names: frozenset[str]) -> ParameterGroup:
        group = ParameterGroup(self._ordered(names), self._rows[names])
        return group if group.ordered(self._domains) else replace(group, rows=group.rows[::-1])

    def _grow(self, constraint: Constraint) -> bool:
        """Join the sets that a constraint is about, if it leaves few joint values; whether it did."""
        parts = {self._sets[name] for name in constraint.names}
        together = frozenset[str]().union(*parts)
        several = sum(self._count(part) > 1 for part in parts) > 1  # one that is fixed ties nothing
        if not several or self._attempts >= _ATTEMPTS_MAX:
            return False
        few = 1 + sum(self._count(part) - 1 for part in parts)
        rows = self._valid(together, min(few, ROWS_MAX))
        if rows is None:
            return False
        self._rows[together] = rows
        self._sets |= dict.fromkeys(together, together)
        return True

    def _count(self, part: frozenset[str]) -> int:
        return len(self._rows[part]) if part in self._rows else self._counts[next(iter(part))]

    def _valid(self, names: frozenset[str], count_max: int) -> tuple[tuple[Value, ...], ...] | None:
        """Every valid joint value; None where they are more than that, or none."""
        from ascar.space.solver import Solver

        self._attempts += 1
        ordered = self._ordered(names)
        parameters: Sequence[Parameter] = [self._parameters[name] for name in ordered]
        domains = {name: self._domains[name] for name in ordered}
        within = [one for one in self._constraints if names.issuperset(one.names)]
        diagram = Solver.of(tuple(parameters), domains, within).few(count_max, _EDGES_MAX)
        if diagram is None:
            return None
        places = {level.name: place for place, level in enumerate(diagram.levels)}
        found = [tuple(path[places[name]] for name in ordered) for path in diagram.assignments()]
        return tuple(tuple(value for value in row if value is not None) for row in found)

    def _ordered(self, names: frozenset[str]) -> tuple[str, ...]:
        return tuple(name for name in self._domains if name in names)


def _rank(domain: Domain, value: Value) -> float | None:
    """A place on a scale; None where there is none."""
    if isinstance(domain, Choices):
        return domain.values.index(value) if domain.ordered or domain.size == 2 else None
    return None if isinstance(value, str) or value in domain.special else float(value)


def _monotonous(ranks: Sequence[float | None]) -> bool:
    known = [rank for rank in ranks if rank is not None]
    pairs = list(itertools.pairwise(known))
    return len(known) == len(ranks) and (all(a <= b for a, b in pairs) or all(a >= b for a, b in pairs))
