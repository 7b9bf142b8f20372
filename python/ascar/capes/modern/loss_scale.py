"""Losses compressed: of a setting far below the best it matters little how far."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class LossScale:
    """A scale on which a loss of a share x counts as `most` (1 - exp(-x / most)); gains count as they are.

    One setting that loses half of the performance would else make a model believe that everything varies by
    half, and small gains that it is noise.

    Attributes:
        best: performance from which losses are counted.
        top: the performance that shares refer to, above zero.
        most: the largest loss on this scale.
    """

    best: float
    top: float
    most: float

    def compressed(self, plain: NDArray[np.float64]) -> NDArray[np.float64]:
        """(m,): performances on this scale."""
        compressed = self.best + self.top * self.most * np.expm1(-self._loss(plain) / self.most)
        return np.where(plain < self.best, compressed, plain)

    def slope(self, plain: NDArray[np.float64]) -> NDArray[np.float64]:
        """(m,): the slope of the scale, 1 where nothing is lost."""
        return np.exp(-self._loss(plain) / self.most)

    def plain(self, compressed: NDArray[np.float64]) -> NDArray[np.float64]:
        """(m,): the inverse of `compressed`; what would be more than a loss of the whole is that."""
        share = np.clip((self.best - compressed) / self.top / self.most, 0, -np.expm1(-1 / self.most))
        return np.where(
            compressed < self.best, self.best + self.top * self.most * np.log1p(-share), compressed
        )

    def _loss(self, plain: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.maximum(self.best - plain, 0) / self.top
