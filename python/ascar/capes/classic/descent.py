"""A step of gradient descent: clipping by the norm, then Adam or RMSProp.

Written out and not taken from a library, so that it compiles to one pass over the parameters: with wide
networks a step of training is bound by memory. Needs the extra `drl`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

import jax
import jax.numpy as jnp

if TYPE_CHECKING:
    from ascar.capes.classic.hyperparameters import DeepQHyperparameters

_FIRST_DECAY, _SECOND_DECAY, _TINY = 0.9, 0.999, 1e-8


class Moments(NamedTuple):
    """Moving averages of the gradient.

    Attributes:
        first: the average of the gradient; empty with RMSProp.
        second: the average of the gradient's square.
        steps: int32, how many went into them.
    """

    first: Any
    second: Any
    steps: Any


def first_moments(hyper: DeepQHyperparameters, network: Any) -> Moments:
    """The moments before the first step."""
    first = jax.tree.map(_zero, network) if hyper.optimizer == "adam" else ()
    return Moments(first, jax.tree.map(_zero, network), jnp.zeros((), jnp.int32))


def _zero(part: Any) -> Any:
    return jnp.zeros(part.shape, part.dtype)


def descend(hyper: DeepQHyperparameters, slope: Any, network: Any, moments: Moments) -> tuple[Any, Moments]:
    """Update the network and the moments by one step.

    Adam: Kingma and Ba, "Adam: A Method for Stochastic Optimization", ICLR 2015, algorithm 1. RMSProp:
    Tieleman and Hinton, "Neural Networks for Machine Learning" (2012), lecture 6.5.

    Args:
        hyper: optimizer, its rate, the longest gradient.
        slope: the gradient, in the network's shape.
        network: the parameters.
        moments: the moments after the previous step.
    """
    each = cast("Any", jax).tree.map
    rate, steps = hyper.learning_rate, moments.steps + 1
    length = jnp.sqrt(sum(jnp.sum(part * part) for part in jax.tree.leaves(slope)))
    scale = jnp.minimum(1.0, hyper.gradient_norm_max / jnp.maximum(length, _TINY))

    def mean(old: Any, part: Any) -> Any:
        return _FIRST_DECAY * old + (1 - _FIRST_DECAY) * (scale * part)

    def square(old: Any, part: Any) -> Any:
        decay = hyper.rmsprop_decay if hyper.optimizer == "rmsprop" else _SECOND_DECAY
        return decay * old + (1 - decay) * (scale * part) ** 2

    second = each(square, moments.second, slope)
    if hyper.optimizer == "rmsprop":

        def plain(at: Any, part: Any, size: Any) -> Any:
            return at - rate * (scale * part) / jnp.sqrt(size + _TINY)

        return each(plain, network, slope, second), Moments((), second, steps)

    first = each(mean, moments.first, slope)
    wide, high = 1 / (1 - _FIRST_DECAY**steps), 1 / (1 - _SECOND_DECAY**steps)

    def corrected(at: Any, average: Any, size: Any) -> Any:
        return at - rate * (wide * average) / (jnp.sqrt(high * size) + _TINY)

    return each(corrected, network, first, second), Moments(first, second, steps)
