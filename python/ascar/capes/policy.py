"""A policy: each tick it observes, and answers with the setting from now on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ascar.capes.axes import Setting


@dataclass(frozen=True, slots=True, eq=False)
class TickObservation:
    """One sampling tick.

    Attributes:
        tick: the number of the tick; numbers increase and may have gaps.
        performance: the objective's value, more is better; NaN where it was not measured.
        indicators: float32 (nodes, indicators); NaN where a value is missing.
        setting: the setting in force during the tick.
    """

    tick: int
    performance: float
    indicators: NDArray[np.float32]
    setting: Setting


class Policy(Protocol):
    """A policy chooses a setting once a tick."""

    def decide(self, seen: TickObservation, /) -> Setting:
        """The setting that is in force from now on."""
        ...

    def announce(self, workload: str, /) -> None:
        """Another workload has begun (Li 5.1.6); its name, where one is known."""
        ...
