"""One trial: change -> fill -> settle -> load -> drain -> degraded -> measurement."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ascar import _core
from ascar.abandonment import AbandonmentRule
from ascar.charging import Charge
from ascar.degraded import degraded_metrics, degraded_names
from ascar.errors import ExpressionError, InputError, StageFailed
from ascar.events import Event
from ascar.objective import unmet
from ascar.pilot import PRESETS, Goal, analyze, verdict_on
from ascar.results.measurement import Measurement, Series
from ascar.results.trial import Abandonment, Failure, Trial, TrialState
from ascar.study import duration
from ascar.systems import Guarded
from ascar.systems.asking import apply_checked, drain_checked, sample_checked, settle_checked
from ascar.workspace import LoadTiming

if TYPE_CHECKING:
    from collections.abc import Generator

    from ascar.abandonment import AbandonmentFinding, BestTrial
    from ascar.events import Listener
    from ascar.objective import Objective
    from ascar.results.measurement import Readings
    from ascar.results.trial import Change
    from ascar.study import Study
    from ascar.systems import Sample, Target
    from ascar.workloads import Workload

Clock = Callable[[], float]

# What readings' instants may be off by as binary fractions.
_INSTANT_S = 1e-6


def goal_of(study: Study) -> Goal:
    """The preset's goal with what the study overrides."""
    wanted = study.measurement
    preset = PRESETS[wanted.preset]
    return Goal(
        interval_width=wanted.interval_width or preset.interval_width,
        readings_min=wanted.readings_min or preset.readings_min,
        confidence=wanted.confidence,
    )


@dataclass(slots=True)
class _Stages:
    """Seconds by stage, and the stage that is under way."""

    clock: Clock
    stage_s: dict[str, float] = field(default_factory=dict[str, float])
    current: str = "change"

    @contextmanager
    def stage(self, name: str) -> Generator[None]:
        self.current = name
        start_s = self.clock()
        try:
            yield
        finally:
            self.stage_s[name] = self.stage_s.get(name, 0.0) + self.clock() - start_s


@dataclass(frozen=True, slots=True)
class LoadLimit:
    """What bounds a load beside the study's own lengths.

    Attributes:
        load_min_s: the least length, where that is longer than the study's: of the last comparison, so many
            cycles of the deferred work.
        load_max_s: the greatest length.
        enough_s: the load ends after so long, if it can, once it has its least length.
        ends_at_s: the load ends at this time of the clock, once it has its least length.
    """

    load_min_s: float = 0.0
    load_max_s: float = math.inf
    enough_s: float = math.inf
    ends_at_s: float = math.inf


@dataclass(frozen=True, slots=True)
class Evaluator:
    """Evaluates configurations of one study on one target under one load.

    Attributes:
        study: says what is good enough.
        target: entered.
        workload: the load.
        listener: told of every reading.
        clock: seconds, monotonic.
        limit: what bounds the load beside the study's own lengths.
    """

    study: Study
    target: Target
    workload: Workload
    listener: Listener
    clock: Clock = time.monotonic
    limit: LoadLimit = LoadLimit()

    def evaluate(self, trial: Trial, rival: BestTrial | None = None) -> Trial:
        """Carry out a running trial; a failing stage makes it a failed one, never an exception.

        Args:
            trial: number, configuration, purpose, and the metrics that are known beforehand.
            rival: the load is ended as soon as the trial is worse than this; None: it is carried through.

        Raises:
            InputError: the objective or a constraint names a metric that the load does not report.
        """
        stages = _Stages(self.clock)
        trial = replace(trial, started_at=datetime.now(UTC).isoformat(timespec="milliseconds"))
        change: Change | None = None
        watch = _Watch(self, trial.number, None if rival is None else AbandonmentRule(rival), trial.metrics)
        try:
            with stages.stage("change"):
                change = apply_checked(self.target, trial.configuration)
            watch.known = {**trial.metrics, "change_s": change.total_s}
            if not change.filled:
                with stages.stage("fill"):
                    self.workload.prepare(self.target.workspace)
            with stages.stage("settle"):
                settle_checked(self.target)
            before = sample_checked(self.target)
            with stages.stage("load"):
                readings = self.workload.run(self.target.workspace, watch.pace())
            self._check_guard()
            after = sample_checked(self.target)
            charge = self._drained(Charge.of(readings, before.deferred, after.deferred), stages)
            totals = _spent(before, sample_checked(self.target) if charge.drain_s else after)
            if watch.finding is None:
                watch.known = {**watch.known, **self._degraded(stages)}
            with stages.stage("measurement"):
                readings = charge.charged(readings)
                known = {**watch.known, **after.gauges, **charge.metrics}
                trial = replace(
                    trial, series=dict(readings.series), metrics={**known, **self._metrics(readings, totals)}
                )
                if rival is not None and watch.finding is not None:
                    trial = self._abandoned(trial, watch.finding, rival, stages.stage_s["load"])
                else:
                    trial = self._measure(trial, readings)
        except StageFailed as failure:
            violation = self._violation
            failed = (
                Failure(stages.current, failure.message, failure.stderr)
                if violation is None
                else Failure("guard", violation)
            )
            trial = replace(trial, state=TrialState.FAILED, failure=failed)
        return replace(trial, change=change, stage_s=dict(stages.stage_s))

    @property
    def _violation(self) -> str | None:
        """The limit of the guard that ended the trial, or None."""
        return self.target.violation if isinstance(self.target, Guarded) else None

    def _check_guard(self) -> None:
        """See that what was measured is the configuration's.

        Raises:
            StageFailed: the guard put the old values back meanwhile.
        """
        if self._violation is not None:
            raise StageFailed("guard", self._violation)

    def _drained(self, charge: Charge, stages: _Stages) -> Charge:
        """Have the system do what the load left, also an abandoned one, so that the next begins even."""
        if not self.study.measurement.charge_deferred:
            return dataclasses.replace(charge, tail_s=0.0)
        if not charge.is_due:
            return charge
        with stages.stage("drain"):
            drain_checked(self.target, charge.limit_s)
        return dataclasses.replace(charge, drain_s=stages.stage_s["drain"])

    def _degraded(self, stages: _Stages) -> dict[str, float]:
        """What clients notice of a failure, where the study has one."""
        if not degraded_names(self.target, ()):
            return {}
        reading_s = duration("measurement.reading", self.study.measurement.reading)
        with stages.stage("degraded"):
            return degraded_metrics(self.target, self.workload, reading_s, self.clock)

    def _metrics(self, readings: Readings, spent: Mapping[str, float]) -> dict[str, float]:
        """Every metric of a run: of series, the mean of the stable phase."""
        confidence = self.study.measurement.confidence
        means = {
            name: analyze(series.values, confidence).mean
            for name, series in readings.series.items()
            if len(series) > 0
        }
        return {**spent, **readings.metrics, **means}

    def _measure(self, trial: Trial, readings: Readings) -> Trial:
        """A score with its interval, and the constraints that the trial breaks."""
        try:
            measurement = _score(
                self.study.objective, readings, trial.metrics, self.study.measurement.confidence
            )
            broken = unmet(self.study.constraints, trial.metrics)
            broken += self.study.guard.broken(self.target.space, {**trial.configuration, **trial.metrics})
            self._check_targets(trial.metrics)
        except ExpressionError as error:
            raise InputError(error.message) from error
        return replace(
            trial, state=TrialState.COMPLETE, score=measurement.mean, measurement=measurement, unmet=broken
        )

    def _abandoned(self, trial: Trial, finding: AbandonmentFinding, rival: BestTrial, load_s: float) -> Trial:
        """A trial whose load was ended early: its score is that of the readings that decided it, charged."""
        known = finding.measurement
        steady = slice(known.stable_start, known.stable_end)
        scores = self.study.objective.series(trial.series, trial.metrics)
        factor = 1.0 if scores is None or not known.mean else float(scores.values[steady].mean()) / known.mean
        measurement = _scaled(known, factor)
        return replace(
            trial,
            state=TrialState.PRUNED,
            score=measurement.mean,
            measurement=measurement,
            abandonment=Abandonment(
                rival=rival.number,
                after_s=finding.seconds,
                worse_relative=finding.worse_relative,
                worse_least=finding.worse_least,
                saved_s=max(0.0, rival.load_s - load_s),
            ),
        )

    def _check_targets(self, metrics: Mapping[str, float]) -> None:
        """Find a wrong target of `[stop]` at the first trial, not when the search asks for it."""
        for text, target in self.study.stop_targets.items():
            missing = sorted(set(target.names) - set(metrics))
            if missing:
                raise ExpressionError(
                    f"stop.target = {text!r}: needs the metric {missing[0]!r}, which this load does not "
                    f"report; it reports {', '.join(sorted(metrics))}"
                )


@dataclass(slots=True)
class _Watch:
    """What is asked after a reading: may the load end, for it is known well enough or is worse?

    Attributes:
        evaluator: the evaluator, whose study gives the precision to reach.
        trial: number of the trial under way.
        rule: compares with the best so far; None: the trial is carried through.
        known: metrics that are known while the load runs: what the change of configuration took.
        finding: why it was abandoned; None as long as it was not.
        looked_at: the number of readings at the last look at the precision.
    """

    evaluator: Evaluator
    trial: int
    rule: AbandonmentRule | None
    known: Mapping[str, float]
    finding: AbandonmentFinding | None = None
    looked_at: int = 0

    def pace(self) -> LoadTiming:
        """How long the load runs; a trial that may be abandoned is asked about from its first reading on."""
        wanted = self.evaluator.study.measurement
        return LoadTiming(
            load_min_s=self._load_min_s,
            load_max_s=max(
                self._load_min_s,
                min(duration("measurement.load_max", wanted.load_max), self.evaluator.limit.load_max_s),
            ),
            reading_s=duration("measurement.reading", wanted.reading),
            may_end=self.may_end,
            ask_from_s=None if self.rule is None and not isinstance(self.evaluator.target, Guarded) else 0.0,
        )

    def may_end(self, series: Mapping[str, Series]) -> bool:
        """Whether the load may end."""
        study, target = self.evaluator.study, self.evaluator.target
        if isinstance(target, Guarded) and target.violation is not None:
            return True
        scores = study.objective.series(series, self.known)
        if scores is None or len(scores) == 0:
            return False
        second, score = float(scores.seconds[-1]), float(scores.values[-1])
        self.evaluator.listener(Event("reading", {"trial": self.trial, "second": second, "score": score}))
        goal = goal_of(study)
        if (
            second + _INSTANT_S >= self._load_min_s
            and len(scores) >= goal.readings_min
            and self._reached(scores, goal)
        ):
            return True
        if self.rule is not None:
            self.finding = self.rule.look(scores)
        limit = self.evaluator.limit
        late = self.evaluator.clock() >= limit.ends_at_s or second + _INSTANT_S >= limit.enough_s
        return self.finding is not None or (late and second + _INSTANT_S >= self._load_min_s)

    def _reached(self, scores: Series, goal: Goal) -> bool:
        """Whether the mean is known well enough; looks are few, since each may find it so by chance."""
        if not _core.pilot_look_is_due(len(scores), self.looked_at):
            return False
        self.looked_at = len(scores)
        return verdict_on(analyze(scores.values, goal.confidence), goal).word == "reached"

    @property
    def _load_min_s(self) -> float:
        wanted_s = duration("measurement.load_min", self.evaluator.study.measurement.load_min)
        return max(wanted_s, self.evaluator.limit.load_min_s)


def _spent(before: Sample, after: Sample) -> dict[str, float]:
    """What the system's counters counted between two moments."""
    return {
        name: end - before.counters[name] for name, end in after.counters.items() if name in before.counters
    }


def _scaled(measurement: Measurement, factor: float) -> Measurement:
    """A measurement in another unit."""
    ends = (measurement.ci_low, measurement.ci_high)
    low, high = (None if end is None else end * factor for end in ends)
    return replace(measurement, mean=measurement.mean * factor, ci_low=low, ci_high=high)


def _score(
    objective: Objective, readings: Readings, metrics: Mapping[str, float], confidence: float
) -> Measurement:
    """The objective's mean over its unit readings, or its one value over the whole run."""
    scores = objective.series(readings.series, metrics)
    if scores is None or len(scores) == 0:
        return Measurement.single(objective.score(metrics), confidence)
    return analyze(scores.values, confidence)
