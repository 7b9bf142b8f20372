"""A genetic algorithm (Cao 2.2, 5.2-5.4, 9.2): each parameter is a gene, each value an allele.

Defaults are the thesis': population 8, mutation rate 2%. Where its library evaluates a child that is known
already a second time, this one takes the known loss and breeds on: no evaluation is spent on it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ascar.optimizers.genes import Genes, other_value
from ascar.optimizers.initialization import Method, initial
from ascar.optimizers.ledger import Ledger
from ascar.optimizers.options import OptimizerTable
from ascar.optimizers.replayable import Stateful
from ascar.optimizers.stopping import Generation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from ascar.optimizers.ledger import ConfigurationRecord
    from ascar.space import Configuration, Domain, Space, Value

# Known children that are bred on without an evaluation before the population counts as stuck, in populations.
_FREE_GENERATIONS = 16
# Further mutations of one child that look for something new before a random configuration is taken.
_WANDER_MAX = 32
_UNVISITED_DRAWS = 4
# What a random decision is about, for its generator.
_DESIGN, _PARENTS, _MUTATION, _WANDER = range(4)


class GeneticOptions(OptimizerTable, frozen=True, forbid_unknown_fields=True):
    """`[optimizer]` with kind = "genetic".

    Attributes:
        population: members of a generation.
        mutation: chance of each gene of a child to mutate.
        crossover: chance of a pair of parents to be crossed rather than copied.
        elite: best members that live on into the next generation.
        selection: the choice of parents: "tournament" of two, "rank" (chances fall linearly with the rank),
            or "roulette" (chances grow with the distance from the worst).
        mutation_towards: "any" other value alike, or "unvisited": rarely tried ones first (Cao 9.6).
        initialization: the way in which the first generation is drawn (Cao 9.5).
    """

    population: int = 8
    mutation: float = 0.02
    crossover: float = 0.9
    elite: int = 1
    selection: Literal["tournament", "rank", "roulette"] = "tournament"
    mutation_towards: Literal["any", "unvisited"] = "any"
    initialization: Method = "latin-hypercube"

    def ranges(self) -> dict[str, tuple[float, float]]:
        """See the base."""
        return {
            "population": (2, 10_000),
            "mutation": (0.0, 1.0),
            "crossover": (0.0, 1.0),
            "elite": (0, self.population - 1),
        }


@dataclass(frozen=True, slots=True)
class _Member:
    configuration: Configuration
    loss: float


class GeneticAlgorithm(Stateful):
    """Selection, crossover, mutation, elitism; see `GeneticOptions`.

    Args:
        space: the space to search.
        seed: the seed of the random choices.
        start: configurations of the first generation.
        options: the study's `[optimizer]` table without its kind.

    Raises:
        StudyError: an option is unknown or out of range.
        SpaceError: a start configuration is not valid.
    """

    def __init__(
        self,
        space: Space,
        *,
        seed: int = 0,
        start: tuple[Configuration, ...] = (),
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.options = GeneticOptions.read(options)
        self.ledger = Ledger(space, seed, start)
        self._genes = Genes.of(space)
        self._design = initial(
            space,
            self.ledger.rng(_DESIGN),
            self.options.population,
            self.options.initialization,
            self.ledger.start,
        )
        self._population: list[_Member] = []
        self._offspring: list[_Member] = []
        self._dead = 0  # children that were evaluated and are no members: they failed
        self._bred = 0
        self._mutations = 0
        self._past: list[Generation] = []
        self._alleles: dict[str, dict[Value | None, int]] | None = None

    @property
    def generations(self) -> tuple[Generation, ...]:
        """Allele counts and mutations by generation, the present one last (Cao Fig. 5.6)."""
        return (*self._past, self._snapshot()) if self._population else tuple(self._past)

    def learn(self, configuration: Configuration, record: ConfigurationRecord) -> None:
        """A child of this generation was evaluated; one that failed is not a member.

        One that was pruned is: without bad ones a generation of which most are pruned would lose its
        diversity at once (Cao 5.4), and its loss so far says how bad it is.
        """
        if record.estimate is not None:
            self._join(_Member(configuration, record.estimate))
        else:
            self._dead += 1
            self._advance()

    # Breeding.

    def propose(self) -> Configuration:
        """The first child that is fresh; known children join the generation without an evaluation.

        Raises:
            Exhausted: every valid configuration is known or out.
        """
        first = self.ledger.first_fresh(self._design)
        if first is not None:
            return first
        child: Configuration | None = None
        for _ in range(_FREE_GENERATIONS * self.options.population):
            if not self._population:
                break
            child = self._breed()
            if self.ledger.fresh(child):
                return child
            record = self.ledger.records.get(child)
            if record is not None and record.estimate is not None:
                self._join(_Member(child, record.estimate))
        rng = self.ledger.rng(_WANDER, self.ledger.step)
        return (child and self._walk(child, rng)) or self.ledger.draw(rng)

    def _walk(self, child: Configuration, rng: np.random.Generator) -> Configuration | None:
        """A fresh configuration some mutations away: a converged population goes on exploring."""
        for _ in range(_WANDER_MAX):
            genes = self._genes.mutable(child)
            if not genes:
                return None
            child = self._genes.mutate(child, genes[int(rng.integers(len(genes)))], rng)
            self._mutations += 1
            if self.ledger.fresh(child):
                return child
        return None

    def _breed(self) -> Configuration:
        """The next child of this generation: one of the two that a pair of parents has, mutated."""
        space, generation = self.ledger.space, len(self._past)
        rng = self.ledger.rng(_PARENTS, generation, self._bred // 2)
        one, two = self._select(rng), self._select(rng)
        if len(space) > 1 and rng.random() < self.options.crossover:
            cut = int(rng.integers(1, len(space)))
            pair = (one, two) if self._bred % 2 == 0 else (two, one)
            child = self._genes.cross(*pair, cut, rng)
        else:
            child = one if self._bred % 2 == 0 else two
        rng = self.ledger.rng(_MUTATION, generation, self._bred)
        self._bred += 1
        for name in self._genes.mutable(child):
            if rng.random() < self.options.mutation and name in child:
                draw = (
                    other_value if self.options.mutation_towards == "any" else partial(self._unvisited, name)
                )
                child = self._genes.mutate(child, name, rng, draw)
                self._mutations += 1
        return child

    def _select(self, rng: np.random.Generator) -> Configuration:
        members = self._population
        match self.options.selection:
            case "tournament":
                chosen = min(rng.integers(len(members), size=2))  # members stand in the order of their loss
            case "rank":
                chosen = rng.choice(len(members), p=_shares(np.arange(len(members), 0, -1.0)))
            case "roulette":
                losses = np.array([member.loss for member in members])
                chosen = rng.choice(len(members), p=_shares(losses.max() - losses))
        return members[int(chosen)].configuration

    def _unvisited(self, name: str, domain: Domain, value: Value, rng: np.random.Generator) -> Value:
        """Of some random other values, the one that was tried least (Cao 9.6)."""
        visits = Counter(one.get(name) for one, record in self.ledger.records.items() if record.seen)
        drawn = [other_value(domain, value, rng) for _ in range(_UNVISITED_DRAWS)]
        return min(drawn, key=lambda allele: visits[allele])

    # Generations.

    def _join(self, member: _Member) -> None:
        self._offspring.append(member)
        self._advance()

    def _advance(self) -> None:
        """Let the next generation begin once this one is complete."""
        size = self.options.population
        if len(self._offspring) + self._dead < (size if self._population else min(size, len(self._design))):
            return
        if self._population:
            self._past.append(self._snapshot())
        elite = self._population[: self.options.elite]
        living = elite + sorted(self._offspring, key=lambda member: member.loss)[: size - len(elite)]
        living += self._population[len(elite) : len(elite) + size - len(living)]
        self._population = sorted(living, key=lambda member: member.loss)
        self._offspring, self._dead, self._bred, self._mutations = [], 0, 0, 0
        self._alleles = None

    def _snapshot(self) -> Generation:
        members = [member.configuration for member in self._population]
        if self._alleles is None:
            self._alleles = {
                name: dict(Counter(one.get(name) for one in members).most_common())
                for name in self.ledger.space.names
            }
        return Generation(self._alleles, len(members), self._mutations)


def _shares(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weights as probabilities; equal ones where all are zero."""
    total = weights.sum()
    return weights / total if total > 0 else np.full(len(weights), 1 / len(weights))
