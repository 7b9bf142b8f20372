"""What the daemon needs of a system at work, and the simulated cluster as one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ascar.sharp.matching.observation import observed_on
from ascar.sharp.running import RunningSystem, SimulatedRunning

if TYPE_CHECKING:
    from ascar.rules import RuleSet
    from ascar.simulation import Scenario


class WatchableSystem(RunningSystem, Protocol):
    """A system at work, whose load can be observed, and whose rules can be taken off."""

    @property
    def time_s(self) -> float:
        """Seconds that have passed."""
        ...

    def observe(self, seconds: float) -> dict[str, float]:
        """The features of what it does from now on, as `workload_features` gives them.

        Raises:
            NothingDone: it did nothing.
        """
        ...

    def take_off(self) -> None:
        """Do without rules from now on; those that were kept are kept no more.

        Raises:
            WorkError: a controller does not say so.
        """
        ...

    def look_again(self) -> None:
        """Others may have changed the rules: those in force are asked for anew.

        Raises:
            WorkError: a controller is lost.
        """
        ...


class SimulatedClusterSystem(SimulatedRunning):
    """A simulated cluster that runs on and on, as fast as it can.

    Args:
        scenario: the scenario, which goes on beyond its duration.
        rules: kept at first.
    """

    def __init__(self, scenario: Scenario, rules: RuleSet | None = None) -> None:
        super().__init__(scenario, rules)

    def observe(self, seconds: float) -> dict[str, float]:
        """The features of the next virtual seconds."""
        return observed_on(self._cluster, seconds)

    def take_off(self) -> None:
        """The scenario's own control again."""
        self._kept, self._trial = None, None
        self._follow(None)

    def look_again(self) -> None:
        """Nobody else can change them."""
