"""What a load leaves undone is charged to it: its rates count over the time that all of its work takes.

A load of a few seconds ends before the system has done what it accepted: pages are dirty, a log is not yet
checkpointed. A configuration that puts such work off looks fast while the load runs, and the work is done all
the same, only later. So after the load the system does it (`System.drain`), under the limits of the load, and

    charged rate = rate * load_s / (load_s + deferred_s)

where deferred_s are the seconds that this took. That is the rate at which a load could go on for ever if
nothing of the deferred work were done beside it; a system that does it beside the load at no cost is faster,
which only loads of several cycles of the deferred work show (`ascar.cycles`).

Charged are metrics that are rates, by their names: they end in `_per_s`; and `duration_s`, the time that a
command took for its work, which becomes longer by deferred_s. Latencies are not: no operation of the load
waited for what came after it. The seconds themselves are the metric `deferred_s`, for constraints such as
`deferred_s <= 2`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ascar.results.measurement import Series

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ascar.results.measurement import Readings

CHARGED = ("deferred_s", "load_s")
"""Metrics that every trial with deferred work has."""
DEFERRED = "deferred_"
"""The beginning of the names of the amounts that a load left undone."""
_RATE = "_per_s"
_DURATION = "duration_s"
_LIMIT_LOADS = 10
_LIMIT_MIN_S = 60.0


@dataclass(frozen=True, slots=True)
class Charge:
    """Work that a load left undone.

    Attributes:
        load_s: the run time of the load.
        left: what it left beyond what was there before it, by name with unit.
        tail_s: seconds that operations under way at its end took to end, while the system went on.
        owned: the share of all deferred work that the load left; the rest was there before.
        drain_s: seconds that doing all of it took.
    """

    load_s: float
    left: Mapping[str, float] = field(default_factory=dict[str, float])
    tail_s: float = 0.0
    owned: float = 1.0
    drain_s: float = 0.0

    @classmethod
    def of(cls, readings: Readings, before: Mapping[str, float], after: Mapping[str, float]) -> Charge:
        """The charge of a load, not yet drained.

        Args:
            readings: what it told.
            before: the deferred work before the load, by name.
            after: the deferred work after it.
        """
        left = {name: max(0.0, amount - before.get(name, 0.0)) for name, amount in after.items()}
        if not any(before.values()):
            return cls(readings.load_s, left, readings.tail_s)
        owned = max((left[name] / amount for name, amount in after.items() if amount > 0), default=0.0)
        return cls(readings.load_s, left, readings.tail_s, owned)

    @property
    def is_due(self) -> bool:
        """Whether there is something to drain: a system that names no deferred work has none."""
        return bool(self.left) and self.owned > 0

    @property
    def limit_s(self) -> float:
        """How long draining may take: a load that leaves ten times its own time of work measures little."""
        return max(_LIMIT_MIN_S, _LIMIT_LOADS * self.load_s)

    @property
    def deferred_s(self) -> float:
        """Seconds of work that the load has to answer for beside its own."""
        return self.tail_s + self.owned * self.drain_s if self.left else 0.0

    @property
    def factor(self) -> float:
        """The charged rates over the rates while the load ran."""
        whole_s = self.load_s + self.deferred_s
        return self.load_s / whole_s if self.load_s > 0 and whole_s > 0 else 1.0

    @property
    def metrics(self) -> dict[str, float]:
        """What was left, and the seconds of the load and of what it left; none where nothing is deferred."""
        if not self.left:
            return {}
        left = {f"{DEFERRED}{name}": amount for name, amount in self.left.items()}
        return {**left, "deferred_s": self.deferred_s, "load_s": self.load_s}

    def charged(self, readings: Readings) -> Readings:
        """The readings with every rate over the time of the load and of what it left."""
        factor = self.factor
        if factor == 1:
            return readings
        series = {
            name: Series(one.seconds, one.values * factor) if is_rate(name) else one
            for name, one in readings.series.items()
        }
        metrics = {
            name: value * factor if is_rate(name) else value for name, value in readings.metrics.items()
        }
        if _DURATION in metrics:
            metrics[_DURATION] += self.deferred_s
        return replace(readings, series=series, metrics=metrics)


def is_rate(name: str) -> bool:
    """Whether a metric is something a second, and so is charged."""
    return name.endswith(_RATE)


def deferred_share(metrics: Mapping[str, float]) -> float:
    """The share of a trial's time that went on what its load left; 0 where nothing was deferred."""
    deferred_s, load_s = metrics.get("deferred_s", 0.0), metrics.get("load_s", 0.0)
    return deferred_s / (load_s + deferred_s) if deferred_s > 0 else 0.0


def uncharged(metrics: Mapping[str, float]) -> float:
    """What a trial's rates are to be divided by for those while the load ran."""
    return 1.0 - deferred_share(metrics)


def charges(names: Iterable[str]) -> bool:
    """Whether a formula over these metrics feels the charge."""
    return any(is_rate(name) or name in (_DURATION, "deferred_s") for name in names)
