"""The performance measured at each setting, and the best one."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_TICKS_MIN, _SETTLE_TICKS, _SETTINGS_MAX = 10, 3, 10_000
Items = tuple[tuple[str, Any], ...]


@dataclass(slots=True)
class _Seen:
    ticks: int = 0
    mean: float = 0.0
    squares: float = 0.0

    def add(self, value: float) -> None:
        """Welford's update."""
        self.ticks += 1
        off = value - self.mean
        self.mean += off / self.ticks
        self.squares += off * (value - self.mean)

    @property
    def error(self) -> float:
        """Standard error of the mean, ticks taken for independent."""
        return math.sqrt(self.squares / (self.ticks - 1) / self.ticks)


@dataclass(slots=True)
class Record:
    """Ticks by setting; the first three after each change do not count.

    Attributes:
        sign: +1 where more is better, -1 where less is.
    """

    sign: int
    _seen: dict[Items, _Seen] = field(default_factory=dict[Items, _Seen])
    _now: Items = ()
    _since: int = 0

    def take(self, tick: int, setting: Mapping[str, Any], value: float | None) -> None:
        """A tick under a setting; None where it has no value."""
        now = tuple(sorted(setting.items()))
        if now != self._now:
            self._now, self._since = now, tick
        if value is None or tick < self._since + _SETTLE_TICKS:
            return
        if now in self._seen or len(self._seen) < _SETTINGS_MAX:
            self._seen.setdefault(now, _Seen()).add(value)

    def best(self) -> dict[str, Any] | None:
        """The setting of the best mean, less two standard errors; None before one was there for ten ticks."""
        known = {now: one for now, one in self._seen.items() if one.ticks >= _TICKS_MIN}
        if not known:
            return None
        return dict(max(known, key=lambda now: self.sign * known[now].mean - 2 * known[now].error))
