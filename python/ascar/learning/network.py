"""Fully connected networks as tuples of arrays, which any array library can take for a tree of parameters."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


class Layer(NamedTuple):
    """outputs = inputs @ weight + bias.

    Attributes:
        weight: float32 (inputs, outputs).
        bias: float32 (outputs,).
    """

    weight: NDArray[np.float32]
    bias: NDArray[np.float32]


Network = tuple[Layer, ...]
"""Layers from the input to the output; tanh between them, nothing after the last."""


def initialized(sizes: Sequence[int], rng: np.random.Generator) -> NDArray[np.float32]:
    """Parameters of a network, see `views`: weights uniform within sqrt(6 / (inputs + outputs)), biases zero.

    Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural networks", AISTATS
    2010, equation 16.

    Args:
        sizes: the sizes of the input, the hidden layers and the output.
        rng: the random generator of the weights.
    """
    parts: list[NDArray[np.float32]] = []
    for inputs, outputs in pairwise(sizes):
        bound = (6 / (inputs + outputs)) ** 0.5
        parts.append(rng.uniform(-bound, bound, inputs * outputs).astype(np.float32))
        parts.append(np.zeros(outputs, np.float32))
    return np.concatenate(parts)


def views(parameters: NDArray[np.float32], sizes: Sequence[int]) -> Network:
    """The network that a flat vector of parameters is; its arrays are views, which follow the vector."""
    layers: list[Layer] = []
    at = 0
    for inputs, outputs in pairwise(sizes):
        middle, end = at + inputs * outputs, at + inputs * outputs + outputs
        layers.append(Layer(parameters[at:middle].reshape(inputs, outputs), parameters[middle:end]))
        at = end
    assert at == len(parameters), "as many parameters as the sizes say"
    return tuple(layers)


def forward(network: Network, inputs: Any, xp: Any = np) -> Any:
    """(n, outputs) for inputs (n, inputs).

    Args:
        network: the network; its arrays belong to `xp`.
        inputs: likewise.
        xp: the array library: NumPy, or one with its interface.
    """
    for layer in network[:-1]:
        inputs = xp.tanh(inputs @ layer.weight + layer.bias)
    return inputs @ network[-1].weight + network[-1].bias


def activations(network: Network, inputs: NDArray[np.float32]) -> list[NDArray[np.float32]]:
    """What enters each layer, and last what leaves the network."""
    found = [inputs]
    for layer in network[:-1]:
        found.append(np.tanh(found[-1] @ layer.weight + layer.bias))
    found.append(found[-1] @ network[-1].weight + network[-1].bias)
    return found
