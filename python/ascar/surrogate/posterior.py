"""The posterior over hyperparameters: evidence times prior, and its gradient.

Source: Rasmussen and Williams, "Gaussian Processes for Machine Learning" (2006), equations 5.8 and 5.9.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ascar.surrogate.hyperparameters import ROUGH_NONE, WIDE, KernelHyperparameters
from ascar.surrogate.kernel import CONSTANT, JITTER, distances_by_parameter
from ascar.surrogate.linear_algebra import solved_in_place

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ascar.surrogate.hyperparameters import LengthPrior
    from ascar.surrogate.observations import ModelObservations

_SPREADS = np.array([1.0, 1.5, 1.5])  # of the logarithms of the three variances
_WEIGHT_BOUNDS = (-14.0, 6.0)
_VARIANCE_BOUNDS = ((-6.0, 3.0), (-9.0, 2.0), (-9.0, 2.0))
_NOISE_KNOWN_BOUNDS = (np.log(1e-4), np.log(0.1))


@dataclass(frozen=True, slots=True, eq=False)
class HyperparameterPosterior:
    """Over the hyperparameters, given observations.

    The prior is on the logarithms: normal for each log length, by default around sqrt(2) + log(d)/2, and for
    the three variances. Where losses come with a known variance, the noise beyond it is expected to be about
    as large: what one run could not tell of itself, and not more.

    Attributes:
        observations: the losses.
        places: int (n (n - 1) / 2,), where pairs of observations stand above the diagonal of a flat matrix.
        distances: float64 (d, n (n - 1) / 2), squared, in each parameter's own columns.
        centre: float64 (d + 3,), the prior's middle.
        spread: float64 (d + 3,), its standard deviations.
        low: float64 (d + 3,), bounds of the search.
        high: float64 (d + 3,).
    """

    observations: ModelObservations
    places: NDArray[np.intp]
    distances: NDArray[np.float64]
    centre: NDArray[np.float64]
    spread: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]

    @classmethod
    def of(
        cls, observations: ModelObservations, *, rough: bool = True, lengths: LengthPrior = WIDE
    ) -> HyperparameterPosterior:
        """The posterior of a model.

        Args:
            observations: the losses.
            rough: whether the model has a rough part.
            lengths: prior of the lengths.
        """
        count = observations.parameters
        bounds = np.array([*[_WEIGHT_BOUNDS] * count, *_VARIANCE_BOUNDS])
        if not rough:
            bounds[-2] = ROUGH_NONE
        centre = KernelHyperparameters.prior(count).vector()
        centre[:count] += 2 * np.log(lengths.shorter)  # of the weights, which are lengths to the power of -2
        known = observations.variance[observations.variance > 0]
        if len(known):
            centre[-1] = np.clip(np.log(np.median(known)), *_NOISE_KNOWN_BOUNDS)
        pairs = np.triu_indices(len(observations.loss), 1)
        return cls(
            observations,
            pairs[0] * len(observations.loss) + pairs[1],
            distances_by_parameter(observations.columns, observations.groups, pairs),
            centre,
            np.concatenate([np.full(count, 2 * lengths.spread_log), _SPREADS]),
            bounds[:, 0],
            bounds[:, 1],
        )

    @property
    def middle(self) -> KernelHyperparameters:
        """The prior's."""
        return KernelHyperparameters.of(self.centre)

    def inside(self, vector: NDArray[np.float64]) -> bool:
        """Whether hyperparameters lie within the bounds."""
        return bool((vector >= self.low).all() and (vector <= self.high).all())

    def penalty(self, vector: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Minus the log of evidence times prior, and its gradient (Rasmussen and Williams, equation 5.9)."""
        seen, count = self.observations, len(vector) - 3
        weight = np.exp(vector[:count])
        signal, rough, noise = np.exp(vector[count:])
        root = np.sqrt(5.0 * (weight @ self.distances))
        decay = np.exp(-root)
        bare = decay * (1 + root)
        kernel = signal * (bare + decay * root * root / 3)
        covariance = np.empty(len(seen.loss) ** 2)
        covariance[self.places] = kernel + CONSTANT
        own = signal + CONSTANT + rough + seen.variance + noise / seen.repeats + JITTER
        covariance[:: len(own) + 1] = own
        half_log, alpha = solved_in_place(covariance.reshape(len(own), -1), seen.loss)
        inverse = covariance  # its triangle, now
        value = 0.5 * seen.loss @ alpha + half_log
        # Repeated evaluations differ from their mean by noise alone: repeats - 1 degrees of freedom.
        single = noise + seen.variance * seen.repeats
        value += 0.5 * ((seen.repeats - 1) * np.log(single) + seen.scatter / single).sum()
        # d value / d covariance, of both places of a pair; the kernel's slope in r² is
        # -(5/6) s² (1 + root) exp(-root).
        slope = inverse[self.places] - np.outer(alpha, alpha).ravel()[self.places]
        diagonal = 0.5 * (inverse[:: len(own) + 1] - alpha * alpha)
        gradient = np.empty_like(vector)
        gradient[:count] = weight * (self.distances @ (slope * bare)) * (-5 / 6 * signal)
        gradient[count] = slope @ kernel + signal * diagonal.sum()
        gradient[count + 1] = rough * diagonal.sum()
        apart = 0.5 * ((seen.repeats - 1) / single - seen.scatter / single**2)
        gradient[count + 2] = noise * (diagonal / seen.repeats + apart).sum()
        deviation = (vector - self.centre) / self.spread
        if self.high[count + 1] == ROUGH_NONE:
            deviation[count + 1] = 0.0
        return float(value + 0.5 * deviation @ deviation), gradient + deviation / self.spread
