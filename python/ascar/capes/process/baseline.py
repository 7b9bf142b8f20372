"""The performance at the initial setting, for each workload."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ascar.pilot import analyze

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ascar.capes.axes import Setting
    from ascar.capes.policy import TickObservation

_TICKS_MAX = 600
_SETTLE_TICKS = 12
_EVERY = 10
_WORKLOADS_MAX = 32


class BaselineCollector:
    """Collects settled ticks at the initial setting, up to 600 for each workload.

    Args:
        initial: the setting.
        known: the ticks that were collected before.
    """

    def __init__(self, initial: Setting, known: Mapping[str, Sequence[float]] | None = None) -> None:
        self._initial = initial
        self.values: dict[str, list[float]] = {name: list(one) for name, one in (known or {}).items()}
        self._since = 0
        self._found: dict[str, tuple[int, dict[str, Any]]] = {}

    def take(self, seen: TickObservation, workload: str) -> None:
        """Take in a tick."""
        if seen.setting != self._initial:
            self._since = -_SETTLE_TICKS
            return
        self._since += 1
        if self._since < 0 or not math.isfinite(seen.performance):
            return
        if workload not in self.values and len(self.values) >= _WORKLOADS_MAX:
            self.values.pop(next(iter(self.values)))
        values = self.values.setdefault(workload, [])
        if len(values) < _TICKS_MAX:
            values.append(seen.performance)

    def document(self, workload: str, sign: int) -> dict[str, Any] | None:
        """Mean, limits of 95% and ticks, in the objective's units; None before the first tick."""
        values = self.values.get(workload)
        if not values:
            return None
        known = self._found.get(workload)
        if known is None or len(values) - known[0] >= min(_EVERY, known[0]):
            measured = analyze(values, whole=True)
            limits = [one if one is None else sign * one for one in (measured.ci_low, measured.ci_high)]
            low, high = limits if sign > 0 else reversed(limits)
            found = {"mean": sign * measured.mean, "low": low, "high": high, "ticks": len(values)}
            self._found[workload] = known = (len(values), found)
        return known[1]
