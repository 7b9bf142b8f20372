"""Rules on trial before they are kept: the throughput must not fall below a floor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ascar.errors import InputError, Refused
from ascar.pilot import analyze
from ascar.render import number
from ascar.results.rule_deployment import FloorCheck
from ascar.sharp.deployment.naming import rules_id

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ascar.results.measurement import Measurement
    from ascar.rules import RuleSet
    from ascar.sharp.deployment.managed_system import ManagedSystem


@dataclass(frozen=True, slots=True)
class ThroughputFloor:
    """What the throughput under new rules must reach.

    Attributes:
        share: the share of the throughput before.
        settle_s: left out after the rules have changed.
        measure_s: the length of each of the two intervals.
    """

    share: float
    settle_s: float = 4.0
    measure_s: float = 10.0

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises:
            InputError: the share is not from 0 to 1.
        """
        if not 0 <= self.share <= 1:
            raise InputError(f"--floor = {self.share:g}: must be from 0% to 100%")

    def check(self, system: ManagedSystem, rules: RuleSet) -> FloorCheck | None:
        """Put rules on trial for an interval; at the end those from before are in force.

        Returns:
            None where the clients did nothing before.

        Raises:
            Refused: the throughput falls below the floor.
            MessagingError: a controller is lost, or does not do as it is told.
        """
        kept = system.in_force()
        before = system.collect(None if kept is None else kept.bare(), 0.0, self.measure_s)
        if not any(map(any, before.values())):
            return None
        try:
            system.try_out(rules)
            under = system.collect(rules.bare(), self.settle_s, self.measure_s)
        finally:
            system.back()
        was, now = _rate(before), _rate(under)
        if now.mean < self.share * was.mean:
            raise Refused(
                f"rules {rules_id(rules)}: {_shown(now)} on trial, {_shown(was)} before: below the floor of "
                f"{self.share:.0%}; the rules from before are in force again; leave these rules out, or "
                "lower --floor"
            )
        return FloorCheck(
            floor=self.share,
            before_mb_per_s=was.mean,
            before_low=was.ci_low,
            before_high=was.ci_high,
            under_mb_per_s=now.mean,
            under_low=now.ci_low,
            under_high=now.ci_high,
            ticks=now.n,
        )


def _rate(series: Mapping[str, Sequence[float]]) -> Measurement:
    """The total of all clients over an interval."""
    return analyze([sum(tick) for tick in zip(*series.values(), strict=True)], whole=True)


def _shown(rate: Measurement) -> str:
    between = "" if rate.ci_low is None else f" ({number(rate.ci_low)} to {number(rate.ci_high)})"
    return f"{number(rate.mean)} MB/s{between}"
