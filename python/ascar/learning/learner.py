"""A deep Q-network that learns: the network, its older copy, and Adam's moments.

On the processor with NumPy: at the width that a search needs (32 to 64 a layer, batches of 32) a step
takes as long as a compiled one, with nothing to install or compile; see docs/algorithms/dqn.md. Wider
networks want a compiled step over the same values: `targets` and `loss` take the array library as an
argument.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ascar.learning.network import Network, forward, initialized, views
from ascar.learning.q_learning import Transitions, gradient, targets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

# Kingma and Ba, "Adam: A Method for Stochastic Optimization", ICLR 2015, algorithm 1.
_FIRST_DECAY, _SECOND_DECAY, _TINY = 0.9, 0.999, 1e-8


class QLearner:
    """See the module.

    Args:
        sizes: the sizes of the state, the hidden layers, and the actions.
        rng: the random generator of the first weights.
        rate: the learning rate of Adam.
        discount: the worth of a reward one step later.

    Attributes:
        network: the present one.
        older: the copy that targets are taken from; see `renew`.
    """

    def __init__(self, sizes: Sequence[int], rng: np.random.Generator, rate: float, discount: float) -> None:
        self._sizes, self._rate, self._discount = tuple(sizes), rate, discount
        self._parameters = initialized(sizes, rng)
        self._copy = self._parameters.copy()
        self.network: Network = views(self._parameters, sizes)
        self.older: Network = views(self._copy, sizes)
        self._first = np.zeros_like(self._parameters)
        self._second = np.zeros_like(self._parameters)
        self._steps = 0

    def values(self, state: NDArray[np.float32]) -> NDArray[np.float32]:
        """(actions,): Q of every action in a state (inputs,)."""
        return np.asarray(forward(self.network, state[None]), np.float32)[0]

    def step(self, batch: Transitions) -> None:
        """One step of Adam down the loss of a batch."""
        wanted = np.asarray(targets(self.older, batch, self._discount), np.float32)
        parts = [array.ravel() for layer in gradient(self.network, batch, wanted) for array in layer]
        slope = np.concatenate(parts)
        self._steps += 1
        self._first += (1 - _FIRST_DECAY) * (slope - self._first)
        self._second += (1 - _SECOND_DECAY) * (slope * slope - self._second)
        bias = (1 - _SECOND_DECAY**self._steps) ** 0.5 / (1 - _FIRST_DECAY**self._steps)
        self._parameters -= self._rate * bias * self._first / (np.sqrt(self._second) + _TINY)

    def renew(self, share: float = 1.0) -> None:
        """Move the older copy towards the network: all the way (Mnih et al.), or by a share of it."""
        self._copy += share * (self._parameters - self._copy)
