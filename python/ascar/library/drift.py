"""How far the indicators of a running system have moved, in standard deviations of what they do anyway."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Standard deviation of an indicator from visit to visit, before anything is known, and at least.
_DRIFT_FIRST, _DRIFT_WEIGHT, _DRIFT_MIN = 0.02, 2.0, 0.005


class IndicatorSummary(NamedTuple):
    """The load signature of a running system: its indicators at one setting, for a while.

    Attributes:
        mean: (indicators,), over ticks and nodes, on scales from 0 to 1.
        variance: (indicators,), of that mean.
    """

    mean: NDArray[np.float64]
    variance: NDArray[np.float64]

    @classmethod
    def of(cls, ticks: NDArray[np.float64]) -> IndicatorSummary:
        """The summary of the ticks' means over nodes, (ticks, indicators)."""
        count = len(ticks)
        if count < 2:
            return cls(ticks.mean(0), np.full(ticks.shape[1], np.inf))
        return cls(ticks.mean(0), ticks.var(0, ddof=1) / count)


class Drift:
    """What indicators move by from one visit of a setting to the next while the workload stays.

    Learnt over all workloads, with the noise of the ticks taken off.

    Attributes:
        squares: (indicators,), their squared changes summed; None before the first.
        count: the number of summed changes.
    """

    def __init__(self) -> None:
        self.squares: NDArray[np.float64] | None = None
        self.count = 0.0

    def learn(self, before: IndicatorSummary, now: IndicatorSummary) -> bool:
        """Learn from two visits of one setting under one workload; False where the noise is not known."""
        if not (np.isfinite(now.variance) & np.isfinite(before.variance)).all():
            return False
        moved = (now.mean - before.mean) ** 2 - now.variance - before.variance
        if self.squares is None:
            self.squares = np.zeros(len(now.mean))
        self.squares += np.maximum(moved, 0) / 2
        self.count += 1
        return True

    def distance(self, before: IndicatorSummary, now: IndicatorSummary) -> float:
        """In standard deviations, over the eighth of the indicators that differs most."""
        squares = 0.0 if self.squares is None else self.squares
        drift = (_DRIFT_WEIGHT * _DRIFT_FIRST**2 + squares) / (_DRIFT_WEIGHT + self.count)
        variance = np.maximum(drift, _DRIFT_MIN**2) * 2 + before.variance + now.variance
        apart = np.sort((before.mean - now.mean) ** 2 / variance)
        return float(np.sqrt(apart[-max(1, len(apart) // 8) :].mean()))
