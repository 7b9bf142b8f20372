"""Work per second from rounds of different work amounts (WPS; Li's thesis, section 4.2.1, eq. 4.1-4.4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ascar import _core
from ascar.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ascar.pilot.presets import Goal
    from ascar.pilot.round import Round

__all__ = ["Speed", "speed_of"]

# Stopped at the first interval that is narrow enough, fewer rounds cover less than they promise
# (`benchmarks/pilot_stopping.py`); the thesis asks for 50 where it says that a result can be believed.
ROUNDS_MIN = 40


@dataclass(frozen=True, slots=True)
class Speed:
    """The speed of the stable phase.

    Attributes:
        work_per_s: v in eq. 4.4.
        ci_low: lower end of its interval; None where there is no honest one.
        ci_high: upper end, or None.
        confidence: of the interval.
        alpha_s: seconds that set-up, warm-up and cool-down add to a round; below zero where the first part of
            the work is faster, as into a cache.
        autocorrelation: lag 1, of what the line leaves unexplained, in the order of the rounds.
        rounds: rounds that the line rests on; those whose work alpha would have had time for are left out.
        reason: why there is no interval; empty where there is one.
    """

    work_per_s: float
    ci_low: float | None
    ci_high: float | None
    confidence: float
    alpha_s: float
    autocorrelation: float
    rounds: int
    reason: str = ""

    @property
    def ci_width_relative(self) -> float | None:
        """Width of the interval over the speed; None where there is none."""
        if self.ci_low is None or self.ci_high is None:
            return None
        return (self.ci_high - self.ci_low) / self.work_per_s

    @property
    def work_min(self) -> float:
        """The work that alpha would have had time for: rounds of less tell more of alpha than of speed."""
        return max(0.0, self.alpha_s * self.work_per_s)

    def meets(self, goal: Goal) -> bool:
        """Whether the interval is narrow enough, on rounds enough to stop by."""
        width = self.ci_width_relative
        return width is not None and width <= goal.interval_width and self.rounds >= ROUNDS_MIN

    def seconds_for(self, work_amount: float) -> float:
        """Predicted duration of a round (eq. 4.4)."""
        return self.alpha_s + work_amount / self.work_per_s


def speed_of(rounds: Sequence[Round], confidence: float = 0.95) -> Speed | None:
    """The speed that rounds of different work amounts tell; None where they make no rising line.

    Raises:
        InputError: a round did no work or took no time, or the confidence is impossible.
    """
    pairs = [(done.work_amount, done.seconds) for done in rounds if done.work_amount is not None]
    if len({amount for amount, _ in pairs}) < 2:
        return None
    work, seconds = np.array(pairs, np.float64).T
    try:
        found = _core.work_per_second(
            np.ascontiguousarray(work), np.ascontiguousarray(seconds), confidence=confidence
        )
    except ValueError as error:
        raise InputError(f"rounds: {error}") from error
    if not np.isfinite(found.speed) or found.speed <= 0:
        return None
    return Speed(
        work_per_s=found.speed,
        ci_low=found.ci_low,
        ci_high=found.ci_high,
        confidence=confidence,
        alpha_s=found.overhead_s,
        autocorrelation=found.autocorrelation,
        rounds=found.rounds,
        reason=found.reason or "",
    )
