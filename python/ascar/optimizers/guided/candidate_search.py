"""Where a model is asked what is promising: everywhere in small spaces, else by a search of its own.

In a space of many parameters few of which matter, hardly any random change touches one that does. The search
therefore takes several rounds, goes on from what the model finds most promising, and changes genes in
proportion to how much the model says they matter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ascar.optimizers.genes import Genes, step

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from ascar.optimizers.guided.columns import SpaceColumns
    from ascar.optimizers.ledger import Ledger
    from ascar.space import Configuration


@dataclass(frozen=True, slots=True)
class Reach:
    """How many candidates are looked at.

    Attributes:
        everywhere_max: spaces of at most so many configurations are looked at whole.
        pool: random configurations that are drawn once and kept.
        spread: the number of random candidates in each step.
        near: variations of each centre.
        bound: variations of each centre in parameters that conditions or constraints mention.
        tied: variations of each parent in parameters that a sum or a relation ties, exchanges among them.
        rounds: the number of rounds that vary the most promising candidates.
        parents: the number of candidates that each round varies.
        children: the number of variations of each parent.
        kept: the most promising, handed back.
    """

    everywhere_max: int = 1_000
    pool: int = 1_000
    spread: int = 150
    near: int = 30
    bound: int = 8
    tied: int = 4
    rounds: int = 4
    parents: int = 8
    children: int = 15
    kept: int = 150


@dataclass(frozen=True, slots=True, eq=False)
class RankedCandidates:
    """Candidates, the most promising first.

    Attributes:
        codes: float64 (m, genes).
        columns: float64 (m, D).
        likes: configurations that differ from each candidate in free genes alone.
    """

    codes: NDArray[np.float64]
    columns: NDArray[np.float64]
    likes: Sequence[Configuration]

    def __len__(self) -> int:
        return len(self.codes)

    def where(self, kept: NDArray[np.bool_]) -> RankedCandidates:
        """Some of them; all, where none would be left."""
        if kept.all() or not kept.any():
            return self
        likes = [like for like, keep in zip(self.likes, kept.tolist(), strict=True) if keep]
        return RankedCandidates(self.codes[kept], self.columns[kept], likes)


class CandidateSearch:
    """Proposals for a model to judge, all valid."""

    def __init__(self, ledger: Ledger, columns: SpaceColumns, reach: Reach, rng: np.random.Generator) -> None:
        self._ledger = ledger
        self._columns = columns
        self._codes = columns.codes
        self._genes = Genes.in_lists(ledger.space)
        self._reach = reach
        count = ledger.space.count()
        self._whole = count is not None and count <= reach.everywhere_max
        drawn = ledger.space.enumerate() if self._whole else ledger.space.sample(rng, reach.pool)
        self._pool = tuple(dict.fromkeys(drawn))
        self._pool_codes = self._codes.rows(self._pool)
        self._pool_columns = columns.expand(self._pool_codes)
        self._places = {one: place for place, one in enumerate(self._pool)}

    @property
    def whole(self) -> bool:
        """Whether every configuration of the space is a candidate."""
        return self._whole

    def search(
        self,
        promise: Callable[[NDArray[np.float64]], NDArray[np.float64]],
        centres: Sequence[Configuration],
        weights: NDArray[np.float64],
        rng: np.random.Generator,
    ) -> RankedCandidates:
        """The most promising configurations that are neither measured nor out.

        Args:
            promise: the promise of encoded configurations (m, D); more is better.
            centres: the configurations around which the search starts.
            weights: (genes,), above zero: how likely each gene is to be changed.
            rng: the source of the random choices.
        """
        if self._whole:
            return self._everywhere(promise)
        codes, likes = self._begin(centres, weights, rng)
        columns = self._columns.expand(codes)
        worth = promise(columns)
        for _ in range(self._reach.rounds):
            parents = np.argsort(-worth, kind="stable")[: self._reach.parents]
            children = np.repeat(parents, self._reach.children)
            best = [self._codes.configuration(codes[int(at)], likes[int(at)]) for at in parents]
            moved = self._tied(best, rng)
            born = self._codes.vary(codes[children], weights, rng, 1.5)
            born = np.concatenate([born, self._codes.rows(moved)]) if moved else born
            born_columns = self._columns.expand(born)
            codes, columns = np.concatenate([codes, born]), np.concatenate([columns, born_columns])
            worth = np.concatenate([worth, promise(born_columns)])
            likes = likes + [likes[int(parent)] for parent in children] + moved
        order = np.argsort(-worth, kind="stable")[: self._reach.kept]
        return RankedCandidates(codes[order], columns[order], [likes[int(at)] for at in order])

    def fresh(self, found: RankedCandidates, at: int) -> Configuration | None:
        """A candidate as a configuration; None where it is known or out."""
        configuration = self._codes.configuration(found.codes[at], found.likes[at])
        return configuration if self._ledger.fresh(configuration) else None

    def _everywhere(self, promise: Callable[[NDArray[np.float64]], NDArray[np.float64]]) -> RankedCandidates:
        open_ = np.ones(len(self._pool), np.bool_)
        for one in (*self._ledger.records, *self._ledger.pending):
            if one in self._places and not self._ledger.fresh(one):
                open_[self._places[one]] = False
        places = np.flatnonzero(open_)
        order = places[np.argsort(-promise(self._pool_columns[places]), kind="stable")]
        return RankedCandidates(
            self._pool_codes[order], self._pool_columns[order], [self._pool[int(at)] for at in order]
        )

    def _begin(
        self, centres: Sequence[Configuration], weights: NDArray[np.float64], rng: np.random.Generator
    ) -> tuple[NDArray[np.float64], list[Configuration]]:
        """A spread over the space, and variations of the centres."""
        spread = rng.choice(len(self._pool), min(self._reach.spread, len(self._pool)), replace=False)
        likes = [self._pool[int(at)] for at in spread]
        parts = [self._pool_codes[spread]]
        for centre in centres:
            bases = [centre, *self._bound(centre, rng)]
            rows = np.repeat(np.arange(len(bases)), -(-self._reach.near // len(bases)))
            codes = self._codes.rows(bases)
            parts += [self._codes.vary(codes[rows], weights, rng, 2.0), codes[1:]]
            likes += [bases[int(row)] for row in rows] + bases[1:]
        return np.concatenate(parts), likes

    def _tied(self, parents: Sequence[Configuration], rng: np.random.Generator) -> list[Configuration]:
        """Variations in parameters that sums and relations tie; none where there are no such parameters."""
        moved: dict[Configuration, None] = {}
        for parent in parents if self._genes.exchanges.partners else ():
            names = [name for name in self._genes.exchanges.partners if name in parent]
            for _ in range(self._reach.tied if names else 0):
                name = names[int(rng.integers(len(names)))]
                moved.setdefault(self._genes.mutate(parent, name, rng, step))
        return list(moved)

    def _bound(self, centre: Configuration, rng: np.random.Generator) -> list[Configuration]:
        """Variations in parameters that conditions or constraints mention."""
        names = [name for name in self._genes.mutable(centre) if name not in self._genes.free]
        varied = [
            self._genes.mutate(centre, names[int(rng.integers(len(names)))], rng, step)
            for _ in range(self._reach.bound if names else 0)
        ]
        return list(dict.fromkeys(varied))
