"""The kernel: Matérn 5/2 with one length a parameter (Rasmussen and Williams 2006, equation 4.17)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ascar.surrogate.hyperparameters import KernelHyperparameters

CONSTANT = 4.0
"""Prior variance of the constant, in units of the standardised loss: little is known of it."""
JITTER = 1e-8
"""Added to a covariance's diagonal, so that it can be factored."""
_SQRT5 = np.sqrt(5.0)


def scaled(
    columns: NDArray[np.float64], groups: NDArray[np.intp], hyper: KernelHyperparameters
) -> NDArray[np.float64]:
    """(m, D): columns divided by the lengths of their parameters."""
    return columns * np.exp(0.5 * hyper.weight_log)[groups]


def squared_distances(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """(m, k): squared Euclidean distances between rows."""
    squares = (a * a).sum(1)[:, None] + (b * b).sum(1)[None, :] - 2 * a @ b.T
    return np.maximum(squares, 0.0)


def matern(squared: NDArray[np.float64]) -> NDArray[np.float64]:
    """Matérn 5/2 of a squared distance (Rasmussen and Williams, equation 4.17)."""
    root = _SQRT5 * np.sqrt(squared)
    return (1 + root + root * root / 3) * np.exp(-root)


def distances_by_parameter(
    columns: NDArray[np.float64],
    groups: NDArray[np.intp],
    pairs: tuple[NDArray[np.intp], NDArray[np.intp]],
) -> NDArray[np.float64]:
    """(d, pairs): squared distances in each parameter's own columns."""
    distances = np.zeros((int(groups[-1]) + 1 if len(groups) else 0, len(pairs[0])))
    for column, group in enumerate(groups):
        values = columns[:, column]
        difference = values[pairs[0]] - values[pairs[1]]
        distances[group] += difference * difference
    return distances
