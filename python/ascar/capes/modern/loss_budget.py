"""The loss budget: how much performance exploration may lose."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_WINDOW_TICKS = 60
_SURE, _HIDDEN = 2.0, 3.0
_LAST, _FAIR, _RECOVERED = 2, 0.05, 0.5


class LossBudget:
    """A budget: in any minute, the loss against the initial setting stays below a share of its performance.

    What was lost counts as it was measured, less what noise alone would show; gains do not make up for
    losses. Where ticks are so noisy that a minute's mean hides more than the share (three of its standard
    errors), the budget is that: less could not be told from nothing, and keeps a learner where it began.

    Args:
        share: the share of a minute's performance at the initial setting.
    """

    def __init__(self, share: float) -> None:
        self._budget_ticks = share * _WINDOW_TICKS
        self._shortfalls: deque[float] = deque(maxlen=_WINDOW_TICKS)
        self._base: float | None = None
        self._coming = 0.0

    def spent(self, values: NDArray[np.float64], noise: float, tail: int = 0) -> None:
        """Account for a visit that has ended.

        Args:
            values: the finite values of the visit's ticks.
            noise: standard deviation of a tick, as a share.
            tail: ticks that it may yet cost as much as at last: a change shows late.
        """
        count = len(values)
        short = max(0.0, self._short(values) - noise * count**0.5) if count else 0.0
        self._shortfalls.extend([short / max(count, 1)] * count)
        self._coming = tail * self._lately(values, noise)

    def exceeded(self, values: NDArray[np.float64], noise: float, tail: int = 0) -> bool:
        """Whether a visit under way has cost more than is left; then it ends now.

        Args:
            values: the finite values of the visit's ticks so far.
            noise: standard deviation of a tick, as a share.
            tail: ticks that it will cost as much as at last after it has ended.
        """
        count = len(values)
        if not count or self._base is None or self._base <= 0:
            return False
        short = self._short(values) - _SURE * noise * count**0.5 + tail * self._lately(values, noise)
        return short > 0 and self._kept(count) + short > self._budget(noise)

    def allowed(
        self, low: NDArray[np.float64], base: float, ticks: int, noise: float = 0.0
    ) -> NDArray[np.bool_]:
        """Which settings fit into the budget.

        Args:
            low: a cautious estimate of each setting's performance.
            base: performance of the initial setting.
            ticks: the number of ticks of a visit.
            noise: standard deviation of a tick, as a share.
        """
        self._base = base
        if base <= 0:
            return np.ones(len(low), bool)
        short = np.clip(1 - low / base, 0.0, 1.0) * ticks
        return self._kept(ticks) + short <= self._budget(noise)

    def fair(self, left: float | None) -> bool:
        """Whether a setting left is about as good as the initial one: then it explains no loss after it."""
        return left is not None and self._base is not None and left >= (1 - _FAIR) * self._base

    def recovered(self) -> bool:
        """Whether at most half of the budget is spent; before, nothing is visited for the first time."""
        return self._kept(0) + self._coming <= _RECOVERED * self._budget_ticks

    def _budget(self, noise: float) -> float:
        """The budget in ticks of the initial setting."""
        return max(self._budget_ticks, _HIDDEN * noise * _WINDOW_TICKS**0.5)

    def _lately(self, values: NDArray[np.float64], noise: float) -> float:
        """The loss of a tick at the end of a visit."""
        last = values[-_LAST:]
        return (
            max(0.0, self._short(last) / len(last) - _SURE * noise / len(last) ** 0.5) if len(last) else 0.0
        )

    def _short(self, values: NDArray[np.float64]) -> float:
        base = self._base
        return 0.0 if base is None or base <= 0 else float((1 - values / base).sum())

    def _kept(self, ticks: int) -> float:
        """The loss so far in the minute that ends with a visit."""
        kept = max(0, _WINDOW_TICKS - ticks)
        return sum(list(self._shortfalls)[-kept:]) if kept else 0.0
