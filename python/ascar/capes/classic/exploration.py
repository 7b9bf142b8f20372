"""The schedule of epsilon, the share of random actions (Li 5.1.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ascar.capes.classic.hyperparameters import DeepQHyperparameters


class EpsilonSchedule:
    """Falls linearly from the initial to the final share; another workload raises it again.

    From there it falls at the same rate.

    Args:
        hyper: the limits of the schedule.
        ticks: the number of ticks that have passed.
    """

    def __init__(self, hyper: DeepQHyperparameters, ticks: int = 0) -> None:
        self._hyper = hyper
        self.ticks = ticks
        self._raised_at: int | None = None

    @property
    def epsilon(self) -> float:
        """The share of random actions now."""
        hyper = self._hyper
        fall = (hyper.epsilon_initial - hyper.epsilon_final) / max(1, hyper.exploration_ticks)
        if self.ticks >= hyper.exploration_ticks:
            scheduled = hyper.epsilon_final
        else:
            scheduled = hyper.epsilon_initial - fall * self.ticks
        if self._raised_at is None:
            return scheduled
        return max(scheduled, hyper.epsilon_workload - abs(fall) * (self.ticks - self._raised_at))

    def advance(self) -> None:
        """Advance the schedule by a tick."""
        self.ticks += 1

    def announce(self) -> None:
        """Another workload has begun."""
        self._raised_at = self.ticks
