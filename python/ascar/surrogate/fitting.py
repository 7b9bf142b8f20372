"""The process at the most probable hyperparameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascar import _core
from ascar.surrogate.hyperparameters import KernelHyperparameters
from ascar.surrogate.posterior import HyperparameterPosterior
from ascar.surrogate.process import GaussianProcess

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ascar.surrogate.observations import ModelObservations


def fit(
    observations: ModelObservations,
    starts: Sequence[KernelHyperparameters] = (),
    *,
    rough: bool = True,
    iterations_max: int = 40,
) -> GaussianProcess:
    """The process at the hyperparameters that maximise evidence times prior.

    Args:
        observations: the observations to fit to.
        starts: the starting points of the hyperparameter search; none: `KernelHyperparameters.starts`.
        rough: whether there is a rough part.
        iterations_max: the limit of L-BFGS iterations from each start.
    """
    posterior = HyperparameterPosterior.of(observations, rough=rough)
    starts = starts or KernelHyperparameters.starts(observations.parameters)
    return most_probable(posterior, starts, iterations_max)


def most_probable(
    posterior: HyperparameterPosterior, starts: Sequence[KernelHyperparameters], iterations_max: int
) -> GaussianProcess:
    """The process at the hyperparameters of the least penalty.

    Args:
        posterior: the posterior over the hyperparameters.
        starts: the starting points of the search, at least one.
        iterations_max: the limit of L-BFGS iterations from each start.
    """
    assert starts, "there is at least one start"
    low, high = posterior.low, posterior.high
    found = [
        _core.minimize_bounded(posterior.penalty, start.vector(), low, high, iterations_max)
        for start in starts
    ]
    penalty, vector = min(found, key=lambda one: one[0])
    return GaussianProcess.condition(posterior.observations, KernelHyperparameters.of(vector), penalty)
