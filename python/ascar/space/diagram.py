"""The valid configurations of a space as a decision diagram: counted, drawn from and walked without search.

One level a parameter. A state at a level is what later levels still need to know of the choices before it
(the frontier: the values of parameters that a later condition or unfinished constraint mentions), so states
merge and the diagram stays small where constraints are local, however many configurations there are. This
is the frontier method of Knuth's Simpath (TAOCP 4A, 7.1.4) on many-valued variables. States from which
nothing valid can be reached are pruned, which makes counting exact and drawing free of rejections.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ascar.errors import ExpressionError, SpaceError
from ascar.space.domain import Range, Value
from ascar.space.running import BROKEN

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ascar.expression import Expression
    from ascar.space.domain import Domain
    from ascar.space.relation import Constraint
    from ascar.space.running import RunningRule

_EDGES_MAX: Final = 150_000
_WEIGHT_SCALE: Final = 2**24  # resolution of the shares of values on logarithmic scales


class TooLarge(Exception):
    """The diagram has too many edges; some constraint has to be left out of it."""


@dataclass(frozen=True, slots=True)
class Free:
    """Marks an edge for "any value of the range": the parameter is in no constraint and no condition."""

    def __repr__(self) -> str:
        return "FREE"


FREE: Final = Free()

Key = Value | Free | None
"""What an edge stands for: a value, any value, or not active."""


@dataclass(frozen=True, slots=True)
class DiagramLevel:
    """One parameter's place in the diagram.

    Attributes:
        name: the parameter.
        domain: the parameter's values, as restricted.
        values: the parameter's values one by one; None where the parameter is free.
        condition: the condition under which the parameter is active; None: always.
    """

    name: str
    domain: Domain
    values: tuple[Value, ...] | None
    condition: Expression | None
    _weights: dict[Key, int] = field(default_factory=dict[Key, int], init=False, repr=False, compare=False)

    def weight(self, key: Key) -> int:
        """How much an edge counts in a draw, relative to the others of its level."""
        known = self._weights.get(key)
        if known is None:
            known = self._weights[key] = self._weight(key)
        return known

    def _weight(self, key: Key) -> int:
        if not (isinstance(self.domain, Range) and self.domain.log and self.domain.step is not None):
            return self.domain.size or 1 if isinstance(key, Free) else 1
        size = self.domain.size or 1
        if isinstance(key, Free):
            return size * _WEIGHT_SCALE
        if key is None or key in self.domain.special:
            return _WEIGHT_SCALE
        assert not isinstance(key, (bool, str))
        regular = size - len(self.domain.special)
        return max(1, round(self.domain.share(key) * regular * _WEIGHT_SCALE))


@dataclass(slots=True, eq=False)
class DiagramNode:
    """A state: where each choice leads, and what lies behind it.

    Attributes:
        edges: the next state by choice; only choices from which something valid can be reached.
        count: valid configurations behind it; None where a continuous parameter is among them.
        mass: weight of them all in a draw.
        keys: the choices, in order.
        cumulative: the share of draws that take a choice up to and with this one.
    """

    edges: dict[Key, DiagramNode] = field(default_factory=dict[Key, "DiagramNode"])
    count: int | None = 0
    mass: int = 0
    keys: list[Key] = field(default_factory=list[Key])
    cumulative: list[float] = field(default_factory=list[float])

    def finish(self, level: DiagramLevel) -> None:
        """Prune, count and weigh; the next level's states are finished."""
        self.edges = {key: child for key, child in self.edges.items() if child.mass}
        self.keys = list(self.edges)
        count: int | None = 0
        running: list[int] = []
        for key, child in self.edges.items():
            each = level.domain.size if isinstance(key, Free) else 1
            count = (
                None if count is None or each is None or child.count is None else count + each * child.count
            )
            self.mass += level.weight(key) * child.mass
            running.append(self.mass)
        self.count = count
        self.cumulative = [part / self.mass for part in running]

    def draw(self, share: float) -> Key:
        """The choice at a share of the mass, share in [0, 1)."""
        return self.keys[min(bisect_right(self.cumulative, share), len(self.keys) - 1)]


@dataclass(frozen=True, slots=True)
class Diagram:
    """The finished diagram.

    Attributes:
        levels: the parameters in the order of decision: a condition's parameters before what depends on them.
        root: the first state; its mass is 0 where no configuration is valid.
        edges: the number of edges that were looked at.
    """

    levels: tuple[DiagramLevel, ...]
    root: DiagramNode
    edges: int

    def assignments(self) -> Iterator[list[Value | None]]:
        """Every path with its values, lexicographically by level; no free level may be continuous."""
        path: list[Value | None] = []
        stack = [self._steps(0, self.root)]
        while stack:
            if len(path) == len(self.levels):
                yield list(path)
            else:
                assert len(stack) == len(path) + 1
            step = next(stack[-1], None)
            if step is None:
                stack.pop()
                if path:
                    path.pop()
                continue
            value, node = step
            path.append(value)
            stack.append(self._steps(len(path), node))

    def _steps(self, index: int, node: DiagramNode) -> Iterator[tuple[Value | None, DiagramNode]]:
        for key, child in node.edges.items():
            if isinstance(key, Free):
                for value in self.levels[index].domain.each():
                    yield value, child
            else:
                yield key, child


def build(
    levels: Sequence[DiagramLevel],
    rules: Sequence[Expression],
    running: Sequence[RunningRule] = (),
    *,
    edges_max: int = _EDGES_MAX,
) -> Diagram:
    """Build the diagram of a space.

    Args:
        levels: every parameter, those that a condition mentions before those that it governs.
        rules: constraints that remember the values of their parameters; none mentions a free parameter.
        running: constraints that remember less, over unconditional parameters in the order of the levels.
        edges_max: the most edges.

    Raises:
        TooLarge: more edges.
        ExpressionError: a condition or constraint cannot be evaluated.
    """
    closing, last_use = _closing(levels, rules)
    told = [[number for number, one in enumerate(running) if level.name in one.names] for level in levels]
    conditions = [None if level.condition is None else _Rule(level.condition) for level in levels]
    root = DiagramNode()
    totals: tuple[object, ...] = tuple(rule.first for rule in running)
    states: dict[tuple[tuple[Key, ...], tuple[object, ...]], DiagramNode] = {((), totals): root}
    frontier: list[int] = []
    layers: list[list[DiagramNode]] = []
    edges = 0
    for index, level in enumerate(levels):
        layers.append(list(states.values()))
        choices, condition = _choices(level), conditions[index]
        if edges + len(states) * (len(choices) if condition is None else 1) > edges_max:
            raise TooLarge
        names = [levels[position].name for position in frontier]
        kept = [position for position in (*frontier, index) if last_use[position] > index]
        following: dict[tuple[tuple[Key, ...], tuple[object, ...]], DiagramNode] = {}
        for (state, totals), node in states.items():
            known = dict(zip(names, state, strict=True))
            for key in choices if condition is None or condition.holds(known) is True else (None,):
                edges += 1
                known[level.name] = key
                if any(rule.holds(known) is False for rule in closing[index]):
                    continue
                totals_after = _told(running, told[index], totals, level.name, key)
                if totals_after is None:
                    continue
                after = tuple(known[levels[position].name] for position in kept)
                node.edges[key] = following.setdefault((after, totals_after), DiagramNode())
            if edges > edges_max:
                raise TooLarge
        states, frontier = following, kept

    for node in states.values():
        node.count, node.mass = 1, 1
    for level, layer in zip(reversed(levels), reversed(layers), strict=True):
        for node in layer:
            node.finish(level)
    return Diagram(tuple(levels), root, edges)


def _closing(
    levels: Sequence[DiagramLevel], rules: Sequence[Expression]
) -> tuple[list[list[_Rule]], list[int]]:
    """The rules whose last parameter each level decides, and the last level that asks for its value."""
    place = {level.name: index for index, level in enumerate(levels)}
    closing: list[list[_Rule]] = [[] for _ in levels]
    last_use = [-1] * len(levels)
    for rule in rules:
        end = max(place[name] for name in rule.names)
        closing[end].append(_Rule(rule))
        for name in rule.names:
            last_use[place[name]] = max(last_use[place[name]], end)
    for index, level in enumerate(levels):
        for name in level.condition.names if level.condition else ():
            last_use[place[name]] = max(last_use[place[name]], index)
    return closing, last_use


def _told(
    running: Sequence[RunningRule], numbers: Sequence[int], totals: tuple[object, ...], name: str, key: Key
) -> tuple[object, ...] | None:
    """The states of running rules after a value; None where one is broken."""
    if not numbers:
        return totals
    assert key is not None, "running rules are about unconditional parameters"
    assert not isinstance(key, Free), "running rules are about listed values"
    found = list(totals)
    for number in numbers:
        found[number] = running[number].after(found[number], name, key)
        if found[number] is BROKEN:
            return None
    return tuple(found)


def _choices(level: DiagramLevel) -> tuple[Key, ...]:
    return (FREE,) if level.values is None else level.values


class _Rule:
    """A formula that remembers its results: states share most of what it depends on."""

    def __init__(self, expression: Expression) -> None:
        self._expression = expression
        self._names = expression.names
        self._results: dict[tuple[Key, ...], bool | None] = {}

    def holds(self, known: dict[str, Key]) -> bool | None:
        arguments = tuple(known[name] for name in self._names)
        try:
            return self._results[arguments]
        except KeyError:
            result = self._results[arguments] = holds(self._expression, known)
            return result


def holds(expression: Constraint, known: Mapping[str, Key]) -> bool | None:
    """Whether a formula or relation over parameters holds; None where it is n/a.

    Raises:
        SpaceError: it cannot be evaluated with these values.
    """
    values = {name: None if isinstance(value := known[name], Free) else value for name in expression.names}
    try:
        return expression.holds(values)
    except ExpressionError as error:
        given = ", ".join(f"{name} = {value!r}" for name, value in values.items())
        raise SpaceError(
            f"constraint or condition {str(expression)!r} with {given}: {error.message}"
        ) from error
