"""Configurations as rows of codes: what a search by model varies, thousands at a time.

A code is a number a parameter: the index of a choice (or of a grid value, where a range has few); the
position in [0, 1] on a range's scale; -1, -2, ... for a range's special values; NaN where the parameter is
not active.

A parameter is *free* where no condition and no constraint mentions it: any of its values leaves a
configuration valid, so free codes are varied as arrays, without looking at validity again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ascar.optimizers.genes import SHORT_MAX, free_parameters
from ascar.space import Choices, Configuration, Range

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from ascar.space import Domain, Space, Value

_CACHE_MAX = 200_000
# Of an ordered choice: the share of changes to a neighbour; of a position: of moves from where it is.
_NEAR_SHARE = 0.5
_MOVE_SHARE = 0.75
_SPECIAL_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class Gene:
    """One parameter that can vary, and how its values are coded.

    Attributes:
        name: the parameter.
        domain: the values of the parameter.
        values: the values in the order of their indexes; None for a parameter that is coded by position.
        ordered: whether neighbouring indexes are near each other.
        conditional: whether it can be inactive.
        free: whether no condition and no constraint mentions it.
    """

    name: str
    domain: Domain
    values: tuple[Value, ...] | None
    ordered: bool
    conditional: bool
    free: bool

    @property
    def special(self) -> tuple[Value, ...]:
        """Special values, which are coded -1, -2, ..."""
        return self.domain.special if isinstance(self.domain, Range) else ()

    @property
    def size(self) -> int:
        """How many indexes there are; 0 where it is coded by position."""
        return 0 if self.values is None else len(self.values)

    def code(self, value: Value | None) -> float:
        """The code of a value; None: not active."""
        if value is None:
            return float("nan")
        if value in self.special:
            return -1.0 - self.special.index(value)
        if self.values is not None:
            return float(self.values.index(value))
        assert isinstance(self.domain, Range), "only ranges are coded by position"
        assert isinstance(value, (int, float)), "a range holds numbers"
        return self.domain.position(value)

    def value(self, code: float) -> Value | None:
        """The value of a code; None where it is not active."""
        if np.isnan(code):
            return None
        if code < 0:
            return self.special[int(-1 - code)]
        if self.values is not None:
            return self.values[int(code)]
        assert isinstance(self.domain, Range), "only ranges are coded by position"
        return self.domain.nearest(code)


@dataclass(frozen=True, slots=True, eq=False)
class _Kinds:
    """What genes are, as arrays (genes,), so that many codes are changed at once.

    Attributes:
        size: the number of indexes; 0 for a gene that is coded by position.
        ordered: whether neighbouring indexes are near each other.
        special: the number of special values.
        varies: whether it is free and has other values.
    """

    size: NDArray[np.intp]
    ordered: NDArray[np.bool_]
    special: NDArray[np.intp]
    varies: NDArray[np.bool_]

    @classmethod
    def of(cls, genes: tuple[Gene, ...]) -> _Kinds:
        """Of these genes."""
        return cls(
            np.array([gene.size for gene in genes], np.intp),
            np.array([gene.ordered for gene in genes], np.bool_),
            np.array([len(gene.special) for gene in genes], np.intp),
            np.array([gene.free and (gene.size > 1 or gene.values is None) for gene in genes], np.bool_),
        )

    def changed(
        self, genes: NDArray[np.intp], codes: NDArray[np.float64], rng: np.random.Generator
    ) -> NDArray[np.float64]:
        """Other codes: near the old ones where a gene is ordered, or anywhere.

        Args:
            genes: int (n,), of which gene each code is.
            codes: float64 (n,), not NaN.
            rng: the source of the random choices.
        """
        n, size, special = len(codes), self.size[genes], self.special[genes]
        several = np.maximum(size, 2)
        anywhere = rng.integers(0, several)
        other = (codes + rng.integers(1, several)) % several
        stepped = codes + np.where(rng.random(n) < 0.5, -1.0, 1.0)
        near = self.ordered[genes] & (rng.random(n) < _NEAR_SHARE) & (stepped >= 0) & (stepped < size)
        indexed = np.where(codes < 0, anywhere, np.where(near, stepped, other))
        width = 10.0 ** rng.uniform(-2, 0, n)
        moved = np.abs(codes + width * rng.normal(size=n)) % 2.0
        moved = np.where(moved > 1, 2 - moved, moved)  # reflected at both ends
        move = (rng.random(n) < _MOVE_SHARE) & (codes >= 0)
        placed = np.where(move, moved, rng.random(n))
        found = np.where(size > 0, indexed, placed)
        named = -1.0 - rng.integers(0, np.maximum(special, 1))
        return np.where((special > 0) & (rng.random(n) < _SPECIAL_SHARE), named, found)


@dataclass(slots=True)
class Codes:
    """The coding of one space.

    Attributes:
        space: the space.
        genes: parameters that can vary, in the space's order.
    """

    space: Space
    genes: tuple[Gene, ...]
    _kinds: _Kinds
    _cache: dict[Configuration, NDArray[np.float64]] = field(
        default_factory=dict["Configuration", "NDArray[np.float64]"]
    )

    @classmethod
    def of(cls, space: Space) -> Codes:
        """The coding for a space."""
        free = free_parameters(space)
        genes = [
            _gene(
                parameter.name,
                space.domain(parameter.name),
                parameter.condition is not None,
                parameter.name in free,
            )
            for parameter in space.parameters
        ]
        kept = tuple(gene for gene in genes if gene.conditional or gene.domain.size != 1)
        return cls(space, kept, _Kinds.of(kept))

    @property
    def names(self) -> tuple[str, ...]:
        """Parameters that can vary."""
        return tuple(gene.name for gene in self.genes)

    def rows(self, configurations: Iterable[Configuration]) -> NDArray[np.float64]:
        """float64 (n, genes): one row a configuration."""
        rows = [self._row(configuration) for configuration in configurations]
        return np.array(rows, np.float64).reshape(len(rows), len(self.genes))

    def configuration(self, row: NDArray[np.float64], like: Configuration) -> Configuration:
        """The configuration of a row, whose free genes alone may differ from `like`'s."""
        before = self._row(like)
        changed = {
            gene.name: value
            for gene, code, old in zip(self.genes, row.tolist(), before.tolist(), strict=True)
            if code != old and (value := gene.value(code)) is not None
        }
        return like.replaced(**changed)

    def vary(
        self,
        rows: NDArray[np.float64],
        weights: NDArray[np.float64],
        rng: np.random.Generator,
        genes_mean: float,
    ) -> NDArray[np.float64]:
        """Rows with one or more free genes changed each.

        Args:
            rows: (n, genes).
            weights: (genes,), above zero: how likely each gene is to be the one that changes.
            rng: the source of the random choices.
            genes_mean: the mean number of genes that change: at least one, and Poisson beyond that.

        Returns:
            (n, genes); a row without free active genes comes back as it was.
        """
        can = self._kinds.varies & ~np.isnan(rows)
        # The k greatest of log weight + Gumbel noise are k genes drawn by weight without replacement.
        keys = np.where(can, np.log(weights) + rng.gumbel(size=rows.shape), -np.inf)
        rank = np.argsort(np.argsort(-keys, axis=1, kind="stable"), axis=1, kind="stable")
        count = 1 + rng.poisson(max(genes_mean - 1, 0.0), size=(len(rows), 1))
        change = (rank < count) & can
        varied = rows.copy()
        cells = np.nonzero(change)
        varied[cells] = self._kinds.changed(cells[1], rows[cells], rng)
        return varied

    def _row(self, configuration: Configuration) -> NDArray[np.float64]:
        row = self._cache.get(configuration)
        if row is None:
            row = np.array([gene.code(configuration.get(gene.name)) for gene in self.genes], np.float64)
            if len(self._cache) < _CACHE_MAX:
                self._cache[configuration] = row
        return row


def _gene(name: str, domain: Domain, conditional: bool, free: bool) -> Gene:
    if isinstance(domain, Choices):
        return Gene(name, domain, domain.values, domain.ordered, conditional, free)
    if domain.size is not None and not domain.log and domain.size - len(domain.special) <= SHORT_MAX:
        grid = tuple(value for value in domain.each() if value not in domain.special)
        return Gene(name, domain, grid, True, conditional, free)
    return Gene(name, domain, None, True, conditional, free)
