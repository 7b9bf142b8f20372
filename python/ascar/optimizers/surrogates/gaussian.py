"""A small Gaussian process for mixed spaces: Matérn 5/2 with one length a parameter, fitted by Cholesky.

Sources: Rasmussen and Williams, "Gaussian Processes for Machine Learning" (2006), algorithm 2.1 (posterior),
equation 4.17 (kernel), equation 5.9 (gradient of the evidence); Hvarfner, Hellsten and Nardi, "Vanilla
Bayesian Optimization Performs Great in High Dimensions" (ICML 2024), equation 6: the prior of the lengths
grows with the square root of the number of parameters, so that the same model serves 3 and 100 of them.

Parameters of every kind come as groups of columns in which squared Euclidean distance means what it should
(`ascar.optimizers.surrogates.columns`), so that one stationary kernel serves numbers, categories and
parameters that do not apply.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from scipy import linalg, optimize

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["GaussianProcess", "Hyperparameters", "Observations"]

_SQRT5 = np.sqrt(5.0)
# Loc and scale of log length beside sqrt(d); of log signal variance; of log noise variance. The loss is
# standardised, so a signal of variance 1 with a tenth of it as noise is the middle of what is expected.
_LENGTH = (np.sqrt(2.0), np.sqrt(3.0))
_SIGNAL = (0.0, 1.0)
_NOISE = (np.log(0.1), 1.5)
_BOUNDS_LOG = (-14.0, 8.0)
_JITTER = 1e-8


@dataclass(frozen=True, slots=True, eq=False)
class Observations:
    """What a model is fitted to.

    Attributes:
        columns: float64 (n, D), encoded configurations.
        groups: int (D,), the parameter that each column belongs to, 0..d-1.
        loss: float64 (n,), standardised.
        variance: float64 (n,), known variance of each loss (its squared standard error); 0 where unknown.
        repeats: float64 (n,), how many evaluations each loss is the mean of.
    """

    columns: NDArray[np.float64]
    groups: NDArray[np.intp]
    loss: NDArray[np.float64]
    variance: NDArray[np.float64]
    repeats: NDArray[np.float64]

    def __post_init__(self) -> None:
        """Assert that the shapes agree."""
        assert self.columns.shape == (len(self.loss), len(self.groups)), "one row a loss, one group a column"
        assert self.variance.shape == self.repeats.shape == self.loss.shape, "one variance a loss"

    @property
    def parameters(self) -> int:
        """How many parameters the columns encode."""
        return int(self.groups[-1]) + 1


@dataclass(frozen=True, slots=True, eq=False)
class Hyperparameters:
    """Of the kernel s² k(r), r² = Σ_k w_k d_k², and of the noise.

    Attributes:
        weight_log: float64 (d,), log w_k = -2 log length_k: how much parameter k matters.
        signal_log: log s².
        noise_log: log of the variance from one evaluation to the next, beyond what is known of each loss.
    """

    weight_log: NDArray[np.float64]
    signal_log: float
    noise_log: float

    @classmethod
    def prior(cls, parameters: int) -> Hyperparameters:
        """The prior's middle for so many parameters: where a fit starts."""
        length_log = _LENGTH[0] + 0.5 * np.log(max(parameters, 1))
        return cls(np.full(parameters, -2 * length_log), _SIGNAL[0], _NOISE[0])

    def vector(self) -> NDArray[np.float64]:
        """(d + 2,): weights, signal, noise."""
        return np.concatenate([self.weight_log, [self.signal_log, self.noise_log]])

    @classmethod
    def of(cls, vector: NDArray[np.float64]) -> Hyperparameters:
        """The inverse of `vector`."""
        return cls(vector[:-2].copy(), float(vector[-2]), float(vector[-1]))


@dataclass(frozen=True, slots=True, eq=False)
class GaussianProcess:
    """A posterior over the loss.

    Attributes:
        observations: what it was fitted to.
        hyper: its hyperparameters.
        cholesky: (n, n), lower factor of the covariance of the observations.
        weights: (n,), the covariance's inverse times the loss.
    """

    observations: Observations
    hyper: Hyperparameters
    cholesky: NDArray[np.float64]
    weights: NDArray[np.float64]

    @classmethod
    def condition(cls, observations: Observations, hyper: Hyperparameters) -> GaussianProcess:
        """The posterior for given hyperparameters (Rasmussen and Williams, algorithm 2.1)."""
        scaled = _scaled(observations.columns, observations.groups, hyper)
        covariance = np.exp(hyper.signal_log) * _matern(_squared_distances(scaled, scaled))
        covariance[np.diag_indices_from(covariance)] += (
            observations.variance + np.exp(hyper.noise_log) / observations.repeats + _JITTER
        )
        factor = _factor(covariance)
        return cls(observations, hyper, factor, _solve(factor, observations.loss))

    @classmethod
    def fit(
        cls, observations: Observations, start: Hyperparameters | None = None, iterations_max: int = 40
    ) -> GaussianProcess:
        """The posterior at the hyperparameters that maximise evidence times prior.

        Args:
            observations: what to fit to.
            start: where the search for hyperparameters begins (an earlier fit); None: at the prior's middle.
            iterations_max: of L-BFGS.
        """
        first = (start or Hyperparameters.prior(observations.parameters)).vector()
        distances = _distances_by_parameter(observations.columns, observations.groups)
        found = cast("Any", optimize.minimize)(
            _negative_log_posterior,
            first,
            args=(observations, distances),
            jac=True,
            method="L-BFGS-B",
            bounds=[_BOUNDS_LOG] * len(first),
            options={"maxiter": iterations_max},
        )
        return cls.condition(observations, Hyperparameters.of(np.asarray(found.x, np.float64)))

    def predict(self, columns: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean and standard deviation of the noise-free loss.

        Args:
            columns: (m, D), encoded candidates.

        Returns:
            (m,) and (m,), in units of the standardised loss.
        """
        known = _scaled(self.observations.columns, self.observations.groups, self.hyper)
        asked = _scaled(columns, self.observations.groups, self.hyper)
        signal = np.exp(self.hyper.signal_log)
        cross = signal * _matern(_squared_distances(asked, known))
        solved = _solve_lower(self.cholesky, cross.T)
        variance = signal - np.einsum("nm,nm->m", solved, solved)
        return cross @ self.weights, np.sqrt(np.maximum(variance, 0.0))


def _factor(covariance: NDArray[np.float64]) -> NDArray[np.float64]:
    """The lower Cholesky factor."""
    return np.asarray(linalg.cholesky(covariance, lower=True, check_finite=False), np.float64)


def _solve(factor: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """The inverse of the factored matrix, times the right side."""
    return np.asarray(linalg.cho_solve((factor, True), right, check_finite=False), np.float64)


def _solve_lower(factor: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """The inverse of the factor, times the right side."""
    return np.asarray(linalg.solve_triangular(factor, right, lower=True, check_finite=False), np.float64)


def _scaled(
    columns: NDArray[np.float64], groups: NDArray[np.intp], hyper: Hyperparameters
) -> NDArray[np.float64]:
    return columns * np.exp(0.5 * hyper.weight_log)[groups]


def _squared_distances(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    squares = (a * a).sum(1)[:, None] + (b * b).sum(1)[None, :] - 2 * a @ b.T
    return np.maximum(squares, 0.0)


def _matern(squared: NDArray[np.float64]) -> NDArray[np.float64]:
    """Matérn 5/2 of a squared distance (Rasmussen and Williams, equation 4.17)."""
    root = _SQRT5 * np.sqrt(squared)
    return (1 + root + root * root / 3) * np.exp(-root)


def _distances_by_parameter(columns: NDArray[np.float64], groups: NDArray[np.intp]) -> NDArray[np.float64]:
    """(d, n, n): squared distances in each parameter's own columns."""
    count = int(groups[-1]) + 1
    distances = np.zeros((count, len(columns), len(columns)))
    for column, group in enumerate(groups):
        difference = columns[:, column, None] - columns[None, :, column]
        distances[group] += difference * difference
    return distances


def _negative_log_posterior(
    vector: NDArray[np.float64], observations: Observations, distances: NDArray[np.float64]
) -> tuple[float, NDArray[np.float64]]:
    """Minus the log of evidence times prior, and its gradient (Rasmussen and Williams, equation 5.9).

    The prior is on the logarithms: normal for each log length around sqrt(2) + log(d)/2, for the signal and
    for the noise.
    """
    hyper = Hyperparameters.of(vector)
    count = len(hyper.weight_log)
    weight, signal, noise = np.exp(hyper.weight_log), np.exp(hyper.signal_log), np.exp(hyper.noise_log)
    root = _SQRT5 * np.sqrt(np.tensordot(weight, distances, 1))
    decay = np.exp(-root)
    kernel = signal * (1 + root + root * root / 3) * decay
    covariance = kernel.copy()
    covariance[np.diag_indices_from(covariance)] += (
        observations.variance + noise / observations.repeats + _JITTER
    )
    factor = _factor(covariance)
    alpha = _solve(factor, observations.loss)
    inverse = _solve(factor, np.eye(len(alpha)))
    value = 0.5 * observations.loss @ alpha + np.log(np.diag(factor)).sum()
    # d value / d covariance, halved already; the kernel's slope in r² is -(5/6) s² (1 + root) exp(-root).
    slope = 0.5 * (inverse - np.outer(alpha, alpha))
    by_distance = slope * (-5 / 6 * signal) * (1 + root) * decay
    gradient = np.empty_like(vector)
    gradient[:count] = weight * (distances.reshape(count, -1) @ by_distance.ravel())
    gradient[count] = (slope * kernel).sum()
    gradient[count + 1] = noise * (np.diag(slope) / observations.repeats).sum()

    centre = np.concatenate([Hyperparameters.prior(count).weight_log, [_SIGNAL[0], _NOISE[0]]])
    spread = np.concatenate([np.full(count, 2 * _LENGTH[1]), [_SIGNAL[1], _NOISE[1]]])
    deviation = (vector - centre) / spread
    return float(value + 0.5 * deviation @ deviation), gradient + deviation / spread
