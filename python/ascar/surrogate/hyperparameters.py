"""Hyperparameters of the kernel and of the noise, and their prior.

Source: Hvarfner, Hellsten and Nardi, "Vanilla Bayesian Optimization Performs Great in High Dimensions" (ICML
2024), equation 6: the prior of the lengths grows with the square root of the number of parameters, so that
the same model serves 3 and 100 of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Middles of the priors of the logarithms of: a length beside sqrt(d), the variances of the smooth part, of
# the rough part, and of the noise. The loss is standardised.
_LENGTH_LOG = np.sqrt(2.0)
_VARIANCES = np.array([0.0, np.log(0.1), np.log(0.1)])
ROUGH_NONE = -30.0
"""Logarithm of the variance of a rough part that is not there."""


@dataclass(frozen=True, slots=True)
class LengthPrior:
    """Normal prior of the logarithm of each length.

    Attributes:
        shorter: the factor by which lengths are expected to be shorter than sqrt(d) exp(sqrt(2)).
        spread_log: standard deviation.
    """

    shorter: float
    spread_log: float


WIDE = LengthPrior(1.0, float(np.sqrt(3.0)))
SHORT = LengthPrior(2.0, 0.7)
"""From a dozen observations the most likely lengths are often as long as the range, and the model is then
sure that nothing is to be found between the places that it knows."""


@dataclass(frozen=True, slots=True, eq=False)
class KernelHyperparameters:
    """Of the kernel s² k(r), r² = Σ_k w_k d_k², of the rough part, and of the noise.

    Attributes:
        weight_log: float64 (d,), log w_k = -2 log length_k: how much parameter k matters.
        signal_log: log s².
        rough_log: log of the rough part's variance.
        noise_log: log of the variance from one evaluation to the next, beyond what is known of each loss.
    """

    weight_log: NDArray[np.float64]
    signal_log: float
    rough_log: float
    noise_log: float

    @classmethod
    def prior(cls, parameters: int) -> KernelHyperparameters:
        """The prior's middle for so many parameters."""
        length_log = _LENGTH_LOG + 0.5 * np.log(max(parameters, 1))
        return cls.of(np.concatenate([np.full(parameters, -2 * length_log), _VARIANCES]))

    @classmethod
    def starts(cls, parameters: int) -> tuple[KernelHyperparameters, ...]:
        """Where fits begin: long, middling and short lengths.

        From long lengths alone a narrow valley is taken for noise, a local optimum of the evidence.
        """
        middle = cls.prior(parameters)
        shares = (0.0, 1.0 / max(parameters, 1), 3.0 / max(parameters, 1))
        return tuple(
            middle if share == 0 else replace(middle, weight_log=np.full(parameters, np.log(share)))
            for share in shares
        )

    @property
    def rough(self) -> bool:
        """Whether there is a rough part."""
        return self.rough_log > ROUGH_NONE

    def vector(self) -> NDArray[np.float64]:
        """(d + 3,): weights, signal, rough part, noise."""
        return np.concatenate([self.weight_log, [self.signal_log, self.rough_log, self.noise_log]])

    @classmethod
    def of(cls, vector: NDArray[np.float64]) -> KernelHyperparameters:
        """The inverse of `vector`."""
        return cls(vector[:-3].copy(), float(vector[-3]), float(vector[-2]), float(vector[-1]))
