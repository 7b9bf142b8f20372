"""A small Gaussian process for mixed spaces: Matérn 5/2 with one length a parameter, fitted by Cholesky.

Source: Rasmussen and Williams, "Gaussian Processes for Machine Learning" (2006), algorithm 2.1 (posterior).

The loss at x is c + f(x) + g(x) + noise: an unknown constant; a smooth function; what is a configuration's
own and no neighbour tells (g, the rough part: it repeats when the configuration is measured again); and what
differs from one evaluation to the next. Only repeated evaluations tell the last two apart.

Parameters of every kind come as groups of columns in which squared Euclidean distance means what it should,
so that one stationary kernel serves numbers, categories and parameters that do not apply.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ascar.surrogate.kernel import CONSTANT, JITTER, matern, scaled, squared_distances
from ascar.surrogate.linear_algebra import factored, solve, solve_transposed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ascar.surrogate.hyperparameters import KernelHyperparameters
    from ascar.surrogate.observations import ModelObservations


@dataclass(frozen=True, slots=True, eq=False)
class JointPrediction:
    """The posterior at some configurations.

    Attributes:
        columns: float64 (m, D), scaled by the kernel's lengths.
        rows: int (m,), which observation each one is; -1: none.
        mean: float64 (m,), of the loss without noise.
        sd: float64 (m,), of it.
        solved: float64 (n, m), U⁻ᵀ of the Cholesky factor U times the cross-covariance.
    """

    columns: NDArray[np.float64]
    rows: NDArray[np.intp]
    mean: NDArray[np.float64]
    sd: NDArray[np.float64]
    solved: NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class GaussianProcess:
    """A posterior over the standardised loss.

    Attributes:
        observations: the observations that the process was fitted to.
        hyper: the hyperparameters of the process.
        penalty: minus the log of evidence times prior, up to a constant; NaN where it was not fitted.
        cholesky: (n, n), upper factor of the covariance of the observations.
        weights: (n,), the covariance's inverse times the loss.
    """

    observations: ModelObservations
    hyper: KernelHyperparameters
    penalty: float
    cholesky: NDArray[np.float64]
    weights: NDArray[np.float64]

    @classmethod
    def condition(
        cls, observations: ModelObservations, hyper: KernelHyperparameters, penalty: float = float("nan")
    ) -> GaussianProcess:
        """The posterior for given hyperparameters (Rasmussen and Williams, algorithm 2.1)."""
        places = scaled(observations.columns, observations.groups, hyper)
        covariance = np.exp(hyper.signal_log) * matern(squared_distances(places, places)) + CONSTANT
        covariance[np.diag_indices_from(covariance)] += (
            np.exp(hyper.rough_log)
            + observations.variance
            + np.exp(hyper.noise_log) / observations.repeats
            + JITTER
        )
        factor = factored(covariance)
        return cls(observations, hyper, penalty, factor, solve(factor, observations.loss))

    def joint(self, columns: NDArray[np.float64], rows: NDArray[np.intp] | None = None) -> JointPrediction:
        """The posterior at encoded configurations.

        Args:
            columns: (m, D).
            rows: (m,), which observation each one is, -1 for none; None: none is one.
        """
        at = np.full(len(columns), -1, np.intp) if rows is None else rows
        known = scaled(self.observations.columns, self.observations.groups, self.hyper)
        asked = scaled(columns, self.observations.groups, self.hyper)
        cross = self._covariance(known, asked, np.arange(len(known)), at)
        solved = solve_transposed(self.cholesky, cross)
        total = np.exp(self.hyper.signal_log) + np.exp(self.hyper.rough_log) + CONSTANT
        variance = total - np.einsum("nm,nm->m", solved, solved)
        return JointPrediction(asked, at, self.weights @ cross, np.sqrt(np.maximum(variance, 0.0)), solved)

    def predict(self, columns: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean and standard deviation, each (m,), of the loss without noise at unmeasured configurations."""
        joint = self.joint(columns)
        return joint.mean, joint.sd

    def covariance(self, one: JointPrediction, two: JointPrediction) -> NDArray[np.float64]:
        """(m, k): posterior covariance between the losses at two lots of configurations."""
        prior = self._covariance(one.columns, two.columns, one.rows, two.rows)
        return prior - one.solved.T @ two.solved

    @property
    def noise_variance(self) -> float:
        """Variance from one evaluation to the next, in units of the standardised loss."""
        return float(np.exp(self.hyper.noise_log))

    def _covariance(
        self,
        one: NDArray[np.float64],
        two: NDArray[np.float64],
        rows_one: NDArray[np.intp],
        rows_two: NDArray[np.intp],
    ) -> NDArray[np.float64]:
        """Prior covariance between scaled rows; the rough part is shared with the same configuration only."""
        smooth = np.exp(self.hyper.signal_log) * matern(squared_distances(one, two)) + CONSTANT
        same = (rows_one[:, None] == rows_two[None, :]) & (rows_one[:, None] >= 0)
        return smooth + np.exp(self.hyper.rough_log) * same
