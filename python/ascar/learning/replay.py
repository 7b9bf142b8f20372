"""Experience replay (Mnih et al. 2015): what was tried is learned from again, in random order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from ascar.learning.q_learning import Transitions

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

_FIRST = 64


class Transition(NamedTuple):
    """One thing that was tried; see `Transitions`.

    Attributes:
        state: float32 (inputs,).
        action: the action's index.
        reward: the reward of the action.
        following: float32 (inputs,).
        allowed: bool (actions,).
        end: whether nothing follows.
    """

    state: NDArray[np.float32]
    action: int
    reward: float
    following: NDArray[np.float32]
    allowed: NDArray[np.bool_]
    end: bool = False


class Replay:
    """The latest transitions, in arrays that grow up to a limit; then the oldest ones are overwritten.

    Args:
        inputs: width of a state.
        actions: the number of actions.
        capacity: transitions that are kept.
    """

    def __init__(self, inputs: int, actions: int, capacity: int) -> None:
        assert capacity > 0, "a replay holds something"
        self._capacity = capacity
        self._seen = 0
        self._kept = _empty(min(_FIRST, capacity), inputs, actions)

    def __len__(self) -> int:
        return min(self._seen, self._capacity)

    def add(self, transition: Transition) -> None:
        """Keep one more."""
        at = self._seen % self._capacity
        if at == len(self._kept.rewards):
            self._kept = _each(self._kept, lambda part: _grown(part, self._capacity))
        for column, value in zip(self._kept, transition, strict=True):
            column[at] = value
        self._seen += 1

    def sample(self, rng: np.random.Generator, n: int) -> Transitions:
        """A batch drawn with replacement; each kept transition is as likely as any other."""
        assert self._seen, "there is something to learn from"
        rows = rng.integers(len(self), size=n)
        return _each(self._kept, lambda part: part[rows])


def _empty(rows: int, inputs: int, actions: int) -> Transitions:
    return Transitions(
        states=np.zeros((rows, inputs), np.float32),
        actions=np.zeros(rows, np.intp),
        rewards=np.zeros(rows, np.float32),
        following=np.zeros((rows, inputs), np.float32),
        allowed=np.zeros((rows, actions), np.bool_),
        ends=np.zeros(rows, np.bool_),
    )


def _each(kept: Transitions, change: Callable[[NDArray[Any]], NDArray[Any]]) -> Transitions:
    """Every part changed alike."""
    return Transitions(*cast("Any", [change(part) for part in kept]))


def _grown(part: NDArray[Any], capacity: int) -> NDArray[Any]:
    """Twice as long, at most the capacity."""
    rows = min(2 * len(part), capacity)
    grown = np.zeros((rows, *part.shape[1:]), part.dtype)
    grown[: len(part)] = part
    return grown
