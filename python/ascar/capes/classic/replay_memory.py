"""The replay memory: it stores each tick once and draws minibatches from them (Li, Algorithm 2).

Observations overlap: each is a stack of the last S ticks. They are put together when they are drawn, so that
250,000 ticks of 176 indicators take 180 MB, and not ten times as much.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ascar.learning import Transitions

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FIRST = 1_024
_ROUNDS_MAX = 64


class TickReplay:
    """The latest ticks, each at its number modulo a capacity that grows up to a limit.

    Args:
        width: indicators of all nodes together.
        stack: ticks of an observation (S).
        missing_tolerance: share of an observation that may be missing.
        ticks_max: kept at most.
    """

    def __init__(self, width: int, stack: int, missing_tolerance: float, ticks_max: int) -> None:
        assert ticks_max >= 2 * stack, "room for a transition"
        self.width, self.stack = width, stack
        self._missing_max = int(missing_tolerance * width * stack)
        self._ticks_max = ticks_max
        self._first = self._last = -1
        self._grow(min(_FIRST, ticks_max))

    def __len__(self) -> int:
        return 0 if self._last < 0 else self._last - self._first + 1

    @property
    def nbytes(self) -> int:
        """The bytes that the arrays take."""
        return self._values.nbytes + self._missing.nbytes + self._actions.nbytes + self._rewards.nbytes

    def add(self, tick: int, values: NDArray[np.float32], reward: float) -> None:
        """A tick's indicators, (width,) with NaN where missing, and what the transition to it was worth.

        Ticks that were left out are missing as a whole; one from the past changes nothing.
        """
        if tick <= self._last:
            return
        if self._last < 0 or tick - self._last >= self._ticks_max:
            self._first, self._last = tick, tick - 1
        while tick - self._first + 1 > len(self._missing) < self._ticks_max:
            self._grow(min(2 * len(self._missing), self._ticks_max))
        for absent in range(self._last + 1, tick):
            self._put(absent, None, np.nan)
        self._put(tick, values, reward)
        self._last = tick
        self._first = max(self._first, tick - len(self._missing) + 1)

    def act(self, tick: int, action: int) -> None:
        """Store the action that was taken after a tick."""
        if self._first <= tick <= self._last:
            self._actions[tick % len(self._missing)] = action

    def observation(self, tick: int) -> NDArray[np.float32] | None:
        """(stack * width,): the ticks up to one; None where too much is missing."""
        ticks = np.array([tick])
        return self._stacks(ticks)[0] if self._enough(ticks)[0] else None

    def sample(self, rng: np.random.Generator, n: int, actions: int) -> Transitions | None:
        """A minibatch of n transitions from t to t + 1, drawn uniformly and with replacement.

        Args:
            rng: the source of the draw.
            n: the number of transitions.
            actions: the number of actions.

        Returns:
            The batch; None while there is not enough to draw from.
        """
        if len(self) < self.stack + 1:
            return None
        found: list[NDArray[np.int64]] = []
        needed = n
        for _ in range(_ROUNDS_MAX):
            ticks = rng.integers(self._first + self.stack - 1, self._last, size=max(needed, 8))
            slots = ticks % len(self._missing)
            after = (ticks + 1) % len(self._missing)
            good = (self._actions[slots] >= 0) & ~np.isnan(self._rewards[after])
            good &= self._enough(ticks) & self._enough(ticks + 1)
            found.append(ticks[good][:needed])
            needed -= len(found[-1])
            if not needed:
                break
        else:
            return None
        chosen = np.concatenate(found)
        slots = len(self._missing)
        return Transitions(
            states=self._stacks(chosen),
            actions=self._actions[chosen % slots].astype(np.intp),
            rewards=self._rewards[(chosen + 1) % slots].astype(np.float32),
            following=self._stacks(chosen + 1),
            allowed=np.ones((n, actions), np.bool_),
            ends=np.zeros(n, np.bool_),
        )

    def _put(self, tick: int, values: NDArray[np.float32] | None, reward: float) -> None:
        at = tick % len(self._missing)
        self._actions[at] = -1
        self._rewards[at] = reward
        if values is None:
            self._values[at] = 0
            self._missing[at] = self.width
        else:
            absent = ~np.isfinite(values)
            self._values[at] = np.where(absent, 0, values)
            self._missing[at] = np.count_nonzero(absent)

    def _enough(self, ticks: NDArray[np.int64]) -> NDArray[np.bool_]:
        """(n,): whether the stack up to each tick is kept, and not too much of it missing."""
        inside = (ticks - self.stack + 1 >= self._first) & (ticks <= self._last)
        slots = (ticks[:, None] + np.arange(1 - self.stack, 1)) % len(self._missing)
        return inside & (self._missing[slots].sum(1) <= self._missing_max)

    def _stacks(self, ticks: NDArray[np.int64]) -> NDArray[np.float32]:
        """(n, stack * width): the oldest tick first."""
        slots = (ticks[:, None] + np.arange(1 - self.stack, 1)) % len(self._missing)
        return self._values[slots].reshape(len(ticks), -1)

    def _grow(self, slots: int) -> None:
        """As many slots; what is kept moves to its new place."""
        values = np.zeros((slots, self.width), np.float32)
        missing = np.full(slots, self.width, np.int32)
        actions = np.full(slots, -1, np.int16)
        rewards = np.full(slots, np.nan, np.float64)
        if self._last >= 0:
            ticks = np.arange(self._first, self._last + 1)
            old, new = ticks % len(self._missing), ticks % slots
            values[new], missing[new] = self._values[old], self._missing[old]
            actions[new], rewards[new] = self._actions[old], self._rewards[old]
        self._values, self._missing, self._actions, self._rewards = values, missing, actions, rewards
