"""What is left to gain, by a model of all that was measured: the posterior of the regret.

Wilson, "Stopping Bayesian Optimization with Probabilistic Regret Bounds" (NeurIPS 2024), section 3: end when
the recommendation's regret is at most epsilon with probability 1 - delta, estimated by draws from the joint
posterior. The model is the Gaussian process of `ascar.surrogate`, whichever optimizer searches. Its
hyperparameters are drawn from their posterior too: after few evaluations the most probable ones alone would
be too sure that nothing is left.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ascar.optimizers.guided.candidate_search import CandidateSearch, Reach
from ascar.optimizers.guided.columns import SpaceColumns
from ascar.optimizers.guided.fitting import Fitter
from ascar.optimizers.ledger import Ledger
from ascar.surrogate.acquisition import log_expected_improvement
from ascar.surrogate.sampling import drawn

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ascar.optimizers import Evaluation
    from ascar.optimizers.guided.evidence import Scale
    from ascar.optimizers.guided.fitting import Fitted
    from ascar.space import Space
    from ascar.surrogate.process import GaussianProcess

# Before so many configurations are measured, nothing is said: a model of less has seen nothing.
_MEASURED_MIN = 10
_MODELS = 4  # draws of hyperparameters
_DRAWS = 128  # of the loss, for each of them
_CENTRES = 4
_SPREAD = 500  # random configurations that are looked at beside the most promising
_LOOKS = 3
_POOL, _LOOK = range(2)  # what a random decision is about


class RemainingGains:
    """Keeps up with a search, and says how much it might still gain.

    The gain is that of the best configuration of the space over the one with the lowest expected loss among
    the measured, relative to the latter's loss. The best is sought among what is measured, the 150 most
    promising others and 500 random ones: each of many hardly promising ones may yet surprise. In a space of
    up to 1,000 configurations it is sought among all.

    Args:
        space: the space of the search.
        seed: the seed of the draws.
    """

    def __init__(self, space: Space, seed: int) -> None:
        self._grouping = space.grouping
        self._ledger = Ledger(self._grouping.space, seed)
        self._columns = SpaceColumns.of(self._grouping.space)
        self._fitter = Fitter(self._ledger, self._columns)
        self._candidates: CandidateSearch | None = None
        self._spread: NDArray[np.float64] | None = None
        self._gains: tuple[int, NDArray[np.float64]] | None = None
        self._looks: list[NDArray[np.float64]] = []

    def tell(self, evaluation: Evaluation) -> None:
        """What became of a configuration."""
        encoded = self._grouping.encode(evaluation.configuration)
        self._ledger.tell(replace(evaluation, configuration=encoded))

    def share_below(self, gain: float) -> float | None:
        """The probability that no more than this relative gain is left; None while too little is known.

        The least of the last three looks, each after another evaluation: who stops at the first look that is
        sure enough stops at the one that is wrong.
        """
        gains = self.draws()
        if gains is None:
            return None
        if not self._looks or self._looks[-1] is not gains:
            self._looks = [*self._looks[-(_LOOKS - 1) :], gains]
        if len(self._looks) < _LOOKS:
            return None
        return min(float((one <= gain).mean()) for one in self._looks)

    def draws(self) -> NDArray[np.float64] | None:
        """(512,): relative gains drawn from their posterior, none below 0; None while too little is known."""
        told = len(self._ledger.history)
        if self._gains is None or self._gains[0] != told:
            fitted = self._fitter.present()
            if fitted is None or int(fitted.evidence.measured.sum()) < _MEASURED_MIN:
                return None
            self._gains = told, self._drawn(fitted)
        return self._gains[1]

    def _drawn(self, fitted: Fitted) -> NDArray[np.float64]:
        rng = self._ledger.rng(_LOOK, len(self._ledger.history))
        rows = np.flatnonzero(fitted.evidence.measured)
        process, parts = fitted.process, list["NDArray[np.float64]"]()
        models: list[GaussianProcess] = []
        for _ in range(_MODELS):
            process = drawn(process, rng)
            models.append(process)
        means = [one.joint(fitted.evidence.observations.columns[rows], rows).mean for one in models]
        recommended = int(np.argmin(np.mean(means, axis=0)))
        for model, mean in zip(models, means, strict=True):
            open_ = self._open(fitted, model, mean, rng)
            losses = _draws(model, fitted, rows, open_, rng)
            parts.append(_gains(fitted.evidence.scale, losses, recommended))
        return np.concatenate(parts)

    def _open(
        self, fitted: Fitted, model: GaussianProcess, mean: NDArray[np.float64], rng: np.random.Generator
    ) -> NDArray[np.float64]:
        """(m, D): encoded configurations that are not measured."""
        if self._candidates is None or self._spread is None:
            pool = self._ledger.rng(_POOL)
            self._candidates = CandidateSearch(self._ledger, self._columns, Reach(), pool)
            drawn = () if self._candidates.whole else self._ledger.space.sample(pool, _SPREAD)
            self._spread = self._columns.rows(drawn)
        best = float(mean.min())
        rows = np.flatnonzero(fitted.evidence.measured)
        centres = [fitted.evidence.configurations[int(rows[at])] for at in np.argsort(mean)[:_CENTRES]]
        length = np.exp(0.5 * model.hyper.weight_log)

        def promise(columns: NDArray[np.float64]) -> NDArray[np.float64]:
            return log_expected_improvement(*model.predict(columns), best)

        weights = 0.7 * length / length.sum() + 0.3 / len(length)
        found = self._candidates.search(promise, centres, weights, rng).columns
        # A random configuration that is measured already does no harm: it is taken for one like it.
        return np.concatenate([found, self._spread])


def _draws(
    model: GaussianProcess,
    fitted: Fitted,
    rows: NDArray[np.intp],
    open_: NDArray[np.float64],
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """(draws, measured + open): losses without noise, drawn jointly, standardised."""
    columns = np.concatenate([fitted.evidence.observations.columns[rows], open_])
    joint = model.joint(columns, np.concatenate([rows, np.full(len(open_), -1, np.intp)]))
    covariance = model.covariance(joint, joint)
    # Each one that is not measured has a rough part of its own, which the looks' deviations count in.
    np.fill_diagonal(covariance, np.maximum(joint.sd**2, 0.0))
    jitter = 1e-9 * max(float(np.trace(covariance)) / len(covariance), 1e-9)
    root: NDArray[np.float64] | None = None
    while root is None:
        try:
            shaken = covariance + jitter * np.eye(len(covariance))
            root = np.asarray(np.linalg.cholesky(shaken), np.float64)
        except np.linalg.LinAlgError:
            jitter *= 100  # alike configurations leave rounding below zero
    return joint.mean + rng.normal(size=(_DRAWS, len(columns))) @ root.T


def _gains(scale: Scale, losses: NDArray[np.float64], recommended: int) -> NDArray[np.float64]:
    """(draws,): how far the best of each draw is ahead of the recommended one, over the latter's loss."""
    values = scale.centre + scale.spread * losses
    present, best = values[:, recommended], values.min(1)
    if scale.sign:
        # Of logarithms; which of the two losses is the larger number depends on their sign.
        return np.abs(np.expm1(scale.sign * (best - present)))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(best < present, (present - best) / np.abs(present), 0.0)
