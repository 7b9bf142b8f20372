"""Solver: what a space knows about its valid configurations, worked out once.

Constraints that mention only parameters with few values go into a decision diagram (`ascar.space.diagram`)
and cost nothing afterwards. A constraint on a continuous or very wide range is checked on each draw
instead, and the draw repeated, at most 10,000 times.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ascar.errors import SpaceError
from ascar.space.configuration import Configuration
from ascar.space.diagram import Diagram, DiagramLevel, Free, TooLarge, build, holds
from ascar.space.domain import Choices, Range, Value, same
from ascar.space.relation import Relation
from ascar.space.running import RunningRelation, RunningSum
from ascar.space.suggestion import listed

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from ascar.expression import Expression
    from ascar.space.diagram import DiagramNode, Key
    from ascar.space.domain import Domain
    from ascar.space.parameter import Parameter
    from ascar.space.relation import Constraint
    from ascar.space.running import RunningRule

_RECENT_MAX: Final = 16
_RECENT_EDGES_MAX: Final = 200_000  # of all that are kept, about 100 MB
TRIES_MAX: Final = 10_000
_HALVINGS: Final = 20
_VALUES_MAX: Final = 4096  # a range with more is never listed value by value
_CORE_MAX: Final = 100  # constraints that are left out one by one to find those that clash
_COMBINATIONS_MAX: Final = 50_000  # of a constraint's values, beyond which it is checked on each draw


@dataclass(frozen=True, slots=True)
class _Solved:
    """What building a diagram has found; see the attributes of `Solver`."""

    diagram: Diagram
    checked: tuple[Constraint, ...]
    drawn: tuple[Constraint, ...]


_recent: dict[str, _Solved] = {}
"""The last diagrams by content, the oldest first: a study opens its space several times."""


def _remember(content: str, solved: _Solved) -> None:
    _recent[content] = solved
    while len(_recent) > _RECENT_MAX or _edges_kept() > _RECENT_EDGES_MAX:
        _recent.pop(next(iter(_recent)), None)


def _edges_kept() -> int:
    return sum(one.diagram.edges for one in [*_recent.values()])


@dataclass(slots=True)
class Solver:
    """The compiled space.

    Attributes:
        parameters: the parameters, in the space's order.
        domains: the values that pins and guarantees leave to each parameter, by name.
        order: the levels, in the order of decision.
        checked: constraints that are in the diagram.
        drawn: constraints that each draw has to satisfy by itself.
    """

    parameters: tuple[Parameter, ...]
    domains: Mapping[str, Domain]
    order: tuple[DiagramLevel, ...]
    checked: list[Constraint]
    drawn: list[Constraint]
    _diagram: Diagram | None = field(default=None, init=False)
    _by_name: dict[str, Parameter] = field(init=False)
    _defaults: dict[str, Value] = field(init=False)

    def __post_init__(self) -> None:
        self._by_name = {parameter.name: parameter for parameter in self.parameters}
        self._defaults = {parameter.name: parameter.default for parameter in self.parameters}

    @classmethod
    def of(
        cls,
        parameters: tuple[Parameter, ...],
        domains: Mapping[str, Domain],
        constraints: Sequence[Constraint],
    ) -> Solver:
        """Sort constraints into those for the diagram and those for each draw.

        Raises:
            SpaceError: conditions depend on each other in a circle, or on a range too wide to list.
        """
        sizes = {name: _listable(domain) for name, domain in domains.items()}
        for parameter in parameters:
            for name in parameter.condition.names if parameter.condition else ():
                if sizes[name] is None:
                    raise SpaceError(
                        f"parameter {parameter.name}: when {str(parameter.condition)!r}: {name} has more "
                        f"than {_VALUES_MAX} values; let it depend on a parameter with fewer, e.g. a switch"
                    )
        conditional = {parameter.name for parameter in parameters if parameter.condition is not None}
        checked: list[Constraint] = []
        drawn: list[Constraint] = []
        for constraint in constraints:
            known = [sizes[name] for name in constraint.names]
            listable = None not in known
            combinations = math.prod(size for size in known if size is not None)
            compact = listable and (
                combinations <= _COMBINATIONS_MAX
                or isinstance(constraint, Relation)
                or _running(constraint, constraint.names, domains, conditional) is not None
            )
            (checked if compact else drawn).append(constraint)
        return cls(parameters, domains, _levels(parameters, domains, checked), checked, drawn)

    @property
    def diagram(self) -> Diagram:
        """The decision diagram, built when first needed, and once for spaces of the same content."""
        if self._diagram is None:
            content = self._content()
            known = _recent.pop(content, None)
            if known is None:
                self._diagram = self._build()
                known = _Solved(self._diagram, tuple(self.checked), tuple(self.drawn))
            self._diagram, self.order = known.diagram, known.diagram.levels
            self.checked[:], self.drawn[:] = known.checked, known.drawn
            _remember(content, known)
        return self._diagram

    def _content(self) -> str:
        """Everything that the diagram depends on; as text, in which 1, 1.0 and True differ."""
        parts = [(one.name, self.domains[one.name], str(one.condition)) for one in self.parameters]
        rules = [rule if isinstance(rule, Relation) else str(rule) for rule in (*self.checked, *self.drawn)]
        return repr((parts, len(self.checked), rules))

    def _build(self) -> Diagram:
        while True:
            for reorder in (False, True):
                order = _levels(self.parameters, self.domains, self.checked, by_frontier=reorder)
                try:
                    diagram = self._built(order, self.checked)
                except TooLarge:
                    continue
                self.order = order
                return diagram
            if not self.checked:
                raise SpaceError(
                    "the parameters' conditions depend on each other in too many ways to be counted; "
                    "let fewer parameters depend on several others"
                )
            # A quarter at a time, so that the number of attempts stays small.
            self.checked.sort(key=lambda rule: math.prod(self.domains[name].size or 1 for name in rule.names))
            kept = len(self.checked) - max(1, len(self.checked) // 4)
            self.drawn += self.checked[kept:]
            del self.checked[kept:]

    def _built(self, order: Sequence[DiagramLevel], constraints: Sequence[Constraint]) -> Diagram:
        """The diagram of these constraints; sums and relations do with less than their parameters' values."""
        return build(order, *self._rules(order, constraints))

    def _rules(
        self, order: Sequence[DiagramLevel], constraints: Sequence[Constraint]
    ) -> tuple[list[Expression], list[RunningRule]]:
        conditional = {level.name for level in order if level.condition is not None}
        place = {level.name: index for index, level in enumerate(order)}
        rules: list[Expression] = []
        running: list[RunningRule] = []
        for constraint in constraints:
            names = sorted(constraint.names, key=lambda name: place[name])
            found = _running(constraint, names, self.domains, conditional)
            if found is not None:
                running.append(found)
            else:
                assert not isinstance(constraint, Relation), (
                    "a space refuses relations of conditional parameters"
                )
                rules.append(constraint)
        return rules, running

    def few(self, count_max: int, edges_max: int) -> Diagram | None:
        """The diagram, if at most so many configurations are valid and it takes no more edges to see that."""
        if self.drawn:
            return None
        try:
            diagram = build(self.order, *self._rules(self.order, self.checked), edges_max=edges_max)
        except TooLarge:
            return None
        return diagram if diagram.root.count is not None and 0 < diagram.root.count <= count_max else None

    def ensure_some(self) -> None:
        """Pass only where a configuration is valid, as far as the diagram can tell.

        Raises:
            SpaceError: naming a minimal set of constraints that cannot hold together; any
                one of them left out, the others can.
        """
        if self.diagram.root.mass:
            return
        core = list(self.checked)
        for constraint in self.checked[:_CORE_MAX]:
            rest = [other for other in core if other is not constraint]
            if self._unsatisfiable(rest):
                core = rest
        names = dict.fromkeys(name for constraint in core for name in constraint.names)
        fixed = [f"{name} = {value}" for name in names if (value := self._only_value(name)) is not None]
        also = f" with {listed(fixed)}" if fixed else ""
        formulas = listed([repr(str(constraint)) for constraint in core])
        raise SpaceError(
            f"no configuration is valid: constraint{'s' if len(core) > 1 else ''} {formulas} cannot be "
            f"satisfied{' together' if len(core) > 1 else ''}{also}; drop or widen one"
        )

    def _unsatisfiable(self, rules: Sequence[Constraint]) -> bool:
        try:
            return not self._built(_levels(self.parameters, self.domains, rules), rules).root.mass
        except TooLarge:
            return False

    def _only_value(self, name: str) -> Value | None:
        domain = self.domains[name]
        return domain.values[0] if isinstance(domain, Choices) and domain.size == 1 else None

    def count(self) -> int | None:
        """How many configurations are valid; None where that is not known, or not finite."""
        self.ensure_some()
        return None if self.drawn else self.diagram.root.count

    def configuration(self, known: Mapping[str, Value | None]) -> Configuration:
        """A configuration of the active values, in the space's order."""
        return Configuration({p.name: value for p in self.parameters if (value := known[p.name]) is not None})

    def accepts(self, known: Mapping[str, Value | None]) -> bool:
        """Whether the constraints that are not in the diagram hold."""
        return all(holds(constraint, known) is not False for constraint in self.drawn)

    def draw(self, rng: np.random.Generator) -> Configuration:
        """One configuration, uniform over the valid ones.

        Raises:
            SpaceError: none is valid, or none was found in 10,000 tries.
        """
        self.ensure_some()
        for _ in range(TRIES_MAX):
            known = self._drawn(rng)
            if not self.drawn or self.accepts(known):
                return self.configuration(known)
        formulas = listed([repr(str(constraint)) for constraint in self.drawn])
        raise SpaceError(
            f"no valid configuration in {TRIES_MAX} draws: constraints {formulas} cannot be satisfied, or "
            "hardly ever; widen one, or narrow the ranges to where it holds"
        )

    def at(self, shares: Sequence[float]) -> Configuration | None:
        """The configuration at a point of the unit cube; uniform points give configurations as `draw` does.

        Args:
            shares: two a level, in the order of decision: which of its choices, and where on a free range.

        Returns:
            None where a constraint that is not in the diagram does not hold there.
        """
        self.ensure_some()
        node, known = self.diagram.root, dict[str, "Value | None"]()
        for level, choice, place in zip(self.order, shares[::2], shares[1::2], strict=True):
            key = node.draw(choice)
            node = node.edges[key]
            known[level.name] = _any_value(level, place) if isinstance(key, Free) else key
        return self.configuration(known) if self.accepts(known) else None

    def _drawn(self, rng: np.random.Generator) -> dict[str, Value | None]:
        node = self.diagram.root
        known: dict[str, Value | None] = {}
        for level, share in zip(self.order, rng.random(len(self.order)).tolist(), strict=True):
            key = node.draw(share)
            node = node.edges[key]
            known[level.name] = _any_value(level, float(rng.random())) if isinstance(key, Free) else key
        return known

    def enumerate(self) -> Iterator[Configuration]:
        """Every valid configuration, lazily.

        Raises:
            SpaceError: a continuous parameter is among them, or none is valid.
        """
        self.ensure_some()
        for level in self.order:
            if level.domain.size is None:
                raise SpaceError(
                    f"parameter {level.name} is continuous: its values cannot be listed; give it a step"
                )
        return self._each()

    def _each(self) -> Iterator[Configuration]:
        names = [level.name for level in self.order]
        for path in self.diagram.assignments():
            known = dict(zip(names, path, strict=True))
            if not self.drawn or self.accepts(known):
                yield self.configuration(known)

    def nearest(self, wanted: Mapping[str, Any]) -> Configuration:
        """The configuration that keeps the wanted values as far as it can; see `Space.nearest`.

        Raises:
            SpaceError: no configuration is valid, or none was found.
        """
        defaults = self._defaults
        return self.walk(
            lambda level, node: nearest_key(
                level, node, wanted.get(level.name, defaults[level.name]), defaults[level.name]
            ),
            lambda level: nearest_value(level.domain, wanted.get(level.name), defaults[level.name]),
        )

    def walk(
        self, choose: Callable[[DiagramLevel, DiagramNode], Key], value: Callable[[DiagramLevel], Value]
    ) -> Configuration:
        """A configuration chosen level by level; ranges move where constraints outside the diagram say so.

        Args:
            choose: selects one of the choices that a state leaves.
            value: the value of a free range.

        Raises:
            SpaceError: no configuration is valid, or none was found.
        """
        self.ensure_some()
        node = self.diagram.root
        known: dict[str, Value | None] = {}
        free: list[DiagramLevel] = []
        for level in self.order:
            key = choose(level, node)
            node = node.edges[key]
            if isinstance(key, Free):
                free.append(level)
                known[level.name] = value(level)
            else:
                known[level.name] = key
        return self.configuration(known) if self.accepts(known) else self._moved(known, free)

    def _moved(self, known: dict[str, Value | None], free: Sequence[DiagramLevel]) -> Configuration:
        """Move values of ranges until the constraints on them hold: towards the defaults, else somewhere."""
        defaults = {
            level.name: nearest_value(level.domain, None, self._defaults[level.name]) for level in free
        }
        moving = self._of_broken(known, defaults)
        if self.accepts(known | moving):
            return self.configuration(self._towards(known, moving))
        if self.accepts(known | defaults):
            return self.configuration(known | defaults)
        rng = np.random.default_rng(0)  # any fixed stream: the same wish always gives the same configuration
        for _ in range(TRIES_MAX if free else 0):
            moved = known | {level.name: _any_value(level, float(rng.random())) for level in free}
            if self.accepts(moved):
                return self.configuration(moved)
        return self.draw(rng)

    def _of_broken(
        self, known: Mapping[str, Value | None], defaults: Mapping[str, Value]
    ) -> dict[str, Value]:
        """The defaults of the ranges that broken constraints name, and of those that break one then."""
        moving: dict[str, Value] = {}
        while True:
            tried = {**known, **moving}
            broken = [constraint for constraint in self.drawn if holds(constraint, tried) is False]
            more = {name for constraint in broken for name in constraint.names} & defaults.keys()
            if more <= moving.keys():
                return moving
            moving |= {name: defaults[name] for name in more}

    def _towards(
        self, known: Mapping[str, Value | None], moving: Mapping[str, Value]
    ) -> dict[str, Value | None]:
        """Values that hold, with the moving ones no nearer to their defaults than is needed."""
        found, kept, given_up = {**known, **moving}, 0.0, 1.0
        for _ in range(_HALVINGS):
            share = (kept + given_up) / 2
            tried = {
                **known,
                **{
                    name: _between(self.domains[name], end, known[name], share)
                    for name, end in moving.items()
                },
            }
            if self.accepts(tried):
                found, kept = tried, share
            else:
                given_up = share
        return found

    def parameter(self, name: str) -> Parameter:
        """The parameter of that name."""
        return self._by_name[name]

    def default_of(self, name: str) -> Value:
        """The default of that parameter."""
        return self._defaults[name]


def nearest_key(level: DiagramLevel, node: DiagramNode, wanted: object, default: Value) -> Key:
    """Of the choices that a state leaves, the one nearest to what is wanted."""
    keys = node.keys
    if len(keys) == 1:
        return keys[0]
    for target in (wanted, default):
        exact = _canonical(level.domain, target)
        if exact is not None and exact in node.edges:
            return exact
        distances = [_distance(level.domain, key, target) for key in keys]
        if min(distances) < math.inf:
            return keys[distances.index(min(distances))]
    return keys[0]


def _between(domain: Domain, end: Value, value: Value | None, share: float) -> Value:
    """The value of a range at a share of the way from one end to a value; the end where one is special."""
    assert isinstance(domain, Range)
    if not isinstance(end, (int, float)) or not isinstance(value, (int, float)):
        return end
    if end in domain.special or value in domain.special:
        return end
    start = domain.position(end)
    return domain.nearest(start + share * (domain.position(value) - start))


def nearest_value(domain: Domain, wanted: object, default: Value) -> Value:
    """The value of a range nearest to the one wanted, or else to the default."""
    assert isinstance(domain, Range)
    for target in (wanted, default):
        exact = _canonical(domain, target)
        if exact is not None:
            return exact
        if isinstance(target, (int, float)) and not isinstance(target, bool) and math.isfinite(target):
            return domain.nearest(domain.position(min(max(target, domain.low), domain.high)))
    return domain.low


def _canonical(domain: Domain, value: object) -> Value | None:
    try:
        return domain.canonical(value)
    except SpaceError:
        return None


def _distance(domain: Domain, key: Key, target: object) -> float:
    """How far a choice is from a value; infinite where there is no saying."""
    if isinstance(domain, Choices) and not domain.ordered:
        return math.inf
    if isinstance(key, Free) or key is None:
        return math.inf
    if not isinstance(key, (bool, str)) and isinstance(target, (int, float)) and not isinstance(target, bool):
        return abs(key - target)
    if isinstance(domain, Choices) and isinstance(target, str) and target in domain.values:
        places = [index for index, value in enumerate(domain.values) if same(value, key)]
        return abs(places[0] - domain.values.index(target))
    return math.inf


def _any_value(level: DiagramLevel, share: float) -> Value:
    assert isinstance(level.domain, Range)
    return level.domain.draw(share)


def _listable(domain: Domain) -> int | None:
    """How many values there are to list; None for too many."""
    size = domain.size
    return size if size is not None and (isinstance(domain, Choices) or size <= _VALUES_MAX) else None


def _running(
    constraint: Constraint, order: Sequence[str], domains: Mapping[str, Domain], conditional: Collection[str]
) -> RunningRule | None:
    """The running rule that a constraint is, told its parameters in this order; None: a formula."""
    if isinstance(constraint, Relation):
        return RunningRelation.of(constraint, order)
    if len(order) < 2 or any(name in conditional for name in order):
        return None
    return RunningSum.of(constraint, {name: tuple(domains[name].each()) for name in order})


def _levels(
    parameters: Sequence[Parameter],
    domains: Mapping[str, Domain],
    rules: Sequence[Constraint],
    *,
    by_frontier: bool = False,
) -> tuple[DiagramLevel, ...]:
    """The order of decision: what a condition mentions first; else as declared, or for a small frontier."""
    mentioned = {name for rule in rules for name in rule.names}
    mentioned |= {name for p in parameters if p.condition for name in p.condition.names}
    waiting = {p.name: set(p.condition.names if p.condition else ()) for p in parameters}
    links = [set(rule.names) for rule in rules] + [
        {p.name, *p.condition.names} for p in parameters if p.condition
    ]
    by_name = {parameter.name: parameter for parameter in parameters}
    placed: list[DiagramLevel] = []
    done: set[str] = set()
    while waiting:
        ready = [name for name, needed in waiting.items() if needed <= done]
        if not ready:
            circle = (f"{name}: when = {str(by_name[name].condition)!r:.100}" for name in waiting)
            raise SpaceError(f"conditions must not depend on each other in a circle: {listed(circle, 5)}")
        name = (
            min(ready, key=lambda name: _open_states(done | {name}, links, domains))
            if by_frontier
            else ready[0]
        )
        domain, condition = domains[name], by_name[name].condition
        listed_values = isinstance(domain, Choices) or name in mentioned
        placed.append(DiagramLevel(name, domain, tuple(domain.each()) if listed_values else None, condition))
        done.add(name)
        del waiting[name]
    return tuple(placed)


def _open_states(done: set[str], links: Sequence[set[str]], domains: Mapping[str, Domain]) -> float:
    """Logarithm of how many states the frontier after these parameters can have."""
    frontier = {name for link in links if not link <= done for name in link & done}
    return sum(math.log(domains[name].size or 1) for name in frontier)
