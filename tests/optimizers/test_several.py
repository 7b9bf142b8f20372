"""Several objectives: scalars, and an optimizer that spreads over the Pareto set."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ascar.optimizers import Evaluation, open_optimizer
from ascar.optimizers.genetic import GeneticAlgorithm
from ascar.optimizers.random import RandomSearch
from ascar.optimizers.several import SeveralObjectives, nondominated, tchebycheff
from ascar.results.trial import TrialState
from ascar.space import Space, integer, ordinal
from ascar.testing.optimizers import OptimizerContract


def line() -> Space:
    """Along x one objective pays for the other; y only costs."""
    return Space(
        (
            integer("x", (0, 30), default=15, cost="dyn-kernel"),
            ordinal("y", (0, 1, 2, 3), default=3, cost="dyn-kernel"),
        )
    )


def losses_of(one) -> tuple[float, float]:
    # A hollow front: no weighted sum of the two has its minimum in the middle of it.
    share = one["x"] / 30
    return (float(np.sqrt(share)) + 0.3 * one["y"] + 1, float(np.sqrt(1 - share)) + 0.3 * one["y"] + 1)


def test_what_is_not_dominated_is_found_by_its_definition():
    rng = np.random.default_rng(1)
    losses = rng.integers(0, 5, (60, 3)).astype(float)
    wanted = [not any((other <= one).all() and (other < one).any() for other in losses) for one in losses]
    assert nondominated(losses).tolist() == wanted


def test_a_scalar_prefers_what_the_weights_prefer():
    losses = np.array([[0.0, 1.0], [1.0, 0.0], [0.6, 0.6], [5.0, 5.0]])
    assert tchebycheff(losses, np.array([0.9, 0.1])).argmin() == 0
    assert tchebycheff(losses, np.array([0.1, 0.9])).argmin() == 1
    # A weighted sum would never choose the third, which lies in a hollow of the front.
    assert tchebycheff(losses, np.array([0.5, 0.5])).argmin() == 2
    assert (
        tchebycheff(losses, np.array([0.5, 0.5])) <= tchebycheff(losses[3:], np.array([0.5, 0.5])) + 9
    ).all()


def searched(kind: str, trials: int, seed: int = 3) -> tuple[SeveralObjectives, set]:
    space = line()
    optimizer = SeveralObjectives(lambda space: open_optimizer({"kind": kind}, space, seed), space, seed)
    tried = set()
    for _ in range(trials):
        one = optimizer.ask()
        losses = losses_of(one)
        optimizer.tell(Evaluation(one, TrialState.COMPLETE, float(np.log(losses).sum()), None, 1.0, losses))
        tried.add(one)
    return optimizer, tried


@pytest.mark.parametrize("kind", ["trees", "genetic"])
def test_it_spreads_over_the_whole_front(kind):
    _, tried = searched(kind, 45)
    front = sorted(one["x"] for one in tried if one["y"] == 0)
    assert front[0] <= 2
    assert front[-1] >= 28
    gaps = np.diff(front)
    assert gaps.max() <= 12, f"a stretch of the front was never tried: {front}"


def test_what_it_recommends_is_the_compromise():
    optimizer, tried = searched("gp", 20)
    best = min(tried, key=lambda one: float(np.log(losses_of(one)).sum()))
    found = optimizer.recommend()
    assert found is not None
    assert float(np.log(losses_of(found.configuration)).sum()) <= float(np.log(losses_of(best)).sum()) + 0.05


def test_told_its_history_it_goes_on_as_if_never_stopped():
    first, _ = searched("auto", 16)
    space = line()
    again = SeveralObjectives(lambda space: open_optimizer({"kind": "auto"}, space, 3), space, 3)
    for one in first._history:
        again.tell(one)
    for _ in range(4):
        proposed = first.ask()
        assert again.ask() == proposed
        losses = losses_of(proposed)
        for each in (first, again):
            each.tell(Evaluation(proposed, TrialState.COMPLETE, sum(losses), None, 1.0, losses))


def _several(kind):
    def make(space, *, seed, start, options):
        def inner(inside):
            return kind(inside, seed=seed, start=start, options=options)

        return Vectorial(inner, space, seed)

    return staticmethod(make)


class Vectorial(SeveralObjectives):
    """Told one loss by the contract's tests, it takes a second one that pulls the other way."""

    def tell(self, evaluation):
        loss = evaluation.loss
        known = evaluation.state is TrialState.COMPLETE and loss is not None
        super().tell(replace(evaluation, losses=(loss, -0.5 * loss)) if known else evaluation)


class TestSeveralRandom(OptimizerContract):
    make = _several(RandomSearch)


class TestSeveralGenetic(OptimizerContract):
    make = _several(GeneticAlgorithm)
