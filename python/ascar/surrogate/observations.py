"""What a model is fitted to: encoded configurations, losses, and how exactly each loss is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class ModelObservations:
    """What a model is fitted to.

    Attributes:
        columns: float64 (n, D), encoded configurations, each one once.
        groups: int (D,), the parameter that each column belongs to, 0..d-1.
        loss: float64 (n,), standardised.
        variance: float64 (n,), known variance of each loss (its squared standard error); 0 where unknown.
        repeats: float64 (n,), how many evaluations each loss is the mean of.
        scatter: float64 (n,), sum of squared differences of these evaluations from their mean.
    """

    columns: NDArray[np.float64]
    groups: NDArray[np.intp]
    loss: NDArray[np.float64]
    variance: NDArray[np.float64]
    repeats: NDArray[np.float64]
    scatter: NDArray[np.float64]

    def __post_init__(self) -> None:
        """Assert that the shapes agree."""
        assert self.columns.shape == (len(self.loss), len(self.groups)), "one row a loss, one group a column"
        assert self.variance.shape == self.repeats.shape == self.loss.shape, "one variance a loss"
        assert self.scatter.shape == self.loss.shape, "one scatter a loss"

    @property
    def parameters(self) -> int:
        """How many parameters the columns encode."""
        return int(self.groups[-1]) + 1 if len(self.groups) else 0

    def believing(self, columns: NDArray[np.float64], loss: NDArray[np.float64]) -> ModelObservations:
        """These, with losses that are only expected taken for measured.

        A batch is chosen one by one like this (kriging believer: Ginsbourger, Le Riche and Carraro, "Kriging
        is well-suited to parallelize optimization", 2010).

        Args:
            columns: (m, D), where the losses are expected.
            loss: (m,), the losses.
        """
        none = np.zeros(len(loss))
        return ModelObservations(
            np.concatenate([self.columns, columns]),
            self.groups,
            np.concatenate([self.loss, loss]),
            np.concatenate([self.variance, none]),
            np.concatenate([self.repeats, none + 1]),
            np.concatenate([self.scatter, none]),
        )
