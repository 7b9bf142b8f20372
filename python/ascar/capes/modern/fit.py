"""Fitting the process of a surface, with a prior of its own for the lengths where knobs are few."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ascar.optimizers.surrogates.gaussian import KernelHyperparameters, Posterior

if TYPE_CHECKING:
    from ascar.optimizers.surrogates.gaussian import GaussianProcess, ModelObservations

_ITERATIONS_MAX = 25
_SHORTER, _SPREAD = 2.0, 0.7


def process_of(
    observations: ModelObservations, before: KernelHyperparameters | None, *, short: bool
) -> GaussianProcess:
    """The posterior at the hyperparameters that maximise evidence times prior.

    From a dozen visits the most likely lengths are often as long as the range, and the model is then sure
    that nothing is to be found between the settings that it knows.

    Args:
        observations: what to fit to.
        before: where a search begins, beside the prior's middle; None: at the starts of `auto`.
        short: whether lengths are taken to be half as long as by the prior of `auto`, within a factor of four
            (two standard deviations), and not about anything.
    """
    posterior = Posterior.of(observations, rough=False)
    count = observations.parameters
    starts = KernelHyperparameters.starts(count)
    if before is not None:
        starts = (before, KernelHyperparameters.prior(count))
    if short:
        centre, spread = posterior.centre.copy(), posterior.spread.copy()
        centre[:count] += 2 * np.log(_SHORTER)  # of the weights, which are lengths to the power of -2
        spread[:count] = 2 * _SPREAD
        posterior = replace(posterior, centre=centre, spread=spread)
        if before is not None:
            starts = (before, KernelHyperparameters.of(centre))
    return posterior.process(starts, _ITERATIONS_MAX)
