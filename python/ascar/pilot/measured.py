"""What measuring a command or a function came to: a session with its plan, and its result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ascar.errors import WorkError
from ascar.pilot.resources import bottlenecks
from ascar.pilot.verdict import verdict_on
from ascar.results.encode import extended
from ascar.results.measure import (
    IndicatorMean,
    MeasuredRound,
    MeasuredSource,
    MeasureResult,
    Overhead,
    ResourceUse,
    SpeedMean,
    UnitKindMean,
    UsedUp,
)
from ascar.results.measurement import Measurement, RequestedGoal

if TYPE_CHECKING:
    from ascar._core import Speed
    from ascar.pilot.findings import Finding
    from ascar.pilot.presets import Goal
    from ascar.pilot.resources import Resources
    from ascar.pilot.session import MeasurementPlan, Session
    from ascar.pilot.verdict import GoalVerdict
    from ascar.results.machine import MachineRecord

SPEED = "work_per_s"


def judged(verdict: GoalVerdict, goal: Goal) -> dict[str, Any]:
    """A verdict and its goal, by the keys that `JudgedMeasurement` adds to `Measurement`."""
    return {"verdict": verdict.word, "verdict_line": verdict.line, "goal": requested(goal)}


def requested(goal: Goal) -> RequestedGoal:
    """A goal as results have it."""
    return RequestedGoal(
        interval_width_relative=goal.interval_width,
        readings_min=goal.readings_min,
        confidence=goal.confidence,
    )


def speed_measurement(speed: Speed) -> Measurement:
    """A WPS speed in the form of every other mean; its readings are rounds."""
    return Measurement(
        mean=speed.work_per_s,
        ci_low=speed.ci_low,
        ci_high=speed.ci_high,
        confidence=speed.confidence,
        n=speed.rounds,
        independent_samples=speed.rounds,
        autocorrelation=speed.autocorrelation,
        subsession_size=1,
        stable_start=0,
        stable_end=speed.rounds,
        method="work per second",
        reason=speed.reason,
    )


@dataclass(frozen=True, slots=True)
class MeasuredCommand:
    """A command of a session.

    Attributes:
        name: the name of the source; empty where there is one command.
        words: the program and its arguments, or the name of a Python function.
        node: the name of the node that it ran on; None: this machine.
    """

    name: str
    words: tuple[str, ...]
    node: str | None


@dataclass(frozen=True, slots=True)
class Ran:
    """What is known of a session before it ends.

    Attributes:
        commands: the commands of a round.
        start_cost_s: the time that starting a program adds to a round; None if it is unknown.
        machines: the machines that they run on, this one first.
    """

    commands: tuple[MeasuredCommand, ...]
    start_cost_s: float | None
    machines: tuple[MachineRecord, ...]

    def measured(self, plan: MeasurementPlan, session: Session, used: Resources) -> Measured:
        """What the session came to."""
        several = self.commands if self.commands[0].name else ()
        words = () if several else self.commands[0].words
        return Measured(words, plan, session, used, self.start_cost_s, self.machines, several)


@dataclass(frozen=True, slots=True)
class Measured:
    """What a session came to.

    Attributes:
        command: the program and its arguments, or the name of a Python function.
        plan: the plan of the measurement.
        session: the session's findings.
        used: the resources that the machine used during the session.
        start_cost_s: the time that starting a program adds to a round; None if it is unknown, or if no
            program is started.
        machines: the machines that it was measured on, this one first.
        sources: the commands of a round where there are several; else none.
    """

    command: tuple[str, ...]
    plan: MeasurementPlan
    session: Session
    used: Resources
    start_cost_s: float | None
    machines: tuple[MachineRecord, ...] = ()
    sources: tuple[MeasuredCommand, ...] = ()

    @property
    def findings(self) -> list[Finding]:
        """What is known of each indicator that was read at all."""
        return [finding for finding in self.session.findings if finding.measurement is not None]

    @property
    def means(self) -> dict[str, Measurement]:
        """Every mean by name, the one that decided first."""
        found = {
            finding.indicator.name: finding.measurement
            for finding in self.findings
            if finding.measurement is not None
        }
        speed = {} if self.session.speed is None else {SPEED: speed_measurement(self.session.speed)}
        return {**speed, **found} if self.session.speed_decides else {**found, **speed}

    def goal(self, name: str) -> Goal:
        """The goal of a mean: its own, or the session's."""
        goals = {finding.indicator.name: finding.indicator.goal for finding in self.session.findings}
        return (self.plan.speed if name == SPEED else goals.get(name)) or self.plan.goal

    @property
    def between_rounds(self) -> float:
        """The share of the session in which no round ran."""
        ran_s = sum(done.seconds for done in self.session.rounds)
        return max(0.0, 1 - ran_s / self.session.seconds) if self.session.seconds > 0 else 0.0

    def verdict(self, name: str, measurement: Measurement) -> GoalVerdict:
        """A mean judged by its own goal, or by the session's."""
        return verdict_on(measurement, self.goal(name))

    def word(self, name: str) -> str:
        """The verdict in a word; "reported" for what decides nothing."""
        goals = {finding.indicator.name: finding.indicator.goal for finding in self.session.findings}
        decides = self.plan.speed if name == SPEED else goals.get(name)
        if self.session.speed_decides:
            decides = name == SPEED
        return self.verdict(name, self.means[name]).word if decides else "reported"

    def check(self) -> None:
        """Nothing, where something can be told.

        Raises:
            WorkError: no round counts, or those that count tell no mean.
        """
        session = self.session
        if not session.used:
            raise WorkError(
                f"no round was long enough to be used: {session.ended}; allow more work, a longer --budget, "
                "or a shorter --short-round"
                if session.rounds
                else f"no round ended: {session.ended}; raise --budget"
            )
        if not self.means:
            raise WorkError(
                f"{len(session.used)} counted rounds are too few to determine a speed: {session.ended}; "
                "raise that limit"
            )

    def result(self) -> MeasureResult:
        """The result as a value."""
        session = self.session
        name, main = next(iter(self.means.items()))
        return extended(
            MeasureResult,
            main,
            command=self.command,
            sources=tuple(
                MeasuredSource(name=one.name, node=one.node, command=one.words) for one in self.sources
            ),
            machines=self.machines,
            name=name,
            **judged(self.verdict(name, main), self.goal(name)),
            reached=session.reached,
            ended=session.ended,
            seconds=session.seconds,
            indicators=tuple(self._indicator(finding) for finding in self.findings),
            speed=None if session.speed is None else _speed(session.speed),
            rounds=self._rounds(),
            bottlenecks=used_up(self.used),
            resources=_resources(self.used),
            overhead=Overhead(
                own_cores=self.used.own_cores,
                between_rounds=self.between_rounds,
                start_cost_s=self.start_cost_s,
            ),
        )

    def _rounds(self) -> tuple[MeasuredRound, ...]:
        used = set(self.session.used)
        return tuple(
            MeasuredRound(
                seconds=done.seconds,
                work_amount=done.work_amount,
                used=index in used,
                readings=dict(done.readings),
                unit_readings={metric: len(values) for metric, values in done.unit_readings.items()},
            )
            for index, done in enumerate(self.session.rounds)
        )

    def _indicator(self, finding: Finding) -> IndicatorMean:
        assert finding.measurement is not None, "findings without a mean are left out"
        name = finding.indicator.name
        return extended(
            IndicatorMean,
            finding.measurement,
            name=name,
            kind=finding.indicator.kind.value,
            decides=finding.indicator.goal is not None and not self.session.speed_decides,
            basis=finding.basis,
            readings=finding.readings,
            removed=finding.removed,
            rounds_unstable=finding.rounds_unstable,
            verdict=self.verdict(name, finding.measurement).word,
            goal=None if finding.indicator.goal is None else requested(finding.indicator.goal),
            units=tuple(
                extended(UnitKindMean, one.measurement, name=one.name, share=one.share)
                for one in finding.kinds
                if one.measurement is not None
            ),
        )


def used_up(used: Resources) -> tuple[UsedUp, ...]:
    """The resources that limited a result."""
    return tuple(UsedUp(resource=one.resource, used=one.used) for one in bottlenecks(used))


def _resources(used: Resources) -> ResourceUse:
    return ResourceUse(
        cpu=used.cpu,
        cpu_busiest=used.cpu_busiest,
        programs_cores=used.programs_cores,
        cores=used.cores,
        run_queue_mean=used.run_queue_mean,
        memory_available_min=used.memory_available_min,
        disk=dict(used.disk),
        network=dict(used.network),
        pressure=dict(used.pressure),
    )


def _speed(speed: Speed) -> SpeedMean:
    return SpeedMean(
        work_per_s=speed.work_per_s,
        ci_low=speed.ci_low,
        ci_high=speed.ci_high,
        confidence=speed.confidence,
        alpha_s=speed.alpha_s,
        rounds=speed.rounds,
        reason=speed.reason,
    )
