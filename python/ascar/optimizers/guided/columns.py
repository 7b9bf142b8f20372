"""Codes as rows of numbers in which squared Euclidean distance means what it should.

Per parameter, between two configurations:

- numbers and ordered values: the squared difference of their positions in [0, 1], on the parameter's scale,
  by rank where the values are a list;
- categories: 1 where they differ;
- special values, and a parameter that does not apply (Cao's "n/a"): a point of its own, at height sqrt(3)/2
  above the middle of the numbers, so 0.75 to 1 from any of them and 1.5 from another special one.

All of these are distances between points of a Euclidean space, so a stationary kernel on them is positive
definite. The columns of a parameter form a group, which shares one length.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ascar.optimizers.guided.codes import Codes, Gene

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from ascar.space import Configuration, Space

_APART = 1 / np.sqrt(2.0)  # one-hot columns of this height are at squared distance 1
_HEIGHT = np.sqrt(0.75)


@dataclass(frozen=True, slots=True)
class SpaceColumns:
    """The encoding of one space.

    Attributes:
        codes: the coding it expands.
        groups: int (D,), the index in `names` of the parameter that each column belongs to.
    """

    codes: Codes
    groups: NDArray[np.intp]

    @classmethod
    def of(cls, space: Space) -> SpaceColumns:
        """The encoding for a space."""
        codes = Codes.of(space)
        return cls(codes, np.repeat(np.arange(len(codes.genes)), [_width(gene) for gene in codes.genes]))

    @property
    def names(self) -> tuple[str, ...]:
        """Parameters that can vary, in the space's order; the others carry no information."""
        return self.codes.names

    @property
    def width(self) -> int:
        """D, the columns of a row."""
        return len(self.groups)

    def rows(self, configurations: Iterable[Configuration]) -> NDArray[np.float64]:
        """float64 (n, D): one row a configuration."""
        return self.expand(self.codes.rows(configurations))

    def expand(self, codes: NDArray[np.float64]) -> NDArray[np.float64]:
        """float64 (n, D) from codes (n, genes)."""
        parts = [_expand(gene, codes[:, index]) for index, gene in enumerate(self.codes.genes)]
        return np.concatenate(parts, axis=1) if parts else np.empty((len(codes), 0))


def _width(gene: Gene) -> int:
    if gene.ordered:
        return 1 + len(gene.special) + gene.conditional
    kinds = gene.size + gene.conditional
    return 1 if kinds == 2 else kinds


def _expand(gene: Gene, codes: NDArray[np.float64]) -> NDArray[np.float64]:
    """float64 (n, width) of one gene."""
    absent = np.isnan(codes)
    if not gene.ordered:
        kind = np.where(absent, gene.size, codes).astype(np.intp)
        if gene.size + gene.conditional == 2:
            return kind[:, None].astype(np.float64)
        return _APART * (kind[:, None] == np.arange(_width(gene)))
    columns = np.zeros((len(codes), _width(gene)))
    place = codes / max(1, gene.size - 1) if gene.size else codes
    columns[:, 0] = np.where(absent | (codes < 0), 0.5, place)
    for index in range(len(gene.special)):
        columns[:, 1 + index] = np.where(codes == -1.0 - index, _HEIGHT, 0.0)
    if gene.conditional:
        columns[:, -1] = np.where(absent, _HEIGHT, 0.0)
    return columns
