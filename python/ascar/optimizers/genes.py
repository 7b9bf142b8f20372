"""Changing configurations gene by gene: random values, mutation, crossover; the results are always valid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ascar.optimizers.exchanges import Exchanges
from ascar.space import Choices, Configuration, Range

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy as np

    from ascar.space import Domain, Space, Value

_TRIES_MAX = 32
_OTHERS_MAX = 8
# Of an ordered list: the share of steps that go anywhere; of a range likewise.
_LEAP_CHOICES, _LEAP_RANGE = 0.3, 0.1
# A range of so many values counts as short.
SHORT_MAX = 64
# Of the changes of a parameter that a constraint ties to others: the share for which another one moves too.
_EXCHANGE_SHARE = 0.5


def free_parameters(space: Space) -> frozenset[str]:
    """Parameters that no condition and no constraint mentions: any of their values leaves others valid."""
    conditions = [parameter.condition for parameter in space.parameters if parameter.condition is not None]
    bound = {name for formula in (*conditions, *space.constraints) for name in formula.names}
    return frozenset(space.names) - bound


def listed(domain: Domain) -> Domain:
    """A short linear range as the list of its values, any other domain as it is.

    `[1, 2, 3, 4]` and `1 to 4` are the same values: a search that lists them takes the same way through both.
    """
    if not isinstance(domain, Range) or domain.log or domain.special:
        return domain
    if domain.size is None or domain.size > SHORT_MAX:
        return domain
    return Choices(tuple(domain.each()), ordered=True)


def random_value(domain: Domain, rng: np.random.Generator) -> Value:
    """A value uniform on the domain's scale; each special value is as likely as any other value."""
    if isinstance(domain, Choices):
        return domain.values[int(rng.integers(len(domain.values)))]
    return domain.draw(float(rng.random()))


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


def step(domain: Domain, value: Value, rng: np.random.Generator) -> Value:
    """Another value: the next one of an ordered list, a number nearby, or sometimes any other.

    The width of a step on a range is log-uniform from 1% to 100% of it: no single width suits both a coarse
    and a fine optimum.
    """
    if isinstance(domain, Choices):
        if not domain.ordered or rng.random() < _LEAP_CHOICES:
            return other_value(domain, value, rng)
        rank = domain.values.index(value) + (1 if rng.random() < 0.5 else -1)
        return domain.values[rank] if 0 <= rank < len(domain.values) else other_value(domain, value, rng)
    if value in domain.special or rng.random() < _LEAP_RANGE:
        return other_value(domain, value, rng)
    assert isinstance(value, (int, float)), "a range holds numbers"
    width = 10.0 ** rng.uniform(-2, 0)
    moved = domain.nearest(domain.position(value) + width * rng.normal())
    return moved if moved != value else other_value(domain, value, rng)


@dataclass(frozen=True, slots=True)
class Genes:
    """The genes of a space.

    Attributes:
        space: the space.
        domains: the values of each gene by name, in the space's order.
        free: names of the free ones; see `free_parameters`.
        exchanges: moves of two genes that a constraint ties.
    """

    space: Space
    domains: Mapping[str, Domain]
    free: frozenset[str]
    exchanges: Exchanges

    @classmethod
    def of(cls, space: Space) -> Genes:
        """The genes of a space."""
        return cls._of(space, {name: space.domain(name) for name in space.names})

    @classmethod
    def in_lists(cls, space: Space) -> Genes:
        """The genes of a space whose short ranges are lists; see `listed`."""
        return cls._of(space, {name: listed(space.domain(name)) for name in space.names})

    @classmethod
    def _of(cls, space: Space, domains: Mapping[str, Domain]) -> Genes:
        return cls(space, domains, free_parameters(space), Exchanges.of(space, domains))

    def mutable(self, configuration: Configuration) -> list[str]:
        """The active parameters that could take another value, in the space's order."""
        return [name for name, domain in self.domains.items() if domain.size != 1 and name in configuration]

    def mutate(
        self,
        configuration: Configuration,
        name: str,
        rng: np.random.Generator,
        draw: Callable[[Domain, Value, np.random.Generator], Value] = other_value,
    ) -> Configuration:
        """With another value of one active parameter, and what follows from that.

        Args:
            configuration: valid.
            name: the name of the gene, which must be active.
            rng: the random generator.
            draw: gives the new value, from the domain and the old one.
        """
        other = draw(self.domains[name], configuration[name], rng)
        if name in self.free:
            return configuration.replaced(**{name: other})
        tied = name in self.exchanges.partners
        if tied and rng.random() < _EXCHANGE_SHARE:
            exchanged = self.exchanges.exchanged(configuration, name, other, rng)
            if exchanged is not None:
                return exchanged
        child = self._settle({**configuration, name: other}, rng)
        if child.get(name) == other:
            return child
        exchanged = self.exchanges.exchanged(configuration, name, other, rng) if tied else None
        return exchanged or self._around(configuration, name, other, rng) or child

    def cross(
        self, one: Configuration, two: Configuration, cut: int, rng: np.random.Generator
    ) -> Configuration:
        """One-point crossover (Cao Fig. 2.3a): genes before the cut from one parent, the rest from the other.

        Where the parent whose turn it is does not have an active gene, the other one gives it.
        """
        wanted: dict[str, Value] = {}
        for index, name in enumerate(self.domains):
            first, second = (one, two) if index < cut else (two, one)
            if name in first:
                wanted[name] = first[name]
            elif name in second:
                wanted[name] = second[name]
        if len(self.free) == len(self.domains) == len(wanted):
            return Configuration(wanted)
        return self._settle(wanted, rng)

    def _settle(self, wanted: Mapping[str, Value], rng: np.random.Generator) -> Configuration:
        """The valid configuration nearest to the wanted values.

        Parameters that became active without a wanted value get a random one: their default would be tried
        each time, and nothing else of the branch would ever be seen.
        """
        settled = self.space.nearest(wanted)
        missing = [name for name in settled if name not in wanted and self.domains[name].size != 1]
        if not missing:
            return settled
        drawn = {name: random_value(self.domains[name], rng) for name in missing}
        return self.space.nearest({**wanted, **drawn})

    def _around(
        self, configuration: Configuration, name: str, other: Value, rng: np.random.Generator
    ) -> Configuration | None:
        """A configuration that has the new value, by giving up one other gene that stands in its way."""
        for blocker in self.mutable(configuration):
            if blocker == name or blocker in self.free:
                continue
            for value in _others(self.domains[blocker], configuration[blocker], rng):
                wanted = {**configuration, name: other, blocker: value}
                if self.space.is_valid(wanted):
                    return self.space.validate(wanted)
        return None


def _others(domain: Domain, value: Value, rng: np.random.Generator) -> list[Value]:
    """Some other values in random order; all of them where they are few."""
    if isinstance(domain, Choices):
        others = [other for other in domain.values if other != value]
        return [others[int(at)] for at in rng.permutation(len(others))[:_OTHERS_MAX]]
    return [other_value(domain, value, rng) for _ in range(_OTHERS_MAX)]
