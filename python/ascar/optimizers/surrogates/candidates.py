"""Where a model is asked what is promising: everywhere in small spaces, else near the best, and widely."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ascar.optimizers.genes import mutable, mutate, step

if TYPE_CHECKING:
    import numpy as np

    from ascar.optimizers.ledger import Ledger
    from ascar.space import Configuration, Space

__all__ = ["Candidates", "Reach"]


@dataclass(frozen=True, slots=True)
class Reach:
    """How many candidates are looked at.

    Attributes:
        everywhere_max: spaces of at most so many configurations are looked at whole.
        spread: random configurations from the whole space.
        near: configurations a few genes away from each of the best.
        genes_max: by how many genes they differ at most.
    """

    everywhere_max: int = 2_000
    spread: int = 200
    near: int = 60
    genes_max: int = 3


class Candidates:
    """Proposals for a model to judge, all valid and fresh."""

    def __init__(self, ledger: Ledger, reach: Reach) -> None:
        self._ledger = ledger
        self._reach = reach
        count = ledger.space.count()
        self._all = (
            tuple(ledger.space.enumerate()) if count is not None and count <= reach.everywhere_max else None
        )

    @property
    def whole(self) -> bool:
        """Whether every configuration of the space is a candidate."""
        return self._all is not None

    def around(self, centres: list[Configuration], rng: np.random.Generator) -> list[Configuration]:
        """Candidates, each once: the neighbourhoods of the centres and a spread over the whole space."""
        if self._all is not None:
            return [one for one in self._all if self._ledger.fresh(one)]
        found = dict.fromkeys(self._ledger.space.sample(rng, self._reach.spread))
        for centre in centres:
            for _ in range(self._reach.near):
                found[_vary(self._ledger.space, centre, self._reach.genes_max, rng)] = None
        return [one for one in found if self._ledger.fresh(one)]


def _vary(space: Space, centre: Configuration, genes_max: int, rng: np.random.Generator) -> Configuration:
    """`centre` with one to `genes_max` genes changed; numbers mostly move a little, sometimes anywhere."""
    varied = centre
    for _ in range(int(rng.integers(1, genes_max + 1))):
        genes = mutable(space, varied)
        if not genes:
            break
        name = genes[int(rng.integers(len(genes)))]
        varied = mutate(space, varied, name, rng, lambda gene, value: step(space, gene, value, rng))
    return varied
