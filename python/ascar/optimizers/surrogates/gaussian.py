"""A small Gaussian process for mixed spaces: Matérn 5/2 with one length a parameter, fitted by Cholesky.

Sources: Rasmussen and Williams, "Gaussian Processes for Machine Learning" (2006), algorithm 2.1 (posterior),
equation 4.17 (kernel), equation 5.9 (gradient of the evidence); Hvarfner, Hellsten and Nardi, "Vanilla
Bayesian Optimization Performs Great in High Dimensions" (ICML 2024), equation 6: the prior of the lengths
grows with the square root of the number of parameters, so that the same model serves 3 and 100 of them.

The loss at x is c + f(x) + g(x) + noise: an unknown constant; a smooth function; what is a configuration's
own and no neighbour tells (g, the rough part: it repeats when the configuration is measured again); and what
differs from one evaluation to the next. Only repeated evaluations tell the last two apart.

Parameters of every kind come as groups of columns in which squared Euclidean distance means what it should
(`ascar.optimizers.surrogates.columns`), so that one stationary kernel serves numbers, categories and
parameters that do not apply.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from scipy import linalg, optimize
from scipy.linalg import lapack

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_SQRT5 = np.sqrt(5.0)
_CONSTANT = 4.0  # prior variance of the constant, in units of the standardised loss: little is known of it
# Middle and spread of the priors of the logarithms of: a length beside sqrt(d), the variances of the smooth
# part, of the rough part, and of the noise. The loss is standardised.
_LENGTH = (np.sqrt(2.0), np.sqrt(3.0))
_VARIANCES = np.array([0.0, np.log(0.1), np.log(0.1)])
_SPREADS = np.array([1.0, 1.5, 1.5])
_WEIGHT_BOUNDS = (-14.0, 6.0)
_VARIANCE_BOUNDS = ((-6.0, 3.0), (-9.0, 2.0), (-9.0, 2.0))
_ROUGH_NONE = -30.0
_NOISE_KNOWN_BOUNDS = (np.log(1e-4), np.log(0.1))
_JITTER = 1e-8


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
        length_log = _LENGTH[0] + 0.5 * np.log(max(parameters, 1))
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
        return self.rough_log > _ROUGH_NONE

    def vector(self) -> NDArray[np.float64]:
        """(d + 3,): weights, signal, rough part, noise."""
        return np.concatenate([self.weight_log, [self.signal_log, self.rough_log, self.noise_log]])

    @classmethod
    def of(cls, vector: NDArray[np.float64]) -> KernelHyperparameters:
        """The inverse of `vector`."""
        return cls(vector[:-3].copy(), float(vector[-3]), float(vector[-2]), float(vector[-1]))


@dataclass(frozen=True, slots=True, eq=False)
class Posterior:
    """Over the hyperparameters, given observations.

    The prior is on the logarithms: normal for each log length around sqrt(2) + log(d)/2, and for the three
    variances. Where losses come with a known variance, the noise beyond it is expected to be about as large:
    what one run could not tell of itself, and not more.

    Attributes:
        observations: the losses.
        places: int (n (n - 1) / 2,), where pairs of observations stand below the diagonal of a flat matrix.
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
    def of(cls, observations: ModelObservations, *, rough: bool = True) -> Posterior:
        """The posterior of a model with or without a rough part."""
        count = observations.parameters
        bounds = np.array([*[_WEIGHT_BOUNDS] * count, *_VARIANCE_BOUNDS])
        if not rough:
            bounds[-2] = _ROUGH_NONE
        centre = KernelHyperparameters.prior(count).vector()
        known = observations.variance[observations.variance > 0]
        if len(known):
            centre[-1] = np.clip(np.log(np.median(known)), *_NOISE_KNOWN_BOUNDS)
        pairs = np.tril_indices(len(observations.loss), -1)
        return cls(
            observations,
            pairs[0] * len(observations.loss) + pairs[1],
            _distances_by_parameter(observations, pairs),
            centre,
            np.concatenate([np.full(count, 2 * _LENGTH[1]), _SPREADS]),
            bounds[:, 0],
            bounds[:, 1],
        )

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
        covariance = np.zeros(len(seen.loss) ** 2)
        covariance[self.places] = kernel + _CONSTANT
        own = signal + _CONSTANT + rough + seen.variance + noise / seen.repeats + _JITTER
        covariance[:: len(own) + 1] = own
        half_log, alpha, inverse = _solved(covariance.reshape(len(own), -1), seen.loss)
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
        if self.high[count + 1] == _ROUGH_NONE:
            deviation[count + 1] = 0.0
        return float(value + 0.5 * deviation @ deviation), gradient + deviation / self.spread

    def process(self, starts: Sequence[KernelHyperparameters], iterations_max: int) -> GaussianProcess:
        """The process at the hyperparameters of the least penalty.

        Args:
            starts: where searches for them begin, at least one.
            iterations_max: of L-BFGS, from each start.
        """
        best: tuple[float, NDArray[np.float64]] | None = None
        for start in starts:
            found = cast("Any", optimize.minimize)(
                self.penalty,
                np.clip(start.vector(), self.low, self.high),
                jac=True,
                method="L-BFGS-B",
                bounds=np.column_stack([self.low, self.high]),
                options={"maxiter": iterations_max},
            )
            if best is None or float(found.fun) < best[0]:
                best = float(found.fun), np.asarray(found.x, np.float64)
        assert best is not None, "there is at least one start"
        return GaussianProcess.condition(self.observations, KernelHyperparameters.of(best[1]), best[0])


@dataclass(frozen=True, slots=True, eq=False)
class Look:
    """The posterior at some configurations.

    Attributes:
        columns: float64 (m, D), scaled by the kernel's lengths.
        rows: int (m,), which observation each one is; -1: none.
        mean: float64 (m,), of the loss without noise.
        sd: float64 (m,), of it.
        solved: float64 (n, m), the inverse Cholesky factor times the cross-covariance.
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
        observations: what it was fitted to.
        hyper: its hyperparameters.
        penalty: minus the log of evidence times prior, up to a constant; NaN where it was not fitted.
        cholesky: (n, n), lower factor of the covariance of the observations.
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
        scaled = _scaled(observations.columns, observations.groups, hyper)
        covariance = np.exp(hyper.signal_log) * _matern(_squared_distances(scaled, scaled)) + _CONSTANT
        covariance[np.diag_indices_from(covariance)] += (
            np.exp(hyper.rough_log)
            + observations.variance
            + np.exp(hyper.noise_log) / observations.repeats
            + _JITTER
        )
        factor = _factor(covariance)
        return cls(observations, hyper, penalty, factor, _solve(factor, observations.loss))

    @classmethod
    def fit(
        cls,
        observations: ModelObservations,
        starts: Sequence[KernelHyperparameters] = (),
        *,
        rough: bool = True,
        iterations_max: int = 40,
    ) -> GaussianProcess:
        """The posterior at the hyperparameters that maximise evidence times prior.

        Args:
            observations: what to fit to.
            starts: where searches for hyperparameters begin; none: `KernelHyperparameters.starts`.
            rough: whether there is a rough part.
            iterations_max: of L-BFGS, from each start.
        """
        posterior = Posterior.of(observations, rough=rough)
        return posterior.process(
            starts or KernelHyperparameters.starts(observations.parameters), iterations_max
        )

    def look(self, columns: NDArray[np.float64], rows: NDArray[np.intp] | None = None) -> Look:
        """The posterior at encoded configurations.

        Args:
            columns: (m, D).
            rows: (m,), which observation each one is, -1 for none; None: none is one.
        """
        at = np.full(len(columns), -1, np.intp) if rows is None else rows
        known = _scaled(self.observations.columns, self.observations.groups, self.hyper)
        asked = _scaled(columns, self.observations.groups, self.hyper)
        cross = self._covariance(asked, known, at, np.arange(len(known)))
        solved = _solve_lower(self.cholesky, cross.T)
        total = np.exp(self.hyper.signal_log) + np.exp(self.hyper.rough_log) + _CONSTANT
        variance = total - np.einsum("nm,nm->m", solved, solved)
        return Look(asked, at, cross @ self.weights, np.sqrt(np.maximum(variance, 0.0)), solved)

    def predict(self, columns: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean and standard deviation, each (m,), of the loss without noise at unmeasured configurations."""
        look = self.look(columns)
        return look.mean, look.sd

    def covariance(self, one: Look, two: Look) -> NDArray[np.float64]:
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
        smooth = np.exp(self.hyper.signal_log) * _matern(_squared_distances(one, two)) + _CONSTANT
        same = (rows_one[:, None] == rows_two[None, :]) & (rows_one[:, None] >= 0)
        return smooth + np.exp(self.hyper.rough_log) * same


def _factor(covariance: NDArray[np.float64]) -> NDArray[np.float64]:
    """The lower Cholesky factor."""
    return np.asarray(linalg.cholesky(covariance, lower=True, check_finite=False), np.float64)


def _solved(
    covariance: NDArray[np.float64], right: NDArray[np.float64]
) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
    """What the evidence needs of a covariance, whose lower triangle alone is read and which is overwritten.

    Returns:
        Half the logarithm of its determinant; its inverse times the right side, (n,); the lower triangle of
        its inverse, (n²,), above which nothing is said.
    """
    # LAPACK stores columns first: the upper triangle that it works on is ours below the diagonal.
    routines = cast("Any", lapack)
    factor, failed = routines.dpotrf(covariance.T, lower=0, clean=0, overwrite_a=1)
    if failed:
        raise linalg.LinAlgError("the covariance is not positive definite")
    half_log = float(np.log(np.diag(factor)).sum())
    solved, _ = routines.dpotrs(factor, right, lower=0)
    inverse, _ = routines.dpotri(factor, lower=0, overwrite_c=1)
    return half_log, np.asarray(solved, np.float64), np.asarray(inverse, np.float64).T.reshape(-1)


def _solve(factor: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """The inverse of the factored matrix, times the right side."""
    return np.asarray(linalg.cho_solve((factor, True), right, check_finite=False), np.float64)


def _solve_lower(factor: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """The inverse of the factor, times the right side."""
    return np.asarray(linalg.solve_triangular(factor, right, lower=True, check_finite=False), np.float64)


def _scaled(
    columns: NDArray[np.float64], groups: NDArray[np.intp], hyper: KernelHyperparameters
) -> NDArray[np.float64]:
    return columns * np.exp(0.5 * hyper.weight_log)[groups]


def _squared_distances(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    squares = (a * a).sum(1)[:, None] + (b * b).sum(1)[None, :] - 2 * a @ b.T
    return np.maximum(squares, 0.0)


def _matern(squared: NDArray[np.float64]) -> NDArray[np.float64]:
    """Matérn 5/2 of a squared distance (Rasmussen and Williams, equation 4.17)."""
    root = _SQRT5 * np.sqrt(squared)
    return (1 + root + root * root / 3) * np.exp(-root)


def _distances_by_parameter(
    seen: ModelObservations, pairs: tuple[NDArray[np.intp], NDArray[np.intp]]
) -> NDArray[np.float64]:
    """(d, pairs): squared distances in each parameter's own columns."""
    distances = np.zeros((seen.parameters, len(pairs[0])))
    for column, group in enumerate(seen.groups):
        values = seen.columns[:, column]
        difference = values[pairs[0]] - values[pairs[1]]
        distances[group] += difference * difference
    return distances
