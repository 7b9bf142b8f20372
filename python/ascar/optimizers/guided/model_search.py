"""Search guided by a model: initial design -> evidence -> model -> candidates -> the most promising."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from ascar.optimizers.guided.candidate_search import CandidateSearch, Reach
from ascar.optimizers.guided.columns import SpaceColumns
from ascar.optimizers.initialization import initial
from ascar.optimizers.ledger import Ledger
from ascar.optimizers.recommendation import Recommendation
from ascar.surrogate.acquisition import log_expected_improvement

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ascar.optimizers import Evaluation
    from ascar.optimizers.guided.evidence import ModelEvidence
    from ascar.optimizers.initialization import Method
    from ascar.space import Configuration, Space
    from ascar.surrogate.acquisition import Acquisition

_CENTRES = 4
# With so many parameters a plain design seldom has a configuration without a value that spoils everything.
_MANY = 10
# What a random decision is about, for its generator.
_DESIGN, _POOL, _SEARCH, _ANY = range(4)


class Model(Protocol):
    """A posterior over the standardised loss."""

    def predict(self, columns: NDArray[np.float64], /) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean (m,) and standard deviation (m,) of the noise-free loss at encoded configurations (m, D)."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Guide:
    """A model, and what a search needs to know of it.

    Attributes:
        model: the posterior.
        evidence: the evidence that the model was fitted to.
        mean: float64 (measured,), its mean at the measured configurations.
        sd: float64 (measured,), its standard deviation there.
        weights: float64 (genes,), above zero: how much each parameter matters.
        noise_variance: the variance of one evaluation, standardised; 0 if the model does not estimate it.
    """

    model: Model
    evidence: ModelEvidence
    mean: NDArray[np.float64]
    sd: NDArray[np.float64]
    weights: NDArray[np.float64]
    noise_variance: float = 0.0

    @property
    def measured(self) -> list[Configuration]:
        """The measured configurations."""
        return [self.evidence.configurations[int(row)] for row in np.flatnonzero(self.evidence.measured)]

    def centres(self, count: int) -> list[Configuration]:
        """The measured configurations that are expected to be best."""
        order = np.argsort(self.mean, kind="stable")[:count]
        measured = self.measured
        return [measured[int(at)] for at in order]


class ModelSearch:
    """What all model-guided optimizers share; a subclass says which model is fitted.

    Args:
        space: the space to search.
        seed: the seed of the random choices.
        start: configurations to propose first.
        design: the number of configurations that are measured before the model is used, the initial ones
            included.
        method: the method that draws the design; None: "near-known" in a space of many parameters where a
            start configuration or the default was measured before, else "latin-hypercube".
    """

    def __init__(
        self, space: Space, seed: int, start: tuple[Configuration, ...], design: int, method: Method | None
    ) -> None:
        self.ledger = Ledger(space, seed, start)
        self.columns = SpaceColumns.of(space)
        self._design_size, self._method = design, method
        self._drawn: list[Configuration] | None = None
        self._acquisition: Acquisition = log_expected_improvement
        self._made: CandidateSearch | None = None

    @property
    def design(self) -> list[Configuration]:
        """The start configurations and the rest of the design, which is drawn once those are measured."""
        if self._drawn is None:
            ledger, known = self.ledger, self._known()
            many = len(ledger.space.parameters) >= _MANY
            method = self._method or ("near-known" if many and known else "latin-hypercube")
            # Opened anew on what another one has designed, it needs no design of its own.
            size = self._design_size if ledger.seen <= self._design_size + 1 else 0
            self._drawn = initial(ledger.space, ledger.rng(_DESIGN), size, method, ledger.start, known=known)
        return self._drawn

    def _known(self) -> Configuration | None:
        """Of the default and the start configurations, the best by its first loss; None if none has one.

        Later losses do not count: a search that is resumed draws the same design as one that never stopped.
        """
        ledger = self.ledger
        records = {one: ledger.records.get(one) for one in (ledger.space.default(), *ledger.start)}
        losses = {one: record.losses[0] for one, record in records.items() if record and record.losses}
        return min(losses, key=losses.__getitem__, default=None)

    def guide(self) -> Guide | None:
        """The model of what is known; None while nothing can be modelled."""
        raise NotImplementedError

    def tell(self, evaluation: Evaluation) -> None:
        """What became of a configuration."""
        self.ledger.tell(evaluation)

    def ask(self) -> Configuration:
        """The next configuration.

        Raises:
            Exhausted: every valid configuration is known or out.
        """
        return self.ledger.take(self.designed() or self.guided() or self.any())

    def designed(self) -> Configuration | None:
        """What is left of the design, the start configurations first; None when all of it is done."""
        return self.ledger.started() or self.ledger.first_fresh(self.design)

    def recommend(self) -> Recommendation | None:
        """The measured configuration whose loss the model expects to be lowest; None before any success.

        The luckiest of many noisy losses is not the lowest, and is not reported as it: the expectation
        shrinks each observation towards what its neighbours say.
        """
        guide = self.guide()
        if guide is None:
            return self.observed()
        at = int(np.argmin(guide.mean))
        scale, noise = guide.evidence.scale, guide.noise_variance
        loss = scale.original(float(guide.mean[at]), noise)
        beyond = scale.original(float(guide.mean[at] + guide.sd[at]), noise)
        return Recommendation(guide.measured[at], loss, abs(beyond - loss))

    def observed(self) -> Recommendation | None:
        """The measured configuration with the lowest mean loss: what there is without a model."""
        best = self.ledger.best()
        return None if best is None or best[1].loss is None else Recommendation(best[0], best[1].loss)

    def guided(self) -> Configuration | None:
        """The fresh candidate that promises most, by expected improvement unless a subclass says otherwise.

        None where there is none.
        """
        guide = self.guide()
        if guide is None:
            return None
        best = float(guide.mean.min())

        def promise(columns: NDArray[np.float64]) -> NDArray[np.float64]:
            return self._acquisition(*guide.model.predict(columns), best)

        found = self.candidates.search(promise, guide.centres(_CENTRES), guide.weights, self.rng())
        proposals = (self.candidates.fresh(found, at) for at in range(len(found)))
        return next((one for one in proposals if one is not None), None)

    def any(self) -> Configuration:
        """A random fresh configuration.

        Raises:
            Exhausted: there is none.
        """
        return self.ledger.draw(self.ledger.rng(_ANY, self.ledger.step))

    def rng(self) -> np.random.Generator:
        """The generator of this step."""
        return self.ledger.rng(_SEARCH, self.ledger.step)

    @property
    def candidates(self) -> CandidateSearch:
        """Made when first needed: a search that ends within its design needs none."""
        if self._made is None:
            self._made = CandidateSearch(self.ledger, self.columns, Reach(), self.ledger.rng(_POOL))
        return self._made
