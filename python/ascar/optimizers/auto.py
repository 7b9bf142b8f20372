"""The default: Latin hypercube, a Gaussian process that knows each loss's error, and the knowledge gradient.

What it evaluates next is what is expected to improve the recommendation most: something new near the best or
far from it, or a contender once more, where noise hides which one is best. What it recommends is what its
posterior expects to be best, with the posterior's own error, and not the luckiest observation.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ascar.errors import Exhausted
from ascar.optimizers.freezing import frozen_parameters
from ascar.optimizers.gp import gene_weights
from ascar.optimizers.guided.fitting import Fitted, Fitter
from ascar.optimizers.guided.model_search import Guide, ModelSearch
from ascar.optimizers.initialization import Method  # noqa: TC001  (msgspec reads it at run time)
from ascar.optimizers.options import OptimizerTable
from ascar.optimizers.pricing import Prices, Pricing
from ascar.optimizers.recommendation import Recommendation
from ascar.surrogate.acquisition import log_expected_improvement
from ascar.surrogate.knowledge_gradient import knowledge_gradient
from ascar.surrogate.process import GaussianProcess
from ascar.surrogate.sampling import drawn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from numpy.typing import NDArray

    from ascar.optimizers import Evaluation
    from ascar.optimizers.guided.candidate_search import RankedCandidates
    from ascar.optimizers.guided.evidence import ModelEvidence
    from ascar.space import Configuration, Space

_CENTRES = 4
# Draws of hyperparameters that a recommendation is averaged over.
_DRAWS = 4
# A gain below this share of the losses' spread is not worth an evaluation for its own sake.
_GAIN_MIN = 1e-3
# Repetitions before a space that is known whole can count as exhausted.
_REPEATS_MIN = 6
# Worse than any expected improvement on a logarithmic scale.
_FAR = 1e9
# What a random decision is about, beside those of `ModelSearch`.
_HYPER, _FREEZE = 4, 5


class AutoOptions(OptimizerTable, frozen=True, forbid_unknown_fields=True):
    """`[optimizer]` with kind = "auto".

    All but the first two are parts that can be taken away, to see what each is worth.

    Attributes:
        design: configurations measured before the model guides.
        initialization: the way in which they are drawn; None: "near-known" where the space has ten parameters
            or more and the default or a start configuration was measured before, "latin-hypercube" elsewhere.
        remeasure: whether a measured configuration may be proposed again (`Auto.reason` then says so).
        acquisition: the criterion that chooses the next evaluation.
        hyperparameters: drawn from their posterior at each step, or the most probable ones.
        rough: whether the model has a part that no neighbour tells of.
        logarithmic: whether the loss may be modelled on a logarithmic scale.
        recommendation: the lowest posterior mean, or the lowest mean observed.
        freeze: parameters that explain less than this share of the losses' variance, with 95% confidence,
            keep the values of the best known while that holds; 0: none.
        per_second: whether gains are divided by the seconds that they are expected to take, the change from
            what is in force included; and whether the design is measured in an order of cheap changes.
    """

    design: int = 10
    initialization: Method | None = None
    remeasure: bool = True
    acquisition: Literal["knowledge-gradient", "expected-improvement"] = "knowledge-gradient"
    hyperparameters: Literal["drawn", "most-probable"] = "drawn"
    rough: bool = True
    logarithmic: bool = True
    recommendation: Literal["posterior", "observed"] = "posterior"
    freeze: float = 0.0
    per_second: bool = False

    def ranges(self) -> dict[str, tuple[float, float]]:
        """See the base."""
        return {"design": (1, 10_000), "freeze": (0, 1)}


class Auto(ModelSearch):
    """See the module; the arguments are those of every optimizer.

    Attributes:
        reason: why the latest proposal was made: "design", "search" or "re-measurement".

    Raises:
        StudyError: an option is unknown or out of range.
        SpaceError: a start configuration is not valid.
    """

    def __init__(
        self,
        space: Space,
        *,
        seed: int = 0,
        start: tuple[Configuration, ...] = (),
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.options = AutoOptions.read(options)
        super().__init__(space, seed, start, self.options.design, self.options.initialization)
        self.reason = "design"
        self._fitter = Fitter(self.ledger, self.columns, self.options.rough, self.options.logarithmic)
        self._pricing = Pricing(self.ledger, self.columns)

    def tell(self, evaluation: Evaluation) -> None:
        """What became of a configuration, and what it took."""
        super().tell(evaluation)
        self._pricing.tell(evaluation)

    def ask(self) -> Configuration:
        """The next configuration.

        Raises:
            Exhausted: every valid configuration is known or out, and measuring one again promises no gain.
        """
        designed = self.designed()
        self.reason = "design" if designed is not None else "search"
        chosen = self.ledger.take(designed or self.guided() or self.any())
        self._pricing.ask(chosen)
        return chosen

    def guide(self) -> Guide | None:
        """The Gaussian process of what is known."""
        fitted = self._fitter.present()
        return None if fitted is None else _guide(fitted)

    def guided(self) -> Configuration | None:
        """What is expected to improve the recommendation most; None where that cannot be said."""
        fitted = self._fitter.present()
        if fitted is None:
            return None
        process = self._believe(fitted)
        if self.options.hyperparameters == "drawn":
            process = drawn(process, self.ledger.rng(_HYPER, self.ledger.step))
        guide = _guide(Fitted(fitted.evidence, process))
        best = float(guide.mean.min())

        thawed = self._thawed(guide, fitted.evidence)
        prices = self._pricing.prices(fitted) if self.options.per_second else Prices.even(self.columns.width)

        def promise(columns: NDArray[np.float64]) -> NDArray[np.float64]:
            gain_log = log_expected_improvement(*process.predict(columns), best)
            return gain_log - np.log(prices(columns)) - _FAR * ~thawed(columns)

        found = self.candidates.search(promise, guide.centres(_CENTRES), guide.weights, self.rng())
        found = found.where(thawed(found.columns))
        if self.options.acquisition == "expected-improvement":
            return self._first_fresh(found, range(len(found)))
        rows = np.flatnonzero(fitted.evidence.measured)
        measured = process.joint(fitted.evidence.observations.columns[rows], rows)
        again = knowledge_gradient(process, measured, measured)
        # Gains too small to matter are not weighed against each other: something new is tried.
        least = _GAIN_MIN if self.options.remeasure else -np.inf
        again_rate = np.where(again >= least, again / prices(fitted.evidence.observations.columns[rows]), 0.0)
        least_rate = float(again_rate.max()) if self.options.remeasure else -np.inf
        fresh = (
            knowledge_gradient(process, measured, process.joint(found.columns)) if len(found) else np.empty(0)
        )
        rate = fresh / prices(found.columns)
        order = np.argsort(-rate, kind="stable")
        worthy = [int(at) for at in order if fresh[at] >= least and rate[at] >= least_rate]
        configuration = self._first_fresh(found, worthy)
        if configuration is not None or not self.options.remeasure:
            return configuration
        if again.max() < _GAIN_MIN:
            configuration = self._first_fresh(found, range(len(found))) or self._left()
            if configuration is not None:
                return configuration
        self.reason = "re-measurement"
        return guide.measured[self._contender(guide, fitted.evidence.observations.repeats[rows], again_rate)]

    def recommend(self) -> Recommendation | None:
        """The measured configuration that is expected to be best, on the average over hyperparameters."""
        fitted = self._fitter.present()
        if fitted is None or self.options.recommendation == "observed":
            return self.observed()
        rng, process = self.ledger.rng(_HYPER, self.ledger.step, 1), fitted.process
        guides: list[Guide] = []
        for _ in range(_DRAWS):
            if self.options.hyperparameters == "drawn":
                process = drawn(process, rng)
            guides.append(_guide(Fitted(fitted.evidence, process)))
        means = np.array([guide.mean for guide in guides])
        mean = means.mean(0)
        at = int(np.argmin(mean))
        # Variance of a mixture: the mean variance, and the variance of the means.
        sd = float(np.sqrt(np.mean([guide.sd[at] ** 2 for guide in guides]) + means[:, at].var()))
        noise = float(np.mean([guide.noise_variance for guide in guides]))
        scale = fitted.evidence.scale
        loss = scale.original(float(mean[at]), noise)
        beyond = scale.original(float(mean[at]) + sd, noise)
        return Recommendation(guides[0].measured[at], loss, abs(beyond - loss))

    def designed(self) -> Configuration | None:
        """What is left of the design: the start's first, then the cheapest to reach where seconds count."""
        if not self.options.per_second:
            return super().designed()
        started = self.ledger.started()
        return started or self._pricing.cheapest([one for one in self.design if self.ledger.fresh(one)])

    def _left(self) -> Configuration | None:
        """A random fresh configuration, where the model sees none; None: every one is known."""
        with suppress(Exhausted):
            return self.any()
        return None

    def _thawed(
        self, guide: Guide, evidence: ModelEvidence
    ) -> Callable[[NDArray[np.float64]], NDArray[np.bool_]]:
        """Says of encoded configurations (m, D) whether they differ from the best in no frozen parameter."""
        frozen = np.empty(0, np.intp)
        if self.options.freeze > 0:
            rng = self.ledger.rng(_FREEZE, self.ledger.step)
            genes = frozen_parameters(evidence, self.columns, self.options.freeze, rng)
            frozen = np.flatnonzero(genes[self.columns.groups])
        kept = self.columns.rows(guide.centres(1))[0, frozen]
        return lambda columns: (columns[:, frozen] == kept).all(1)

    def _contender(self, guide: Guide, repeats: NDArray[np.float64], rate: NDArray[np.float64]) -> int:
        """Which measured configuration to measure again, by the gains' rates, 0 where one is too small.

        Raises:
            Exhausted: every gain is too small to matter, and enough was repeated to say so: what noise there
                is, only repetitions tell.
        """
        if rate.max() > 0:
            return int(np.argmax(rate))
        if (repeats - 1).sum() >= _REPEATS_MIN:
            raise Exhausted("every valid configuration is known, and measuring one again promises no gain")
        best = np.argsort(guide.mean, kind="stable")[:3]
        return int(best[np.argmin(repeats[best])])

    def _first_fresh(self, found: RankedCandidates, order: Iterable[int]) -> Configuration | None:
        proposals = (self.candidates.fresh(found, at) for at in order)
        return next((one for one in proposals if one is not None), None)

    def _believe(self, fitted: Fitted) -> GaussianProcess:
        """With what is out for evaluation taken to come back as expected."""
        if not self.ledger.pending:
            return fitted.process
        seen = fitted.evidence.observations
        repeats = seen.repeats.copy()
        for row, one in enumerate(fitted.evidence.configurations):
            repeats[row] += self.ledger.pending.get(one, 0)
        out = [one for one in self.ledger.pending if one not in set(fitted.evidence.configurations)]
        columns = self.columns.rows(out)
        believed = replace(seen, repeats=repeats).believing(columns, fitted.process.predict(columns)[0])
        return GaussianProcess.condition(believed, fitted.process.hyper)


def _guide(fitted: Fitted) -> Guide:
    rows = np.flatnonzero(fitted.evidence.measured)
    joint = fitted.process.joint(fitted.evidence.observations.columns[rows], rows)
    return Guide(
        fitted.process,
        fitted.evidence,
        joint.mean,
        joint.sd,
        gene_weights(fitted.process.hyper.weight_log),
        fitted.process.noise_variance,
    )
