"""Simulated annealing (Cao 2.2, 4.4, 5.2): from neighbour to neighbour, worse ones accepted while it is hot.

Kirkpatrick, Gelatt and Vecchi, "Optimization by Simulated Annealing", Science 220 (1983): a neighbour that
is worse by d is accepted with probability exp(-d / T) (Metropolis). A neighbour differs in one parameter's
value.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

from ascar.optimizers.genes import Genes, step
from ascar.optimizers.ledger import Ledger
from ascar.optimizers.options import OptimizerTable
from ascar.optimizers.replayable import Stateful

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

    from ascar.optimizers.ledger import ConfigurationRecord
    from ascar.space import Configuration, Space

# Moves over known configurations, which cost no evaluation, before the search counts as stuck.
_FREE_MOVES_MAX = 64
# Further steps from where it is stuck before a random configuration is taken.
_WANDER_MAX = 32
# What a random decision is about, for its generator.
_FIRST, _MOVE, _ACCEPT = range(3)


class AnnealingOptions(OptimizerTable, frozen=True, forbid_unknown_fields=True):
    """`[optimizer]` with kind = "annealing".

    Attributes:
        cooling: "linear": the temperature falls evenly to zero within `steps`; "geometric": by `rate` a step.
        temperature: the temperature at the start, over the standard deviation of the losses known so far.
        steps: evaluations until a linear schedule ends; afterwards only improvements are accepted.
        rate: a geometric schedule's factor a step.
    """

    cooling: Literal["linear", "geometric"] = "linear"
    temperature: float = 1.0
    steps: int = 100
    rate: float = 0.95

    def ranges(self) -> dict[str, tuple[float, float]]:
        """See the base."""
        return {
            "temperature": (0.0, 1e6),
            "steps": (1, 10_000_000),
            "rate": (0.0, 1.0),
        }

    def at(self, moves: int) -> float:
        """The temperature after so many moves, over the losses' standard deviation."""
        if self.cooling == "linear":
            return self.temperature * max(0.0, 1 - moves / self.steps)
        return self.temperature * self.rate**moves


class SimulatedAnnealing(Stateful):
    """See `AnnealingOptions`; it begins at the first start configuration, else at the space's default.

    Args:
        space: the space to search.
        seed: the seed of the random choices.
        start: configurations to propose first.
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
        self.options = AnnealingOptions.read(options)
        self.ledger = Ledger(space, seed, start or (space.default(),))
        self._genes = Genes.of(space)
        self._place: tuple[Configuration, float] | None = None
        self._moves = 0  # evaluations that were accepted or turned down
        self._free = 0  # moves over known configurations, for the generators

    def propose(self) -> Configuration:
        """A fresh neighbour of the present place.

        Raises:
            Exhausted: every valid configuration is known or out.
        """
        started = self.ledger.started()
        if started is not None:
            return started
        rng = self.ledger.rng(_MOVE, self.ledger.step, self._free)
        if self._place is None:
            return self.ledger.draw(rng)
        for _ in range(_FREE_MOVES_MAX):
            neighbour = self._neighbour(self._place[0], rng)
            if self.ledger.fresh(neighbour):
                return neighbour
            record = self.ledger.records.get(neighbour)
            self._free += 1
            if record is not None and record.estimate is not None:
                self._consider(neighbour, record.estimate, rng)
        walked = self._place[0]
        for _ in range(_WANDER_MAX):
            walked = self._neighbour(walked, rng)
            if self.ledger.fresh(walked):
                return walked
        return self.ledger.draw(rng)

    def learn(self, configuration: Configuration, record: ConfigurationRecord) -> None:
        """A neighbour was evaluated: move there, or stay; the temperature falls either way."""
        self._moves += 1
        if record.estimate is not None:  # pruned ones are worse than the best, not than every place
            self._consider(configuration, record.estimate, self.ledger.rng(_ACCEPT, len(self.ledger.history)))

    def _neighbour(self, place: Configuration, rng: np.random.Generator) -> Configuration:
        names = self._genes.mutable(place)
        if not names:
            return place
        return self._genes.mutate(place, names[int(rng.integers(len(names)))], rng, step)

    def _consider(self, configuration: Configuration, loss: float, rng: np.random.Generator) -> None:
        """Move to a configuration whose loss is known, with Metropolis' probability."""
        if self._place is None or loss <= self._place[1]:
            self._place = configuration, loss
            return
        temperature = self.options.at(self._moves) * self.ledger.spread()
        if temperature > 0 and rng.random() < math.exp(-(loss - self._place[1]) / temperature):
            self._place = configuration, loss
