"""The process at the most probable hyperparameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ascar.surrogate.hyperparameters import KernelHyperparameters
from ascar.surrogate.posterior import HyperparameterPosterior
from ascar.surrogate.process import GaussianProcess

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

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
    from scipy import optimize  # a third of what starting `ascar tune` takes, and few trials need it not

    best: tuple[float, NDArray[np.float64]] | None = None
    for start in starts:
        found = cast("Any", optimize.minimize)(
            posterior.penalty,
            np.clip(start.vector(), posterior.low, posterior.high),
            jac=True,
            method="L-BFGS-B",
            bounds=np.column_stack([posterior.low, posterior.high]),
            options={"maxiter": iterations_max},
        )
        if best is None or float(found.fun) < best[0]:
            best = float(found.fun), np.asarray(found.x, np.float64)
    assert best is not None, "there is at least one start"
    return GaussianProcess.condition(posterior.observations, KernelHyperparameters.of(best[1]), best[0])
