"""The reward of a transition, by the performance after it (Li 5.1.2, 5.2.2)."""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ascar.capes.classic.hyperparameters import RewardForm


class Rewards:
    """The reward of each tick after the one before it, as ticks come in.

    Args:
        form: see `Hyperparameters.reward`.
        ticks: the number of ticks of the average.
    """

    def __init__(self, form: RewardForm, ticks: int) -> None:
        self._form, self._weight = form, 2 / (ticks + 1)
        self._last: deque[float] = deque(maxlen=ticks)
        self._before = math.nan

    def after(self, performance: float) -> float:
        """The reward of this tick; NaN where it, or what came before, was not measured."""
        if math.isnan(performance):
            return math.nan  # of the averages it is as if this tick had not been
        if self._form == "level":
            return performance
        self._last.append(performance)
        if self._form == "difference":
            now = performance
        elif self._form == "difference-of-means":
            now = sum(self._last) / len(self._last)
        elif math.isnan(self._before):
            now = performance
        else:
            now = self._before + self._weight * (performance - self._before)
        reward, self._before = now - self._before, now
        return reward
