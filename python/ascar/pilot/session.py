"""A session: rounds until every performance indicator is known well enough (Li's thesis, section 4.2.3).

`crates/pilot` plans and judges the rounds; the clock, and what carries the rounds out, are here.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ascar._core import PilotSession
from ascar.errors import InputError
from ascar.pilot.findings import Finding, finding_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ascar._core import Speed, WorkAmounts
    from ascar.pilot.indicator import Indicator
    from ascar.pilot.presets import Goal
    from ascar.pilot.round import Round, Runner, WorkUnits


@dataclass(frozen=True, slots=True)
class Limits:
    """When a session ends at the latest.

    Attributes:
        session_s: the length of the session; a round that runs at its end is cut off.
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
class MeasurementPlan:
    """What a session measures.

    Attributes:
        indicators: may be empty where only the speed of adjustable work is wanted.
        goal: says how many rounds there are at least, and what the speed must reach where it decides.
        work: the schedule of work amounts; None where the work cannot be adjusted.
        limits: the limits of the session.
        speed: the precision that the speed must reach also where unit readings decide; None: the speed
            decides only where there are none.
    """

    indicators: Sequence[Indicator]
    goal: Goal
    work: WorkAmounts | None = None
    limits: Limits = field(default_factory=Limits)
    speed: Goal | None = None

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
        findings: the finding on each indicator.
        speed: work per second by the WPS method, where the work amount can be adjusted; else None.
        speed_decides: the goal is the speed's, because there are no unit readings.
        reached: every goal is reached.
        ended: why it ended, one line; empty while it goes on.
        seconds: the length of the session so far.
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

    plan: MeasurementPlan
    session: PilotSession
    rounds: list[Round] = field(default_factory=list["Round"])
    used: list[int] = field(default_factory=list[int])
    kinds: list[dict[str, int]] = field(default_factory=list[dict[str, int]])

    @classmethod
    def of(cls, plan: MeasurementPlan) -> _Progress:
        indicators = [indicator.values for indicator in plan.indicators]
        limits = plan.limits
        return cls(
            plan,
            PilotSession(
                *(indicators, plan.goal.values, plan.work, limits.session_s, limits.rounds_max),
                None if plan.speed is None else plan.speed.values,
            ),
            # Number 0 is what has no name: units of rounds that told no kind.
            kinds=[{"": 0} for _ in indicators],
        )

    def take(self, done: Round) -> None:
        """Take in a round; a short one is kept but not used."""
        names = [indicator.name for indicator in self.plan.indicators]
        self.rounds.append(done)
        if self.session.take(
            done.seconds,
            None if self.plan.work is None else done.work_amount,
            [done.readings.get(name) for name in names],
            [done.unit_readings.get(name, ()) for name in names],
            [self._units(index, done.units.get(name)) for index, name in enumerate(names)]
            if done.units
            else (),
        ):
            self.used.append(len(self.rounds) - 1)

    def _units(self, index: int, units: WorkUnits | None) -> tuple[list[int], list[float]]:
        """Units with numbers for the names of their kinds."""
        if units is None:
            return [], []
        known = self.kinds[index]
        return [known.setdefault(kind, len(known)) for kind in units.kinds], list(units.work)

    def known(self, seconds: float) -> Session:
        session = self.session
        findings = zip(self.plan.indicators, session.findings, map(list, self.kinds), strict=True)
        return Session(
            rounds=tuple(self.rounds),
            used=tuple(self.used),
            findings=tuple(finding_of(*one) for one in findings),
            speed=session.speed,
            speed_decides=session.speed_decides,
            reached=session.reached,
            ended=session.why,
            seconds=seconds,
            left_s=session.left_s,
        )


def run_session(
    run: Runner,
    plan: MeasurementPlan,
    on_round: OnRound | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Session:
    """Run rounds until every goal is reached or a limit is.

    Args:
        run: carries out one round.
        plan: the plan of the session.
        on_round: told after each round what is known so far.
        clock: seconds, monotonic.

    Raises:
        InputError: a round gave what cannot be: a reading that is not of its indicator's kind.
    """
    progress, start_s = _Progress.of(plan), clock()
    while True:
        left_s = max(0.0, plan.limits.session_s - (clock() - start_s))
        done = run(progress.session.next_work(), left_s)
        if done is not None:
            progress.take(done)
        elapsed_s = clock() - start_s
        ended = progress.session.judge(elapsed_s, done is None)
        if on_round is not None or ended:
            known = progress.known(elapsed_s)
            if on_round is not None:
                on_round(known)
            if ended:
                return known
