"""A session: rounds until every performance indicator is known well enough (Li's thesis, section 4.2.3)."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ascar.errors import InputError
from ascar.pilot.findings import Finding, Ledger
from ascar.pilot.outlook import outlook_s
from ascar.pilot.speed import Speed, speed_of
from ascar.pilot.stopping import LOOK_GROWTH

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ascar.pilot.indicator import Indicator
    from ascar.pilot.presets import Goal
    from ascar.pilot.round import Round, Runner
    from ascar.pilot.work_amounts import WorkAmounts

__all__ = ["Limits", "OnRound", "Plan", "Session", "run_session"]


@dataclass(frozen=True, slots=True)
class Limits:
    """When a session ends at the latest.

    Attributes:
        session_s: what runs then is cut off.
        rounds_max: no more rounds than this.
    """

    session_s: float = 3600.0
    rounds_max: int = 10_000

    def __post_init__(self) -> None:
        """Check the limits.

        Raises:
            InputError: one of them leaves room for nothing.
        """
        if not self.session_s > 0:
            raise InputError(f"session limit = {self.session_s!r} s: must be above 0")
        if self.rounds_max < 1:
            raise InputError(f"rounds_max = {self.rounds_max!r}: must be at least 1")


@dataclass(frozen=True, slots=True)
class Plan:
    """What a session measures.

    Attributes:
        indicators: may be empty where only the speed of adjustable work is wanted.
        goal: says how many rounds there are at least, and what the speed must reach where it decides.
        work: the schedule of work amounts; None where the work cannot be adjusted.
        limits: when to end at the latest.
    """

    indicators: Sequence[Indicator]
    goal: Goal
    work: WorkAmounts | None = None
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        """Check the plan.

        Raises:
            InputError: nothing is measured, or two indicators have one name.
        """
        names = [indicator.name for indicator in self.indicators]
        if not names and self.work is None:
            raise InputError("nothing to measure: name a metric, or make the work amount adjustable")
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise InputError(f"indicator {twice[0]!r} is named twice: every indicator needs its own name")


@dataclass(frozen=True, slots=True)
class Session:
    """What a session knows: at its end, or after a round.

    Attributes:
        rounds: all of them, in order.
        used: indexes of the rounds that the findings rest on; short ones were set aside.
        findings: one an indicator.
        speed: work per second by the WPS method, where the work amount can be adjusted; else None.
        speed_decides: the goal is the speed's, because there are no unit readings.
        reached: every goal is reached.
        ended: why it ended, one line; empty while it goes on.
        seconds: how long it has taken.
        left_s: seconds that it may still take, as far as the intervals tell; None while they tell nothing.
    """

    rounds: tuple[Round, ...]
    used: tuple[int, ...]
    findings: tuple[Finding, ...]
    speed: Speed | None
    speed_decides: bool
    reached: bool
    ended: str
    seconds: float
    left_s: float | None


OnRound = Callable[[Session], None]
"""Told after each round what is known so far."""


@dataclass(slots=True)
class _Progress:
    """A session under way."""

    plan: Plan
    ledgers: list[Ledger]
    rounds: list[Round] = field(default_factory=list["Round"])
    used: list[int] = field(default_factory=list[int])
    speed: Speed | None = None
    looked_at: int = 0

    @property
    def speed_decides(self) -> bool:
        return self.plan.work is not None and not any(ledger.has_units for ledger in self.ledgers)

    def take(self, done: Round) -> None:
        """Take in a round; a short one is kept but not used."""
        work = self.plan.work
        self.rounds.append(done)
        if work is not None and not work.learn(done):
            return
        self.used.append(len(self.rounds) - 1)
        for ledger in self.ledgers:
            ledger.add(done)
        if work is not None:
            self.speed = speed_of([self.rounds[index] for index in self.used], self.plan.goal.confidence)
            if self.speed is not None and self.speed.ci_low is not None and self.speed_decides:
                work.avoid(self.speed.work_min)

    def next_work(self) -> float | None:
        """The work amount of the next round; None where the work cannot be adjusted."""
        work = self.plan.work
        if work is None:
            return None
        if self.speed_decides:
            return work.next()
        spent_s = sum(self.rounds[index].seconds for index in self.used)
        return work.next_for(outlook_s(self.findings(), spent_s) or spent_s)

    def findings(self, *, last: bool = False) -> tuple[Finding, ...]:
        return tuple(ledger.finding(last=last) for ledger in self.ledgers)

    def reached(self, findings: Sequence[Finding]) -> bool:
        """Whether every goal is reached.

        Where the speed decides, readings that come one a round do not: rounds differ in their work amount.
        """
        if len(self.used) < self.plan.goal.rounds_min:
            return False
        if self.speed_decides:
            # Looks are few, for the same reason as those at readings.
            if self.speed is None or len(self.used) < LOOK_GROWTH * self.looked_at:
                return False
            self.looked_at = len(self.used)
            return self.speed.meets(self.plan.goal)
        wanted = [finding for finding in findings if finding.indicator.goal is not None]
        return bool(wanted) and all(finding.reached for finding in wanted)


def run_session(
    run: Runner,
    plan: Plan,
    on_round: OnRound | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Session:
    """Run rounds until every goal is reached or a limit is.

    Args:
        run: carries out one round.
        plan: what is measured, how well, and for how long at most.
        on_round: told after each round what is known so far.
        clock: seconds, monotonic.
    """
    progress = _Progress(plan, [Ledger(indicator) for indicator in plan.indicators])
    limits, start_s = plan.limits, clock()
    while True:
        done = run(progress.next_work(), max(0.0, limits.session_s - (clock() - start_s)))
        if done is not None:
            progress.take(done)
        elapsed_s = clock() - start_s
        findings = progress.findings()
        reached = progress.reached(findings)
        if reached:
            ended = "every goal is reached"
        elif done is None or elapsed_s >= limits.session_s:
            ended = f"the limit of {limits.session_s:g} s was reached"
        elif len(progress.rounds) >= limits.rounds_max:
            ended = f"the limit of {limits.rounds_max} rounds was reached"
        else:
            ended = ""
        session = _session(progress, reached, ended, elapsed_s)
        if on_round is not None:
            on_round(session)
        if ended:
            return session


def _session(progress: _Progress, reached: bool, ended: str, elapsed_s: float) -> Session:
    # At the end nothing is left out; when a goal was reached, what is reported is what was looked at.
    findings = progress.findings(last=bool(ended) and not reached)
    left_s = None
    if not ended:
        goals: tuple[Finding, ...] = () if progress.speed_decides else findings
        left_s = outlook_s(
            goals, elapsed_s, progress.speed if progress.speed_decides else None, progress.plan.goal
        )
        if left_s is not None:
            left_s = min(left_s, max(0.0, progress.plan.limits.session_s - elapsed_s))
    return Session(
        rounds=tuple(progress.rounds),
        used=tuple(progress.used),
        findings=findings,
        speed=progress.speed,
        speed_decides=progress.speed_decides,
        reached=reached,
        ended=ended,
        seconds=elapsed_s,
        left_s=left_s,
    )
