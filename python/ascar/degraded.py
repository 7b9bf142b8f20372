"""The load once more while a part of the system fails and comes back: what its clients notice of that."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ascar.errors import StageFailed
from ascar.systems import Degradable
from ascar.systems.asking import degrade_checked, recover_checked, repair_checked
from ascar.workspace import LoadTiming

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from ascar.results.measurement import Series
    from ascar.systems import Target
    from ascar.workloads import Workload

DEGRADED = "degraded_"
"""What the names of the load's metrics begin with in that time."""
RECOVERY = "recovery_s"
"""The metric: seconds from the repair until nothing is missing, or until the study waits no longer."""


def degraded_names(target: Target, reported: Collection[str]) -> frozenset[str]:
    """The metrics of a failure, of a load that reports these; none where the study has no failure."""
    if not isinstance(target, Degradable) or not target.degraded_s:
        return frozenset()
    return frozenset({RECOVERY, *(f"{DEGRADED}{name}" for name in reported)})


def degraded_metrics(
    target: Target, workload: Workload, reading_s: float, clock: Callable[[], float] = time.monotonic
) -> dict[str, float]:
    """Run the load while a part fails and, from half its time on, comes back; wait until all is as before.

    Args:
        target: a configuration is in force, and no load runs.
        workload: the load.
        reading_s: time between its unit readings; the part fails after the first one.
        clock: seconds, monotonic.

    Returns:
        The load's metrics over all of that time, and how long the recovery took; empty where the study has
        no failure.

    Raises:
        StageFailed: the load fails, ends before anything does, or the part does not come back.
    """
    if not isinstance(target, Degradable) or not target.degraded_s:
        return {}
    failure = _Failure(target, target.degraded_s / 2, clock)
    length = LoadTiming(target.degraded_s, target.degraded_s, reading_s, failure.look, ask_from_s=0.0)
    readings = workload.run(target.workspace, length)
    repaired_s = failure.repaired()
    recover_checked(target)
    means = {name: float(series.values.mean()) for name, series in readings.series.items() if len(series) > 0}
    told = {f"{DEGRADED}{name}": value for name, value in {**means, **readings.metrics}.items()}
    return {**told, RECOVERY: clock() - repaired_s}


@dataclass(slots=True)
class _Failure:
    """Fails and repairs once each, while the load is read; the load goes on."""

    target: Degradable
    repair_after_s: float
    clock: Callable[[], float]
    has_failed: bool = False
    repaired_s: float | None = None

    def look(self, series: Mapping[str, Series]) -> bool:
        """Do what it is time for."""
        latest_s = max((float(one.seconds[-1]) for one in series.values() if len(one) > 0), default=0.0)
        if not self.has_failed:
            self.has_failed = True
            degrade_checked(self.target)
        elif latest_s >= self.repair_after_s:
            self.repaired()
        return False

    def repaired(self) -> float:
        """The time of the repair, which is now if it was not before: the load may have hung meanwhile."""
        if not self.has_failed:
            raise StageFailed("degraded", "the load ended before anything could fail: it gave no reading")
        if self.repaired_s is None:
            repair_checked(self.target)
            self.repaired_s = self.clock()
        return self.repaired_s
