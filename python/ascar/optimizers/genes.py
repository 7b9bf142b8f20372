"""Changing configurations gene by gene: random values, mutation, crossover; the results are always valid."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascar.space import Choices

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy as np

    from ascar.space import Configuration, Domain, Space, Value

__all__ = ["cross", "mutable", "mutate", "other_value", "random_value", "settle", "step"]

_TRIES_MAX = 32


def mutable(space: Space, configuration: Configuration) -> list[str]:
    """The active parameters that could take another value, in the space's order."""
    return [name for name in space.names if name in configuration and space.domain(name).size != 1]


def random_value(domain: Domain, rng: np.random.Generator) -> Value:
    """A value uniform on the domain's scale; each special value is as likely as any other value."""
    if isinstance(domain, Choices):
        return domain.values[int(rng.integers(len(domain.values)))]
    slots = (
        domain.size or 2 * len(domain.special) + 2
    )  # continuous: half for the range, half for the specials
    pick = int(rng.integers(slots)) if domain.special else slots
    if pick < len(domain.special):
        return domain.special[pick]
    return domain.quantile(float(rng.random()))


def other_value(domain: Domain, value: Value, rng: np.random.Generator) -> Value:
    """A random value that differs from `value`, where the domain has one."""
    if isinstance(domain, Choices):
        others = [other for other in domain.values if other != value]
        return others[int(rng.integers(len(others)))] if others else value
    for _ in range(_TRIES_MAX):
        other = random_value(domain, rng)
        if other != value:
            return other
    return value


def step(space: Space, name: str, value: Value, rng: np.random.Generator) -> Value:
    """Another value of a parameter: the next one of an ordered list, a number nearby, or any other.

    The width of a step on a range is log-uniform from 1% to 100% of it: no single width suits both a coarse
    and a fine optimum.
    """
    domain = space.domain(name)
    if isinstance(domain, Choices):
        if not domain.ordered or rng.random() < 0.3:
            return other_value(domain, value, rng)
        rank = domain.values.index(value) + (1 if rng.random() < 0.5 else -1)
        return domain.values[rank] if 0 <= rank < len(domain.values) else other_value(domain, value, rng)
    if value in domain.special or rng.random() < 0.1:
        return other_value(domain, value, rng)
    assert isinstance(value, (int, float)), "a range holds numbers"
    width = 10.0 ** rng.uniform(-2, 0)
    moved = domain.nearest(domain.position(value) + width * rng.normal())
    return moved if moved != value else other_value(domain, value, rng)


def settle(space: Space, wanted: Mapping[str, Value], rng: np.random.Generator) -> Configuration:
    """The valid configuration nearest to the wanted values.

    Parameters that became active without a wanted value get a random one: their default would be tried each
    time, and nothing else of the branch would ever be seen.
    """
    settled = space.nearest(wanted)
    missing = [name for name in settled if name not in wanted and space.domain(name).size != 1]
    if not missing:
        return settled
    return space.nearest({**wanted, **{name: random_value(space.domain(name), rng) for name in missing}})


def mutate(
    space: Space,
    configuration: Configuration,
    name: str,
    rng: np.random.Generator,
    draw: Callable[[str, Value], Value] | None = None,
) -> Configuration:
    """With another value of one active parameter, and what follows from that.

    Args:
        space: what is searched.
        configuration: valid.
        name: of the gene, active in it.
        rng: of the random choices.
        draw: gives the new value of a parameter, from its old one; None: any other, all equally likely.
    """
    value = configuration[name]
    other = draw(name, value) if draw else other_value(space.domain(name), value, rng)
    # The changed gene comes first: where a constraint forces something to give way, it is another gene.
    held = {key: kept for key, kept in configuration.items() if key != name}
    child = settle(space, {name: other, **held}, rng)
    if child.get(name) == other:
        return child
    return _around(space, configuration, name, other, rng) or child


def _around(
    space: Space, configuration: Configuration, name: str, other: Value, rng: np.random.Generator
) -> Configuration | None:
    """A configuration that has the new value, by giving up one other gene that stands in its way."""
    for blocker in mutable(space, configuration):
        if blocker == name:
            continue
        for _ in range(4):
            value = other_value(space.domain(blocker), configuration[blocker], rng)
            wanted = {**configuration, name: other, blocker: value}
            if space.is_valid(wanted):
                return space.validate(wanted)
    return None


def cross(
    space: Space, one: Configuration, two: Configuration, cut: int, rng: np.random.Generator
) -> Configuration:
    """One-point crossover (Cao Fig. 2.3a): genes before the cut from one parent, the rest from the other.

    Where the parent whose turn it is does not have an active gene, the other one gives it.
    """
    wanted: dict[str, Value] = {}
    for index, name in enumerate(space.names):
        first, second = (one, two) if index < cut else (two, one)
        if name in first:
            wanted[name] = first[name]
        elif name in second:
            wanted[name] = second[name]
    return settle(space, wanted, rng)
