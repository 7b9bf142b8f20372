"""What one more evaluation is worth: the knowledge gradient under a normal posterior with noise.

Frazier, Powell and Dayanik, "The Knowledge-Gradient Policy for Correlated Normal Beliefs", INFORMS Journal
on Computing 21 (2009), equation 6: evaluate where the lowest posterior mean is expected to fall most. It asks
what an evaluation would change in the recommendation, not how lucky it might be: under noise a measured
contender may be worth measuring again, and a hopeless unknown is not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ascar import _core

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ascar.surrogate.process import GaussianProcess, JointPrediction

_NODES = 9


def knowledge_gradient(
    process: GaussianProcess, measured: JointPrediction, candidates: JointPrediction
) -> NDArray[np.float64]:
    """E[fall of the lowest posterior mean] by one evaluation of each candidate.

    The recommendation is chosen among what is measured and the candidate itself. An evaluation moves the
    mean at a by s(a) Z, s(a) = cov(a, x) / sqrt(var(x) + noise), Z standard normal; the expectation over Z is
    taken at the middles of equally likely intervals.

    Args:
        process: the model.
        measured: all measured configurations, n of them.
        candidates: the m candidates of an evaluation; measured ones may be among them.

    Returns:
        float64 (m,), not negative but for rounding, in units of the standardised loss.
    """
    deviation = np.sqrt(candidates.sd**2 + process.noise_variance)
    moves = process.covariance(measured, candidates) / deviation
    own = candidates.sd**2 / deviation
    nodes = _core.normal_quantile((np.arange(_NODES) + 0.5) / _NODES)
    lowest = np.zeros(len(own))
    for node in nodes:
        lowest += np.minimum((measured.mean[:, None] + node * moves).min(0), candidates.mean + node * own)
    return np.minimum(measured.mean.min(), candidates.mean) - lowest / len(nodes)
