"""Neighbours: configurations that differ from one in a single choice.

A neighbour changes one parameter. Parameters that the change makes inactive disappear; those that it
activates take their defaults (or, where a constraint forbids one, the value nearest to it); all others keep
their values. Where they cannot, there is no such neighbour. Of a list of choices, and of a range with up to
64 values, every other value is tried; of a wider range the values one step, 1% and 10% of its scale away in
both directions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ascar.space.diagram import FREE, Free
from ascar.space.domain import Range
from ascar.space.solver import nearest_key, nearest_value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ascar.space.configuration import Configuration
    from ascar.space.diagram import DiagramLevel, DiagramNode, Key
    from ascar.space.domain import Value
    from ascar.space.solver import Solver

_FEW: Final = 64
_DISTANCES: Final = (0.01, 0.1)


def neighbours(solver: Solver, configuration: Configuration) -> list[Configuration]:
    """Every neighbour of a valid configuration, each once, in the order of decision."""
    found: dict[Configuration, None] = {}
    node = solver.diagram.root
    before: dict[str, Value | None] = {}
    for index, level in enumerate(solver.order):
        value = configuration.get(level.name)
        if value is not None:
            for key, other in _others(level, node, value):
                known = {**before, level.name: other}
                if _follow(solver, index + 1, node.edges[key], known, configuration) and solver.accepts(
                    known
                ):
                    found.setdefault(solver.configuration(known))
        before[level.name] = value
        node = node.edges[_key(node, value)]
    return list(found)


def _follow(
    solver: Solver,
    index: int,
    node: DiagramNode,
    known: dict[str, Value | None],
    configuration: Configuration,
) -> bool:
    """Complete `known` from a level on; False where a value that should stay cannot."""
    for level in solver.order[index:]:
        if None in node.edges:
            key, known[level.name] = None, None
        elif level.name in configuration:
            value = configuration[level.name]
            key, known[level.name] = _key(node, value), value
        else:
            default = solver.default_of(level.name)
            key = nearest_key(level, node, default, default)
            known[level.name] = (
                nearest_value(level.domain, default, default) if isinstance(key, Free) else key
            )
        if key not in node.edges:
            return False
        node = node.edges[key]
    return True


def _key(node: DiagramNode, value: Value | None) -> Key:
    return FREE if FREE in node.edges else value


def _others(level: DiagramLevel, node: DiagramNode, value: Value) -> Iterator[tuple[Key, Value]]:
    """The other values that a state allows, near ones where the range is wide."""
    domain = level.domain
    if not isinstance(domain, Range):
        yield from (
            (key, key) for key in node.keys if key is not None and not isinstance(key, Free) and key != value
        )
        return
    for other in _near(domain, value):
        key = _key(node, other)
        if key in node.edges:
            yield key, other


def _near(domain: Range, value: Value) -> Iterator[Value]:
    assert not isinstance(value, (bool, str)), "a range holds numbers"
    if domain.size is not None and domain.size <= _FEW:
        yield from (other for other in domain.each() if other != value)
        return
    near: dict[Value, None] = dict.fromkeys(domain.special)
    place = 0.0 if value in domain.special else domain.position(value)
    for distance in _DISTANCES:
        near.setdefault(domain.nearest(place - distance))
        near.setdefault(domain.nearest(place + distance))
    if domain.step is not None and value not in domain.special:
        steps = (value - domain.step, value + domain.step)
        near |= dict.fromkeys(
            domain.nearest(domain.position(s)) for s in steps if domain.low <= s <= domain.high
        )
    near.pop(value, None)
    yield from near
