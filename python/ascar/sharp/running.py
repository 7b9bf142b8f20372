"""A system at work whose rules can be changed: what is needed of it, and the simulated one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ascar.sharp.deployment.managed_system import interval_metrics
from ascar.simulation import INDICATORS, Cluster

if TYPE_CHECKING:
    from ascar.rules import RuleSet
    from ascar.simulation import Scenario

_RATES = [INDICATORS.index(name) for name in ("read_mb_per_s", "write_mb_per_s")]


class RunningSystem(Protocol):
    """Rules are kept, or on trial above those that are kept."""

    def in_force(self) -> RuleSet | None:
        """The rules that are kept, with their use where it is known; None without rules."""
        ...

    def try_out(self, rules: RuleSet) -> None:
        """Put rules in force on trial.

        Raises:
            WorkError: they cannot be; those that are kept are in force.
        """
        ...

    def back(self) -> None:
        """End a trial: the rules that are kept are in force.

        Raises:
            WorkError: a controller does not say so.
        """
        ...

    def keep(self) -> None:
        """End a trial: its rules are kept.

        Raises:
            WorkError: a controller does not keep them.
        """
        ...

    def measure(self, rules: RuleSet | None, settle_s: float, measure_s: float) -> dict[str, float]:
        """What the next seconds bring under rules that are in force, the first of them left out.

        Raises:
            WorkError: there is no reading, or other rules were in force.
        """
        ...

    def collect(
        self, rules: RuleSet | None, settle_s: float, measure_s: float, *, going_on: bool = False
    ) -> dict[str, list[float]]:
        """Throughput by client in MB/s, a value a tick, under rules that are in force.

        Args:
            rules: the rules in force.
            settle_s: left out at first.
            measure_s: the length of the measurement.
            going_on: whether it goes on where the last call ended.

        Raises:
            WorkError: there is no reading, or other rules were in force.
        """
        ...


class TickedSystem(RunningSystem, Protocol):
    """A system that learns for long: its trials can be renewed."""

    @property
    def time_s(self) -> float:
        """Seconds of the system that have passed."""
        ...

    def renew(self) -> None:
        """Let the trial go on for as long again as it was given.

        Raises:
            WorkError: a controller does not; none follows the rules any more.
        """
        ...

    def close(self) -> None:
        """End a trial, and leave the system."""
        ...


class SimulatedRunning:
    """A simulated cluster that runs on and on, as fast as it can.

    Args:
        scenario: the scenario, which goes on beyond its duration.
        rules: kept at first.
    """

    def __init__(self, scenario: Scenario, rules: RuleSet | None = None) -> None:
        self._cluster = Cluster(scenario)
        self._cluster.warm_up()
        self._tick_s = scenario.tick_s
        self._servers = scenario.server_count
        self._kept: RuleSet | None = rules
        self._trial: RuleSet | None = None
        self._follow(rules)

    @property
    def time_s(self) -> float:
        """Virtual seconds."""
        return self._cluster.time_s

    def in_force(self) -> RuleSet | None:
        """The rules that are kept."""
        return self._kept

    def try_out(self, rules: RuleSet) -> None:
        """Put rules in force on trial."""
        self._follow(rules)
        self._trial = rules

    def back(self) -> None:
        """Put back the rules that are kept."""
        if self._trial is not None:
            self._follow(self._kept)
            self._trial = None

    def keep(self) -> None:
        """Keep the rules on trial."""
        assert self._trial is not None, "rules are on trial"
        self._kept, self._trial = self._trial, None

    def renew(self) -> None:
        """Nothing: trials do not end by themselves."""

    def close(self) -> None:
        """End a trial."""
        self.back()

    def measure(self, rules: RuleSet | None, settle_s: float, measure_s: float) -> dict[str, float]:
        """What the next virtual seconds bring."""
        return interval_metrics(self.collect(rules, settle_s, measure_s))

    def collect(
        self, rules: RuleSet | None, settle_s: float, measure_s: float, *, going_on: bool = False
    ) -> dict[str, list[float]]:
        """Throughput by client, a value a tick, of the next virtual seconds."""
        assert rules == (self._kept if self._trial is None else self._trial), "these rules are in force"
        settle = 0 if going_on else round(settle_s / self._tick_s)
        wanted = max(1, round(measure_s / self._tick_s))
        self._cluster.advance(settle)
        columns: list[list[float]] = []
        for _ in range(wanted):
            rates = self._cluster.step()[:, _RATES].sum(axis=1)
            columns.append(rates.reshape(-1, self._servers).sum(axis=1).tolist())
        return {f"client-{at}": list(one) for at, one in enumerate(zip(*columns, strict=True))}

    def _follow(self, rules: RuleSet | None) -> None:
        self._cluster.deploy(None)  # windows begin anew: see `Plane.follow`
        self._cluster.deploy(None if rules is None else rules.bare().text())
