"""A visit: the ticks during which one setting is in force, its purpose and its ending."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ascar.capes.axes import Setting
    from ascar.capes.policy import TickObservation


class VisitPurpose(Enum):
    """What a visit is for."""

    MEASURE = "measure the setting"
    REST = "stay at the initial setting between two visits elsewhere"
    IDENTIFY = "find out which workload runs, at the setting where all workloads were seen"


class VisitEnding(Enum):
    """Why a visit ends."""

    COMPLETE = "enough ticks were measured"
    COSTLY = "it loses more than the budget allows"
    SHIFTED = "its indicators deviate from those measured here before"


@dataclass(slots=True)
class Visit:
    """The visit under way.

    Attributes:
        setting: the setting in force.
        wait_ticks: ticks from its beginning that do not count, because the change does not show yet.
        wanted_ticks: ticks to measure after these.
        purpose: the purpose of the visit.
        first: whether the setting was never visited before.
        stays: the number of consecutive times that the learner chose to stay.
        left: expected performance of the setting before; None where nothing was changed, or it is unknown.
        values: performance tick by tick; NaN where it was not measured.
        indicators: (indicators,) tick by tick, means over the nodes.
    """

    setting: Setting
    wait_ticks: int
    wanted_ticks: int
    purpose: VisitPurpose = VisitPurpose.MEASURE
    first: bool = False
    stays: int = 0
    left: float | None = None
    values: list[float] = field(default_factory=list[float])
    indicators: list[NDArray[np.float64]] = field(default_factory=list["NDArray[np.float64]"])

    def add(self, seen: TickObservation) -> None:
        """Add a tick."""
        self.values.append(seen.performance)
        self.indicators.append(node_means(seen))

    def restart(self, *, wait_ticks: int = 0) -> None:
        """Measure the same setting anew."""
        self.wait_ticks = wait_ticks
        self.values.clear()
        self.indicators.clear()

    @property
    def complete(self) -> bool:
        """Whether all wanted ticks were measured."""
        return len(self.values) >= self.wait_ticks + self.wanted_ticks


def node_means(seen: TickObservation) -> NDArray[np.float64]:
    """(indicators,): means over the nodes; 0 where no node has a value."""
    known = np.isfinite(seen.indicators)
    total = np.where(known, seen.indicators, 0).sum(0, dtype=np.float64)
    return total / np.maximum(known.sum(0), 1)
