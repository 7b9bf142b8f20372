"""What a visit to a setting promises."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["promise"]


def promise(
    mean: NDArray[np.float64], sd: NDArray[np.float64], base: float, noise_variance: float
) -> NDArray[np.float64]:
    """(m,): by how much more than the best one known a setting is expected to turn out, after a visit.

    That is the expected improvement (Mockus 1975) with the deviation of the posterior mean after one visit
    (knowledge gradient; Frazier, Powell and Dayanik 2009): what a noisy visit cannot show promises nothing.

    Args:
        mean: of each setting's performance.
        sd: of it.
        base: mean of the best one known.
        noise_variance: of a visit's mean.
    """
    shown = sd * sd / np.sqrt(sd * sd + noise_variance + 1e-300)
    shown = np.maximum(shown, 1e-12 * max(abs(base), 1e-300))
    z = (mean - base) / shown
    return shown * (z * ndtr(z) + np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi))
