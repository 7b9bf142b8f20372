"""The Q-learning step of a deep Q-network.

Mnih et al., "Human-level control through deep reinforcement learning", Nature 518 (2015), algorithm 1: the
network's value of an action taken is moved towards r + discount max_a' Q'(s', a'), where Q' is an older copy
of the network; errors beyond 1 count by their size and not by their square.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ascar.learning.network import Layer, Network, activations, forward

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Transitions(NamedTuple):
    """A batch of what was tried.

    Attributes:
        states: float32 (n, inputs), where the agent was.
        actions: int (n,), what it did.
        rewards: float32 (n,), what that brought.
        following: float32 (n, inputs), where it came to.
        allowed: bool (n, actions), what can be done there.
        ends: bool (n,), whether nothing follows.
    """

    states: NDArray[np.float32]
    actions: NDArray[np.intp]
    rewards: NDArray[np.float32]
    following: NDArray[np.float32]
    allowed: NDArray[np.bool_]
    ends: NDArray[np.bool_]


def targets(network: Network, batch: Transitions, discount: float, xp: Any = np) -> Any:
    """(n,): reward and discounted value of the best action that follows, by the older copy of the network."""
    values = xp.where(batch.allowed, forward(network, batch.following, xp), -xp.inf).max(1)
    over = batch.ends | ~batch.allowed.any(1)
    return batch.rewards + xp.where(over, 0.0, discount * values).astype(batch.rewards.dtype)


def errors(network: Network, batch: Transitions, wanted: Any, xp: Any = np) -> Any:
    """(n,): by how much the values of the actions taken are off."""
    rows = xp.arange(len(batch.actions))
    return xp.abs(forward(network, batch.states, xp)[rows, batch.actions] - wanted)


def huber(error: Any, xp: Any = np) -> Any:
    """Mean Huber loss of absolute errors; a scalar."""
    return xp.where(error <= 1, 0.5 * error * error, error - 0.5).mean()


def loss(network: Network, batch: Transitions, wanted: Any, xp: Any = np) -> Any:
    """Mean Huber loss of the values of the actions taken; a scalar."""
    return huber(errors(network, batch, wanted, xp), xp)


def gradient(network: Network, batch: Transitions, wanted: NDArray[np.float32]) -> Network:
    """The gradient of `loss` by the network's parameters, in their shape; NumPy alone."""
    entering = activations(network, batch.states)
    rows = np.arange(len(batch.actions))
    slope = np.zeros_like(entering[-1])
    slope[rows, batch.actions] = np.clip(entering[-1][rows, batch.actions] - wanted, -1, 1) / len(rows)
    layers: list[Layer] = []
    for layer, inputs in zip(reversed(network), reversed(entering[:-1]), strict=True):
        layers.append(Layer(inputs.T @ slope, slope.sum(0)))
        if len(layers) < len(network):
            slope = (slope @ layer.weight.T) * (1 - inputs * inputs)
    return tuple(reversed(layers))
