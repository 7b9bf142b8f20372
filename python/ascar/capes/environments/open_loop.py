"""Open-loop policies to compare with, which use no observation: one setting, a sweep, random actions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascar.capes.axes import Axis, Setting, action_count, initial, moved

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from ascar.capes.policy import TickObservation

_HELD_TICKS = 2


class StaticPolicy:
    """A policy that keeps one setting."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting

    def decide(self, _seen: TickObservation) -> Setting:
        """The same setting."""
        return self._setting

    def announce(self, _workload: str) -> None:
        """Nothing changes."""


class RandomPolicy:
    """A policy that takes a random one of the 2n + 1 actions each tick, like a learner with epsilon 1."""

    def __init__(self, knobs: Sequence[Axis], rng: np.random.Generator) -> None:
        self._knobs, self._rng = tuple(knobs), rng
        self._setting = initial(self._knobs)

    def decide(self, _seen: TickObservation) -> Setting:
        """Take a random action."""
        action = int(self._rng.integers(action_count(self._knobs)))
        self._setting = moved(self._knobs, self._setting, action)
        return self._setting

    def announce(self, _workload: str) -> None:
        """Nothing changes."""


class SweepPolicy:
    """A policy that visits all settings in rows: the first knob to its end and back, then a step of the next.

    Each setting is held for two ticks, so that a row passes the best windows of the game in 22.
    """

    def __init__(self, knobs: Sequence[Axis]) -> None:
        self._knobs = tuple(knobs)
        self._setting = initial(self._knobs)
        self._up = [True] * len(self._knobs)
        self._ticks = 0

    def decide(self, _seen: TickObservation) -> Setting:
        """Move one knob by a step, every other tick."""
        self._ticks += 1
        if self._ticks % _HELD_TICKS == 0:
            self._setting = self._next()
        return self._setting

    def announce(self, _workload: str) -> None:
        """Nothing changes."""

    def _next(self) -> Setting:
        for at in range(len(self._knobs)):
            wanted = moved(self._knobs, self._setting, 2 * at + (1 if self._up[at] else 2))
            if wanted != self._setting:
                return wanted
            self._up[at] = not self._up[at]
        return self._setting
