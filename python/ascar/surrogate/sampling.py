"""Hyperparameters drawn from their posterior: what few evaluations cannot settle stays unsettled.

The most probable hyperparameters alone are overconfident where evaluations are few: a parameter that looks
irrelevant is then never looked at again. Hamiltonian Monte Carlo (Neal, "MCMC using Hamiltonian dynamics", in
Handbook of Markov Chain Monte Carlo, 2011, figure 2) draws others that explain the losses as well. Bayesian
optimization that averages over them: Snoek, Larochelle and Adams, NeurIPS 2012, section 3.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ascar.surrogate.hyperparameters import KernelHyperparameters
from ascar.surrogate.posterior import HyperparameterPosterior
from ascar.surrogate.process import GaussianProcess

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LEAPS = 8
# Step in units of the prior's spread: at 0.12 about two thirds of the trajectories are accepted.
_STEP = 0.12


def drawn(process: GaussianProcess, rng: np.random.Generator, trajectories: int = 3) -> GaussianProcess:
    """The same observations under hyperparameters drawn from their posterior.

    Args:
        process: the start of the chain, usually at its most probable hyperparameters.
        rng: the source of the random choices.
        trajectories: the number of trajectories of the chain, each of 8 leapfrog steps.
    """
    posterior = HyperparameterPosterior.of(process.observations, rough=process.hyper.rough)
    place = process.hyper.vector()
    value, slope = posterior.penalty(place)
    for _ in range(trajectories):
        place, value, slope = _trajectory(posterior, place, value, slope, rng)
    return GaussianProcess.condition(process.observations, KernelHyperparameters.of(place))


def _trajectory(
    posterior: HyperparameterPosterior,
    place: NDArray[np.float64],
    value: float,
    slope: NDArray[np.float64],
    rng: np.random.Generator,
) -> tuple[NDArray[np.float64], float, NDArray[np.float64]]:
    """One trajectory, accepted or not."""
    momentum = rng.normal(size=len(place))
    # A rough part that the model does not have stays away.
    free = posterior.high > posterior.low
    step = _STEP * rng.uniform(0.7, 1.3) * posterior.spread * free
    energy = value + 0.5 * momentum @ momentum
    chance = rng.random()
    at, at_value, at_slope = place, value, slope
    momentum = momentum - 0.5 * step * at_slope
    for leap in range(_LEAPS):
        at = at + step * momentum
        if not posterior.inside(at):
            return place, value, slope
        at_value, at_slope = posterior.penalty(at)
        momentum = momentum - (0.5 if leap == _LEAPS - 1 else 1.0) * step * at_slope
    accepted = np.log(chance) < energy - (at_value + 0.5 * momentum @ momentum)
    return (at, at_value, at_slope) if accepted else (place, value, slope)
