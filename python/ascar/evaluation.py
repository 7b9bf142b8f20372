"""One trial: change -> fill -> settle -> load -> measurement."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ascar.errors import ExpressionError, InputError, StageFailed
from ascar.measurement import Measurement, Series
from ascar.objective import unmet
from ascar.outcome import Event, Failure, Trial, TrialState
from ascar.pilot import PRESETS, Goal, analyze
from ascar.study import duration
from ascar.workspace import Pace

if TYPE_CHECKING:
    from collections.abc import Generator

    from ascar.measurement import Readings
    from ascar.objective import Objective
    from ascar.outcome import Listener
    from ascar.study import Study
    from ascar.targets import Target
    from ascar.workloads import Workload
    from ascar.workspace import Change

__all__ = ["Clock", "Evaluator", "goal_of"]

Clock = Callable[[], float]


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
class Evaluator:
    """Evaluates configurations of one study on one target under one load.

    Attributes:
        study: says what is good enough.
        target: entered.
        workload: the load.
        listener: told of every reading.
        clock: seconds, monotonic.
    """

    study: Study
    target: Target
    workload: Workload
    listener: Listener
    clock: Clock = time.monotonic

    def evaluate(self, trial: Trial) -> Trial:
        """Carry out a running trial; a failing stage makes it a failed one, never an exception.

        Raises:
            InputError: the objective or a constraint names a metric that the load does not report.
        """
        stages = _Stages(self.clock)
        trial = replace(trial, started_at=datetime.now(UTC).isoformat(timespec="milliseconds"))
        change: Change | None = None
        try:
            with stages.stage("change"):
                change = self.target.apply(trial.configuration)
            if not change.filled:
                with stages.stage("fill"):
                    self.workload.prepare(self.target.workspace)
            with stages.stage("settle"):
                self.target.settle()
            before = self.target.counters()
            with stages.stage("load"):
                readings = self.workload.run(self.target.workspace, self._pace(trial))
            after = self.target.counters()
            with stages.stage("measurement"):
                spent = {name: after[name] - before[name] for name in after if name in before}
                trial = self._measure(trial, readings, {**spent, "change_s": change.total_s})
        except StageFailed as failure:
            trial = replace(
                trial,
                state=TrialState.FAILED,
                failure=Failure(stages.current, failure.message, failure.stderr),
            )
        return replace(trial, change=change, stage_s=dict(stages.stage_s))

    def _pace(self, trial: Trial) -> Pace:
        wanted, goal, objective = self.study.measurement, goal_of(self.study), self.study.objective

        def enough(series: Mapping[str, Series]) -> bool:
            scores = objective.series(series, {})
            if scores is None or len(scores) == 0:
                return False
            self.listener(
                Event(
                    "reading",
                    {
                        "trial": trial.number,
                        "second": float(scores.seconds[-1]),
                        "score": float(scores.values[-1]),
                    },
                )
            )
            return len(scores) >= goal.readings_min and goal.met_by(analyze(scores.values, goal.confidence))

        return Pace(
            load_min_s=duration("measurement.load_min", wanted.load_min),
            load_max_s=duration("measurement.load_max", wanted.load_max),
            reading_s=duration("measurement.reading", wanted.reading),
            enough=enough,
        )

    def _measure(self, trial: Trial, readings: Readings, spent: Mapping[str, float]) -> Trial:
        """Readings to metrics, a score with its interval, and the constraints it breaks."""
        confidence = self.study.measurement.confidence
        means = {
            name: analyze(series.values, confidence).mean
            for name, series in readings.series.items()
            if len(series) > 0
        }
        metrics = {**spent, **readings.metrics, **means}
        try:
            measurement = _score(self.study.objective, readings, metrics, confidence)
            broken = unmet(self.study.constraints, metrics)
        except ExpressionError as error:
            raise InputError(error.message) from error
        return replace(
            trial,
            state=TrialState.COMPLETE,
            score=measurement.mean,
            measurement=measurement,
            metrics=metrics,
            series=dict(readings.series),
            unmet=broken,
        )


def _score(
    objective: Objective, readings: Readings, metrics: Mapping[str, float], confidence: float
) -> Measurement:
    """The objective's mean over its unit readings, or its one value over the whole run."""
    scores = objective.series(readings.series, metrics)
    if scores is None or len(scores) == 0:
        return Measurement.single(objective.score(metrics), confidence)
    return analyze(scores.values, confidence)
