"""Search guided by a model: initial design -> evidence -> model -> candidates -> expected improvement."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from ascar.optimizers.initialization import initial
from ascar.optimizers.ledger import Ledger
from ascar.optimizers.recommendation import Recommendation
from ascar.optimizers.surrogates.acquisition import log_expected_improvement
from ascar.optimizers.surrogates.candidates import Candidates, Reach
from ascar.optimizers.surrogates.columns import Columns
from ascar.optimizers.surrogates.evidence import Evidence, gather

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ascar.optimizers import Evaluation
    from ascar.optimizers.initialization import Method
    from ascar.space import Configuration, Space

__all__ = ["Model", "ModelSearch"]

# What a random decision is about, for its generator.
_DESIGN, _CANDIDATES, _MODEL = range(3)


class Model(Protocol):
    """A posterior over the standardised loss."""

    def predict(self, columns: NDArray[np.float64], /) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean (m,) and standard deviation (m,) of the loss at encoded configurations (m, D)."""
        ...


class ModelSearch:
    """The part that all model-guided optimizers share; a subclass says which model is fitted.

    Args:
        space: what is searched.
        seed: of the random choices.
        start: configurations to propose first.
        design: how many configurations are measured before the model guides, the start included.
        method: how the design is drawn.
    """

    def __init__(
        self, space: Space, seed: int, start: tuple[Configuration, ...], design: int, method: Method
    ) -> None:
        self.ledger = Ledger(space, seed, start)
        self.columns = Columns.of(space)
        self._candidates = Candidates(self.ledger, Reach())
        self._design = initial(space, self.ledger.rng(_DESIGN), design, method, self.ledger.start)

    def fit(self, evidence: Evidence, rng: np.random.Generator) -> Model:
        """The model of what is known."""
        raise NotImplementedError

    def tell(self, evaluation: Evaluation) -> None:
        """What became of a configuration."""
        self.ledger.tell(evaluation)

    def ask(self) -> Configuration:
        """The next configuration.

        Raises:
            Exhausted: every valid configuration is known or out.
        """
        ledger = self.ledger
        return ledger.take(ledger.first_fresh(self._design) or self._guided() or self._any())

    def recommend(self) -> Recommendation | None:
        """The measured configuration whose loss the model expects to be lowest; None before any success.

        The luckiest of many noisy losses is not the lowest, and is not reported as it: the expectation
        shrinks each observation towards what its neighbours say.
        """
        evidence = gather(self.ledger, self.columns)
        rows = np.flatnonzero(evidence.measured)
        if not len(rows):
            return None
        model = self.fit(evidence, self.ledger.rng(_MODEL, len(self.ledger.history)))
        mean, sd = model.predict(evidence.observations.columns[rows])
        best = int(np.argmin(mean))
        return Recommendation(
            evidence.configurations[int(rows[best])],
            evidence.scale.original(float(mean[best])),
            evidence.scale.spread * float(sd[best]),
        )

    def _guided(self) -> Configuration | None:
        """The candidate with the greatest expected improvement; None while nothing can be modelled."""
        evidence = gather(self.ledger, self.columns)
        if np.count_nonzero(evidence.measured) < 2 or not self.columns.width:
            return None
        model = self.fit(evidence, self.ledger.rng(_MODEL, len(self.ledger.history)))
        rows = np.flatnonzero(evidence.measured)
        expected, _ = model.predict(evidence.observations.columns[rows])
        order = np.argsort(expected, kind="stable")
        centres = [evidence.configurations[int(rows[at])] for at in order[:3]]
        candidates = self._candidates.around(centres, self.ledger.rng(_CANDIDATES, self.ledger.step))
        if not candidates:
            return None
        mean, sd = model.predict(self.columns.rows(candidates))
        promise = log_expected_improvement(mean, sd, float(expected[order[0]]))
        return candidates[int(np.argmax(promise))]

    def _any(self) -> Configuration:
        return self.ledger.draw(self.ledger.rng(_CANDIDATES, self.ledger.step, 1))
