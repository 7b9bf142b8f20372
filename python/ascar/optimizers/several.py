"""Several objectives: one optimizer that is told a scalar, a new one for each proposal.

Knowles, "ParEGO: A Hybrid Algorithm with On-Line Landscape Approximation for Expensive Multiobjective
Optimization Problems", IEEE Transactions on Evolutionary Computation 10 (2006), section III: each proposal
minimises an augmented Tchebycheff function of the losses under weights drawn at random, so that the proposals
spread over the Pareto set, its hollow parts included. Every other proposal minimises the study's own
compromise, which is what will be recommended.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ascar.errors import Exhausted
from ascar.optimizers.recommendation import recommend
from ascar.results.trial import TrialState

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from ascar.optimizers import Evaluation, Optimizer
    from ascar.optimizers.recommendation import Recommendation
    from ascar.space import Configuration, Space

_AUGMENTATION = 0.05  # Knowles' rho
# Beyond this multiple of the Pareto set's range a loss is as bad as any.
_FAR = 4.0
_LOOKS_MAX = 1_000


class SeveralObjectives:
    """An optimizer for evaluations with several losses.

    Its proposals follow from what it was told and the seed alone. An evaluation without losses of its own is
    told as it is.

    Args:
        make: opens the optimizer of a space.
        space: the space to search.
        seed: the seed of the weights.
    """

    def __init__(self, make: Callable[[Space], Optimizer], space: Space, seed: int) -> None:
        self._make, self._space, self._seed = make, space, seed
        self._history: list[Evaluation] = []
        self._out: list[Configuration] = []
        self._compromise = make(space)

    def ask(self) -> Configuration:
        """The next configuration.

        Raises:
            Exhausted: nothing is left to propose.
        """
        step = len(self._history) + len(self._out)
        weights = self._weights(step)
        optimizer = self._compromise if weights is None else self._told(weights)
        for _ in range(_LOOKS_MAX):
            proposed = optimizer.ask()
            # The compromise's optimizer does not know what another one has out.
            if proposed not in self._out:
                self._out.append(proposed)
                return proposed
        raise Exhausted("nothing is left to propose that is not out for evaluation already")

    def tell(self, evaluation: Evaluation) -> None:
        """What became of a configuration."""
        if evaluation.configuration in self._out:
            self._out.remove(evaluation.configuration)
        self._history.append(evaluation)
        self._compromise.tell(evaluation)

    def recommend(self) -> Recommendation | None:
        """The best compromise; None before any success."""
        return recommend(self._compromise, self._history)

    def _weights(self, step: int) -> NDArray[np.float64] | None:
        """Uniform on the simplex at every other step; None: the compromise is sought."""
        losses = self._losses()
        if step % 2 == 0 or len(losses) < 2:
            return None
        return np.random.default_rng([self._seed, step]).dirichlet(np.ones(losses.shape[1]))

    def _losses(self) -> NDArray[np.float64]:
        """(n, objectives): of all complete evaluations that have them."""
        known = [one.losses for one in self._history if _complete(one)]
        return np.array(known, np.float64) if known else np.empty((0, 0))

    def _told(self, weights: NDArray[np.float64]) -> Optimizer:
        """A new optimizer that knows the history under these weights."""
        scalars = iter(tchebycheff(self._losses(), weights))
        optimizer = self._make(self._space)
        for one in self._history:
            loss, error = (next(scalars).item(), None) if _complete(one) else (None, None)
            state = (
                one.state if loss is not None or one.state is not TrialState.COMPLETE else TrialState.FAILED
            )
            optimizer.tell(replace(one, state=state, loss=loss, standard_error=error, losses=()))
        return optimizer


def tchebycheff(losses: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Augmented Tchebycheff scalars (Knowles, equation 2): max_i w_i z_i + 0.05 Σ_i w_i z_i.

    z is a loss in the range that the Pareto set has: 0 its best value of that objective, 1 its worst. A range
    over all that was measured would be stretched by the worst of it.

    Args:
        losses: (n, k), lower is better, finite.
        weights: (k,), not negative.

    Returns:
        (n,), lower is better.
    """
    assert losses.shape[1:] == weights.shape, "one weight an objective"
    front = losses[nondominated(losses)]
    low, high = front.min(0), front.max(0)
    whole = np.maximum(losses.max(0) - low, 1e-12)
    spread = np.asarray(np.where(high > low, high - low, whole), np.float64)
    weighted = np.minimum((losses - low) / spread, _FAR) * weights
    return weighted.max(1) + _AUGMENTATION * weighted.sum(1)


def nondominated(losses: NDArray[np.float64]) -> NDArray[np.bool_]:
    """(n,): which rows no other row beats in one objective without losing in another; losses (n, k)."""
    nowhere_worse = np.all(losses[None, :, :] <= losses[:, None, :], axis=2)
    somewhere_better = np.any(losses[None, :, :] < losses[:, None, :], axis=2)
    return np.asarray(~np.any(nowhere_worse & somewhere_better, axis=1), np.bool_)


def _complete(one: Evaluation) -> bool:
    return one.state is TrialState.COMPLETE and bool(one.losses) and bool(np.isfinite(one.losses).all())
