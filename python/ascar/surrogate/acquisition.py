"""What a candidate promises under a normal posterior: expected improvement, and two others to compare with.

Jones, Schonlau and Welch, "Efficient Global Optimization of Expensive Black-Box Functions", Journal of Global
Optimization 13 (1998), equation 15; Cao 2.2 and 5.2 use the same acquisition function, and 5.5 names it among
the hyperparameters whose effect is to be found out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ascar import _core

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Acquisition = Callable[[NDArray[np.float64], NDArray[np.float64], float], NDArray[np.float64]]

# In standard deviations of the losses: what counts as an improvement, else the nearest neighbour of the best
# always promises most (Jones 2001, section 4); and how many deviations below the mean one hopes for.
_MARGIN, _HOPE = 0.01, 2.0


def expected_improvement(
    mean: NDArray[np.float64], sd: NDArray[np.float64], best: float
) -> NDArray[np.float64]:
    """E[max(best - f, 0)] where f ~ N(mean, sd²): how far below `best` a candidate is expected to fall.

    Args:
        mean: (n,) posterior means of the loss.
        sd: (n,) posterior standard deviations, not negative; where 0, the improvement is certain.
        best: the loss to improve upon.

    Returns:
        (n,), in the loss's unit.
    """
    return np.exp(log_expected_improvement(mean, sd, best))


def log_expected_improvement(
    mean: NDArray[np.float64], sd: NDArray[np.float64], best: float
) -> NDArray[np.float64]:
    """The logarithm of expected improvement, exact far into the tail where the plain formula is 0.

    Far below the best every candidate's improvement underflows and their order is lost; the logarithm keeps
    it (Ament et al., "Unexpected Improvements to Expected Improvement", NeurIPS 2023, section 4.1). With
    z = (best - mean) / sd it is log sd + log(φ(z) + z Φ(z)), and the second term is
    log φ(z) + log(1 - |z| R(|z|)) for negative z, R being Mills' ratio.

    Returns:
        (n,); -inf where no improvement is possible.
    """
    assert mean.shape == sd.shape, "one deviation a mean"
    gap = best - mean
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        z = np.where(sd > 0, gap / sd, 0.0)
        log_density = -0.5 * z**2 - 0.5 * np.log(2 * np.pi)
        above = np.log(np.exp(log_density) + z * _core.normal_below(z))
        tail = np.abs(z)
        # 1 - |z| R(|z|) tends to 1/z²; beyond 1e3 the difference cancels, and the limit is exact to 1e-6.
        remainder = np.where(tail > 1e3, 1 / np.maximum(tail, 1.0) ** 2, 1 - tail * _core.mills_ratio(tail))
        below = log_density + np.log(remainder)
        certain = np.log(np.maximum(gap, 0.0))
        uncertain = np.asarray(np.log(sd) + np.where(z > -1, above, below), np.float64)
        return np.where(sd > 0, uncertain, certain)


def log_probability_of_improvement(
    mean: NDArray[np.float64], sd: NDArray[np.float64], best: float
) -> NDArray[np.float64]:
    """The logarithm of P(f < best - 0.01) where f ~ N(mean, sd²) is a standardised loss.

    Kushner 1964; Jones, "A Taxonomy of Global Optimization Methods Based on Response Surfaces", Journal of
    Global Optimization 21 (2001), section 4.

    Returns:
        (n,); -inf where no improvement is possible.
    """
    gap = best - _MARGIN - mean
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        z = np.where(sd > 0, gap / sd, np.where(gap > 0, np.inf, -np.inf))
    return _core.normal_below_log(z)


def confidence_bound(
    mean: NDArray[np.float64],
    sd: NDArray[np.float64],
    best: float,  # noqa: ARG001  (as the others are called)
) -> NDArray[np.float64]:
    """How low the loss may be, as a gain: 2 sd - mean (Cox and John 1992; Srinivas et al., ICML 2010).

    Returns:
        (n,), in the loss's unit.
    """
    return _HOPE * sd - mean


ACQUISITIONS: dict[str, Acquisition] = {
    "expected-improvement": log_expected_improvement,
    "probability-of-improvement": log_probability_of_improvement,
    "confidence-bound": confidence_bound,
}
