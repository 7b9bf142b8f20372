"""The deep Q-network's steps, compiled: JAX over the values of `ascar.learning`.

A step of wide networks is bound by memory: clipping, descent and the target's following are written out here
as one pass over the parameters. Needs the extra `drl`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from ascar.extras import importing_extra
from ascar.learning import Network, Transitions, forward, targets
from ascar.learning.network import initialized, views
from ascar.learning.q_learning import errors, huber

with importing_extra("drl"):
    import jax
    import jax.numpy as jnp

from ascar.capes.classic.descent import descend, first_moments

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from ascar.capes.classic.hyperparameters import DeepQHyperparameters


class DeepState(NamedTuple):
    """The state that training changes.

    Attributes:
        network: theta.
        target: theta minus, which follows it (Li 5.1.4).
        moments: the moments of the optimizer.
    """

    network: Any
    target: Any
    moments: Any


class Stepped(NamedTuple):
    """The result of a step.

    Attributes:
        state: the new one.
        prediction_error: mean of |Q(s, a) - (r + discount max Q'(s', a'))| over the minibatch.
    """

    state: DeepState
    prediction_error: Any


def sizes_of(hyper: DeepQHyperparameters, inputs: int, actions: int) -> tuple[int, ...]:
    """Widths from the input to the output."""
    return (inputs, *[hyper.hidden_size or inputs] * hyper.hidden_layers, actions)


def first_state(hyper: DeepQHyperparameters, sizes: Sequence[int], rng: np.random.Generator) -> DeepState:
    """A randomly initialised network, its target network, and moments of zero."""
    layers: Any = jax.tree.map(_array, views(initialized(sizes, rng), sizes))
    return DeepState(layers, jax.tree.map(_array, layers), first_moments(hyper, layers))


def make_step(hyper: DeepQHyperparameters, *, many: bool = False) -> Any:
    """The compiled step of training: (state, batch) -> Stepped. The state given is used up.

    Args:
        hyper: the hyperparameters of the training.
        many: whether states and batches come stacked, one learner each along the first axis.
    """

    def followed(old: Any, new: Any) -> Any:
        return old + hyper.target_update * (new - old)

    def step(state: DeepState, batch: Transitions) -> Stepped:
        wanted = targets(state.target, batch, hyper.discount, jnp)

        def objective(network: Network) -> tuple[Any, Any]:
            error = errors(network, batch, wanted, jnp)
            return huber(error, jnp), error.mean()

        slope, error = cast("Any", jax).grad(objective, has_aux=True)(state.network)
        network, moments = descend(hyper, slope, state.network, state.moments)
        target = jax.tree.map(followed, state.target, network)
        return Stepped(DeepState(network, target, moments), error)

    return jax.jit(jax.vmap(step) if many else step, donate_argnums=0)


@jax.jit
def _values(network: Any, states: Any) -> Any:
    return forward(network, states, jnp)


@jax.jit
def _many_values(network: Any, states: Any) -> Any:
    return jax.vmap(partial(forward, xp=jnp))(network, states)


def values_of(state: DeepState, states: NDArray[np.float32], *, many: bool = False) -> NDArray[np.float32]:
    """(n, actions): Q of every action; with `many`, states are (k, 1, inputs), row i of learner i."""
    network = cast("Any", _many_values if many else _values)
    return np.asarray(network(state.network, states))


def stacked(states: Sequence[DeepState]) -> DeepState:
    """The states of many learners as one, each along the first axis."""

    def together(*parts: Any) -> Any:
        return jnp.stack(parts)

    return jax.tree.map(together, *states)


def leaves_of(state: DeepState) -> list[Any]:
    """All arrays of a state, in a fixed order."""
    return list(jax.tree.leaves(state))


def with_leaves(state: DeepState, leaves: Sequence[Any]) -> DeepState:
    """A state of the same structure with other arrays, as `leaves_of` has them."""
    tree = cast("Any", jax).tree
    return tree.unflatten(tree.structure(state), [_array(one) for one in leaves])


def _array(part: Any) -> Any:
    """A copy for the compiled step."""
    return jnp.array(part)
