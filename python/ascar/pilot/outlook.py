"""How long a session will still take: intervals narrow with the square root of what was measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascar.pilot.speed import ROUNDS_MIN
from ascar.pilot.stopping import INDEPENDENT_MIN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ascar.pilot.findings import Finding
    from ascar.pilot.presets import Goal
    from ascar.pilot.speed import Speed

__all__ = ["outlook_s"]


def outlook_s(
    findings: Sequence[Finding], spent_s: float, speed: Speed | None = None, speed_goal: Goal | None = None
) -> float | None:
    """Seconds until the last goal is reached; None while that cannot be told.

    Args:
        findings: those whose goals decide.
        spent_s: seconds of measuring that they rest on.
        speed: the speed, where its goal decides.
        speed_goal: that goal.
    """
    factors: list[float] = []
    for finding in findings:
        goal, found = finding.indicator.goal, finding.measurement
        if goal is None:
            continue
        if found is None or found.ci_width_relative is None or found.n == 0:
            return None
        factors.append((found.ci_width_relative / goal.interval_width) ** 2)
        factors.append(goal.readings_min / found.n)
        factors.append(INDEPENDENT_MIN / max(found.independent_samples, 1))
    if speed is not None and speed_goal is not None:
        if speed.ci_width_relative is None:
            return None
        factors.append((speed.ci_width_relative / speed_goal.interval_width) ** 2)
        factors.append(ROUNDS_MIN / max(speed.rounds, 1))
    if not factors:
        return None
    return spent_s * max(0.0, max(factors) - 1.0)
