"""The default: Latin hypercube, a Gaussian process that knows each loss's error, and the knowledge gradient.

What it evaluates next is what is expected to improve the recommendation most: something new near the best or
far from it, or a contender once more, where noise hides which one is best. What it recommends is what its
posterior expects to be best, with the posterior's own error, and not the luckiest observation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from ascar.errors import Exhausted, StudyError
from ascar.optimizers.gp import gene_weights
from ascar.optimizers.surrogates.acquisition import log_expected_improvement
from ascar.optimizers.surrogates.fitting import Fitted, Fitter
from ascar.optimizers.surrogates.gaussian import GaussianProcess, Observations
from ascar.optimizers.surrogates.knowledge import knowledge_gradient
from ascar.optimizers.surrogates.search import Guide, ModelSearch
from ascar.study import convert

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from ascar.space import Configuration, Space

__all__ = ["Auto", "AutoOptions"]

_CENTRES = 4
# In a space that is known whole, a gain below this share of the losses' spread is not worth an evaluation.
_GAIN_MIN = 1e-3


class AutoOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[optimizer]` with kind = "auto".

    Attributes:
        design: configurations measured before the model guides.
        remeasure: whether a measured configuration may be proposed again (`Auto.reason` then says so).
    """

    design: int = 10
    remeasure: bool = True


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
        self.options = convert(options or {}, AutoOptions, "optimizer")
        if not 1 <= self.options.design <= 10_000:
            raise StudyError(f"optimizer.design = {self.options.design}: must be from 1 to 10000")
        super().__init__(space, seed, start, self.options.design, "latin-hypercube")
        self.reason = "design"
        self._fitter = Fitter(self.ledger, self.columns)

    def ask(self) -> Configuration:
        """The next configuration.

        Raises:
            Exhausted: every valid configuration is known or out, and measuring any again promises nothing.
        """
        designed = self.ledger.first_fresh(self._design)
        self.reason = "design" if designed is not None else "search"
        return self.ledger.take(designed or self.guided() or self.any())

    def guide(self) -> Guide | None:
        """The Gaussian process of what is known."""
        fitted = self._fitter.present()
        return None if fitted is None else _guide(fitted)

    def guided(self) -> Configuration | None:
        """What is expected to improve the recommendation most; None where that cannot be said."""
        fitted = self._fitter.present()
        if fitted is None:
            return None
        fitted = self._believe(fitted)
        guide, process = _guide(fitted), fitted.process
        best = float(guide.mean.min())

        def promise(columns: NDArray[np.float64]) -> NDArray[np.float64]:
            return log_expected_improvement(*process.predict(columns), best)

        found = self.candidates.search(promise, guide.centres(_CENTRES), guide.weights, self.rng())
        rows = np.flatnonzero(fitted.evidence.measured)
        measured = process.look(fitted.evidence.observations.columns[rows], rows)
        again = knowledge_gradient(process, measured, measured)
        if self.options.remeasure and len(found) == 0 and again.max() < _GAIN_MIN:
            raise Exhausted(
                "every valid configuration is known, and measuring any of them again promises nothing"
            )
        if len(found):
            fresh = knowledge_gradient(process, measured, process.look(found.columns))
            for at in np.argsort(-fresh, kind="stable"):
                if self.options.remeasure and again.max() > fresh[at]:
                    break
                configuration = self.candidates.fresh(found, int(at))
                if configuration is not None:
                    return configuration
        if not self.options.remeasure:
            return None
        self.reason = "re-measurement"
        return guide.measured[int(np.argmax(again))]

    def _believe(self, fitted: Fitted) -> Fitted:
        """With the configurations that are out for evaluation, taken to come back as expected."""
        out = [one for one in self.ledger.pending if self.ledger.records.get(one) is None]
        if not out:
            return fitted
        columns = self.columns.rows(out)
        seen = fitted.evidence.observations
        believed = Observations(
            np.concatenate([seen.columns, columns]),
            seen.groups,
            np.concatenate([seen.loss, fitted.process.predict(columns)[0]]),
            np.concatenate([seen.variance, np.zeros(len(out))]),
            np.concatenate([seen.repeats, np.ones(len(out))]),
        )
        return Fitted(fitted.evidence, GaussianProcess.condition(believed, fitted.process.hyper))


def _guide(fitted: Fitted) -> Guide:
    rows = np.flatnonzero(fitted.evidence.measured)
    look = fitted.process.look(fitted.evidence.observations.columns[rows], rows)
    return Guide(
        fitted.process,
        fitted.evidence,
        look.mean,
        look.sd,
        gene_weights(fitted.process.hyper.weight_log),
        fitted.process.noise_variance,
    )
