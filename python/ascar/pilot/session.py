"""A session: rounds until every performance indicator is known well enough (Li's thesis, section 4.2.3)."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ascar.errors import InputError
from ascar.pilot.findings import Finding, Speed, find, speed_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ascar.pilot.indicator import Indicator
    from ascar.pilot.presets import Goal
    from ascar.pilot.round import Round, Runner
    from ascar.pilot.work_amounts import WorkAmounts

__all__ = ["Limits", "Session", "run_session"]


@dataclass(frozen=True, slots=True)
class Limits:
    """When a session ends at the latest.

    Attributes:
        session_s: no round starts later than this.
        rounds_max: and none after so many.
        rounds_min: nor does it end before so many, however good the numbers look.
    """

    session_s: float = 3600.0
    rounds_max: int = 10_000
    rounds_min: int = 1


@dataclass(frozen=True, slots=True)
class Session:
    """What a session found.

    Attributes:
        rounds: all of them, in order.
        used: indexes of the rounds that the findings rest on; short ones were set aside.
        findings: one an indicator.
        speed: work per second by the WPS method, where the work amount could be adjusted; else None.
        reached: whether every goal was reached; otherwise a limit ended the session.
        ended: why it ended, one line.
        seconds: how long it took.
    """

    rounds: tuple[Round, ...]
    used: tuple[int, ...]
    findings: tuple[Finding, ...]
    speed: Speed | None
    reached: bool
    ended: str
    seconds: float


@dataclass(slots=True)
class _Progress:
    rounds: list[Round] = field(default_factory=list["Round"])
    used: list[int] = field(default_factory=list[int])

    def usable(self) -> list[Round]:
        return [self.rounds[index] for index in self.used]


def run_session(
    run: Runner,
    indicators: Sequence[Indicator],
    *,
    work: WorkAmounts | None = None,
    speed_goal: Goal | None = None,
    limits: Limits | None = None,
    on_round: Callable[[Round, Sequence[Finding], Speed | None], None] | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Session:
    """Run rounds until every goal is reached or a limit is.

    Args:
        run: carries out one round.
        indicators: what is measured; may be empty where only the speed of adjustable work is wanted.
        work: the schedule of work amounts; None where the work cannot be adjusted.
        speed_goal: what the WPS speed must reach; None where it decides nothing.
        limits: when to end at the latest.
        on_round: told after each round what is known so far.
        clock: seconds, monotonic.

    Raises:
        InputError: nothing is measured.
    """
    limits = limits or Limits()
    if not indicators and work is None:
        raise InputError("nothing to measure: name a metric, or make the work amount adjustable")
    start_s, progress = clock(), _Progress()
    findings: tuple[Finding, ...] = ()
    speed: Speed | None = None
    reached, ended = False, ""
    while not ended:
        done = run(None if work is None else work.next())
        progress.rounds.append(done)
        if work is None or work.learn(done):
            progress.used.append(len(progress.rounds) - 1)
        findings = tuple(find(indicator, progress.usable()) for indicator in indicators)
        if work is not None:
            speed = speed_of(progress.usable())
            _drop_dominated(progress, work, speed)
        if on_round is not None:
            on_round(done, findings, speed)
        reached = len(progress.rounds) >= limits.rounds_min and _reached(findings, speed, speed_goal)
        ended = _reason_to_end(reached, len(progress.rounds), clock() - start_s, limits)
    return Session(
        tuple(progress.rounds), tuple(progress.used), findings, speed, reached, ended, clock() - start_s
    )


def _reached(findings: Sequence[Finding], speed: Speed | None, speed_goal: Goal | None) -> bool:
    if speed_goal is not None and (speed is None or not speed.meets(speed_goal)):
        return False
    wanted = [finding for finding in findings if finding.indicator.goal is not None]
    return all(finding.reached for finding in wanted) and bool(wanted or speed_goal)


def _reason_to_end(reached: bool, rounds: int, elapsed_s: float, limits: Limits) -> str:
    if reached:
        return "every goal is reached"
    if elapsed_s >= limits.session_s:
        return f"the session's limit of {limits.session_s:g} s is reached"
    if rounds >= limits.rounds_max:
        return f"the limit of {limits.rounds_max} rounds is reached"
    return ""


def _drop_dominated(progress: _Progress, work: WorkAmounts, speed: Speed | None) -> None:
    """Leave out rounds whose work the non-stable phases would have had time for (end of section 4.2.1).

    Alpha in eq. 4.4 is a time: what is compared with a work amount is alpha times the speed.
    """
    if speed is None or speed.alpha_s <= 0:
        return
    least = speed.alpha_s * speed.work_per_s
    kept = [index for index in progress.used if (progress.rounds[index].work_amount or 0.0) >= least]
    if len(kept) >= _ROUNDS_MIN:
        progress.used = kept
        work.raise_low(least)


# Fewer rounds than this make no line; they are then all kept.
_ROUNDS_MIN = 4
