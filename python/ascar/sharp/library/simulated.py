"""The simulated cluster as a system at work: one that runs on and on, and is its own controllers."""

from __future__ import annotations

from statistics import fmean, pstdev
from typing import TYPE_CHECKING

from ascar.errors import InputError
from ascar.sharp.bench import merged
from ascar.sharp.library.observation import OBSERVED_S, observed_on
from ascar.sharp.rules import RuleSet
from ascar.simulation import Cluster

if TYPE_CHECKING:
    from ascar.objective import Objective
    from ascar.sharp.library.controllers import Controllers
    from ascar.simulation import Scenario

__all__ = ["METRICS", "SimulatedSystem"]

METRICS = frozenset(("throughput_mb_per_s", "tp", "stdev", "cv", "jain_index"))
"""What an interval of a running system tells: of throughput(client, second), section 3.1.5."""


class SimulatedSystem:
    """A simulated cluster that runs on and on; it is its own controllers.

    Args:
        scenario: what it is, and what it does; going on beyond its duration.
        objective: what will be asked of it.

    Raises:
        InputError: the objective names a metric that an interval does not tell.
    """

    def __init__(self, scenario: Scenario, objective: Objective) -> None:
        unknown = [name for name in objective.formula.names if name not in METRICS]
        if unknown:
            raise InputError(
                f"--objective names {unknown[0][:80]!r}; a running system tells {', '.join(sorted(METRICS))}"
            )
        self._cluster = Cluster(scenario)
        self._cluster.warm_up()
        self._in_force: RuleSet | None = None

    @property
    def controllers(self) -> Controllers:
        """Its controllers."""
        return self

    @property
    def in_force(self) -> RuleSet | None:
        """The rules that decide now."""
        return self._in_force

    @property
    def now_s(self) -> float:
        """Virtual seconds."""
        return self._cluster.time_s

    def deploy(self, rules: RuleSet | None) -> None:
        """Put rules in force on all streams, or the scenario's own control again."""
        self._cluster.deploy(None if rules is None else rules.bare().text())
        self._in_force = rules

    def stats(self) -> RuleSet | None:
        """The rules in force with what all streams have counted."""
        if self._in_force is None:
            return None
        used = [RuleSet.parse(text) for text in self._cluster.outcome().rules if text is not None]
        return merged(used) if used else self._in_force

    def observe(self, seconds: float = OBSERVED_S) -> dict[str, float]:
        """The features of the next seconds."""
        return observed_on(self._cluster, seconds)

    def measure(self, seconds: float) -> dict[str, float]:
        """The metrics of the next seconds, in whole ticks."""
        ticks = max(1, round(seconds / self._cluster.scenario.tick_s))
        self._cluster.advance(ticks)
        series = [one[-ticks:] for one in self._cluster.outcome().clients_mb_per_s]
        shares = [fmean(one) for one in series]
        readings = [value for one in series for value in one]
        tp, stdev = fmean(readings), pstdev(readings)
        squares = sum(one**2 for one in shares)
        return {
            "throughput_mb_per_s": sum(shares),
            "tp": tp,
            "stdev": stdev,
            "cv": stdev / tp if tp > 0 else 0.0,
            "jain_index": sum(shares) ** 2 / (len(shares) * squares) if squares > 0 else 0.0,
        }
