"""The service level while learning: how much may be lost to trying things out."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Guard"]

_WINDOW_TICKS = 60


class Guard:
    """A budget: in any minute the shortfall against the initial setting stays below a share of it.

    Args:
        share: of a minute's performance under the initial setting.
    """

    def __init__(self, share: float) -> None:
        self._budget_ticks = share * _WINDOW_TICKS
        self._shortfalls: deque[float] = deque(maxlen=_WINDOW_TICKS)
        self._base: float | None = None

    def spent(self, performance: float, ticks: int) -> None:
        """So many ticks were spent at a setting of that performance."""
        base = self._base
        short = 0.0 if base is None or base <= 0 else max(0.0, 1 - performance / base)
        self._shortfalls.extend([short] * ticks)

    def allowed(self, low: NDArray[np.float64], base: float, ticks: int) -> NDArray[np.bool_]:
        """Which settings fit into the budget.

        Args:
            low: a cautious estimate of each setting's performance.
            base: performance of the initial setting.
            ticks: that a visit takes.
        """
        self._base = base
        if base <= 0:
            return np.ones(len(low), bool)
        # Of the minute that ends with the visit.
        kept = max(0, _WINDOW_TICKS - ticks)
        already = sum(list(self._shortfalls)[-kept:]) if kept else 0.0
        short = np.clip(1 - low / base, 0.0, 1.0) * ticks
        return already + short <= self._budget_ticks
