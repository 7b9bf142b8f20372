"""The sweep: every configuration of a space, which makes a dataset; the offline loop without a search."""

from __future__ import annotations

import math
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import msgspec

from ascar.errors import InputError
from ascar.evaluation import Clock, Evaluator
from ascar.outcome import Event, Failure, Outcome, Purpose, Trial, TrialState, Verdict
from ascar.space import study_space
from ascar.targets import open_target
from ascar.workloads import Workload, open_workload

if TYPE_CHECKING:
    from ascar.history import History, Run
    from ascar.outcome import Listener
    from ascar.space import Configuration, Space
    from ascar.study import Study
    from ascar.targets import Target

__all__ = ["CONFIGURATIONS_MAX", "Plan", "in_cheap_order", "sweep", "sweep_study"]

CONFIGURATIONS_MAX = 100_000
"""More than this nobody measures one by one: at three seconds each it is four days."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How much of it.

    Attributes:
        replicates: how often each configuration is measured.
        budget_s: seconds for all of it; None: until it is done. The study's own budget is for a search.
    """

    replicates: int = 1
    budget_s: float | None = None


def ignore(event: Event) -> None:
    """A listener for those who want none."""


def sweep_study(study: Study) -> Study:
    """The study under which a sweep is kept: of its own name, so that a tuning run is never taken for one."""
    return msgspec.structs.replace(study, name=f"{study.name}-sweep")


def sweep(
    study: Study,
    history: History,
    plan: Plan = Plan(),
    *,
    resume: bool = False,
    listener: Listener = ignore,
    clock: Clock | None = None,
) -> Outcome:
    """Measure every valid configuration of a study's space, in an order that makes few expensive changes.

    Replicates are made pass by pass, so that a drift of the machine does not pass for a difference between
    configurations.

    Args:
        study: what is measured, under which load.
        history: where every trial is kept.
        plan: how much of it.
        resume: go on with the latest unfinished sweep of this study.
        listener: told of everything that happens.
        clock: seconds, monotonic; None: the target's own where it has one (`simulated`), else the machine's.

    Returns:
        What was seen; `stopped` is empty where nothing is left to measure. No gain is claimed: the best of
        many looks better than it is.

    Raises:
        InputError: the study, or the machine, does not allow it; nothing was touched.
        Refused: a safety rule said no.
        KeyboardInterrupt: interrupted; completed trials are kept, the machine is put back.
    """
    study = sweep_study(study)
    target = open_target(study.target)
    space = study_space(study, target.space)
    configurations = in_cheap_order(space)
    workload = _workload(study, target)
    ticks: Clock = clock or getattr(target, "clock", time.monotonic)
    with (
        target,
        history.resume(study) if resume else history.begin(study, space, _valid_for(target, workload)) as run,
    ):
        walk = _Walk(study, run, Evaluator(study, target, workload, listener, ticks), plan, ticks)
        walk.recall(len(configurations))
        stopped = walk.through(configurations * plan.replicates)
        outcome = walk.outcome(space, stopped)
        if not stopped:
            run.finish(outcome)
    listener(Event("study-finished", outcome.to_dict()))
    return outcome


def in_cheap_order(space: Space) -> list[Configuration]:
    """Every valid configuration; the parameters that are expensive to change vary slowest (Cao 9.4).

    Raises:
        InputError: there are more than CONFIGURATIONS_MAX, or endlessly many.
    """
    count = space.count()
    if count is None or count > CONFIGURATIONS_MAX:
        number = "endlessly many" if count is None else f"{count:,}"
        raise InputError(
            f"the space has {number} valid configurations, a sweep takes at most {CONFIGURATIONS_MAX:,}; "
            "restrict it with space.parameters, space.pin or space.allow_cost"
        )
    ranked = sorted(space.parameters, key=lambda parameter: -parameter.cost.rank)
    places = {
        parameter.name: {value: index for index, value in enumerate(space.domain(parameter.name).each())}
        for parameter in ranked
    }

    def place(configuration: Configuration) -> tuple[int, ...]:
        return tuple(
            places[parameter.name][configuration[parameter.name]] if parameter.name in configuration else -1
            for parameter in ranked
        )

    return sorted(space.enumerate(), key=place)


def _workload(study: Study, target: Target) -> Workload:
    if not study.workload and isinstance(target, Workload):
        return target
    return open_workload(study.workload, target.default_workload)


def _valid_for(target: Target, workload: Workload) -> dict[str, Any]:
    """What the results hold for: the machine, the system under tuning, the load."""
    return {**target.describe(), "workload": dict(workload.describe())}


@dataclass(slots=True)
class _Walk:
    """The state of one sweep."""

    study: Study
    run: Run
    evaluator: Evaluator
    plan: Plan
    clock: Clock
    trials: list[Trial] = field(default_factory=list[Trial])
    start_s: float = 0.0
    spent_before_s: float = 0.0

    def recall(self, configurations: int) -> None:
        """Take up what an earlier, interrupted sweep measured."""
        self.start_s = self.clock()
        self.trials = self.run.trials(readings=False)
        self.spent_before_s = sum(sum(trial.stage_s.values()) for trial in self.trials)
        self.evaluator.listener(
            Event(
                "study-started",
                {
                    "study": self.study.name,
                    "run_id": self.run.id,
                    "budget_s": self.plan.budget_s,
                    "valid_configurations": configurations,
                    "planned_trials": configurations * self.plan.replicates,
                    "trials_recalled": len(self.trials),
                },
            )
        )

    def through(self, configurations: list[Configuration]) -> str:
        """Measure what is left; returns why it ended early, empty where it did not."""
        done = Counter(
            trial.configuration for trial in self.trials if trial.state is not TrialState.INTERRUPTED
        )
        for configuration in self.run.crashed():
            if self.run.crash_count(configuration) >= 2:
                self._quarantine(configuration)
                done[configuration] = len(configurations)
        for configuration in configurations:
            if done[configuration] > 0:
                done[configuration] -= 1
            elif self._left_s() <= 0:
                return "the time budget is spent"
            else:
                self._try(configuration)
        return ""

    def outcome(self, space: Space, stopped: str) -> Outcome:
        """What was seen, in one value."""
        usable = [trial for trial in self.trials if trial.usable]
        sign = self.study.objective.sign
        stage_s: dict[str, float] = {}
        for trial in self.trials:
            for stage, seconds in trial.stage_s.items():
                stage_s[stage] = stage_s.get(stage, 0.0) + seconds
        elapsed_s = self.spent_before_s + self.clock() - self.start_s
        stage_s["other"] = max(0.0, elapsed_s - sum(stage_s.values()))
        default = space.default()
        return Outcome(
            run_id=self.run.id,
            study=self.study.name,
            best=max(usable, key=lambda trial: sign * (trial.score or 0.0), default=None),
            default=next((trial for trial in usable if trial.configuration == default), None),
            recommended=default,
            verdict=Verdict("not-verified", note="a sweep measures every configuration and claims no gain"),
            stage_s=dict(stage_s),
            counts=Counter(trial.state for trial in self.trials),
            stopped=stopped,
            machine=self.run.machine,
        )

    def _try(self, configuration: Configuration) -> None:
        trial = Trial(self.run.next_number(), configuration, Purpose.SWEEP, TrialState.RUNNING)
        self.run.start_trial(trial)
        self.evaluator.listener(
            Event("trial-started", {"trial": trial.number, "left_s": self._left_s()}, trial)
        )
        try:
            trial = self.evaluator.evaluate(trial)
        except BaseException:
            self.run.finish_trial(replace(trial, state=TrialState.INTERRUPTED))
            raise
        self.run.finish_trial(trial)
        self.trials.append(trial)
        self.evaluator.listener(
            Event("trial-finished", {"trial": trial.number, "left_s": self._left_s()}, trial)
        )

    def _quarantine(self, configuration: Configuration) -> None:
        """A configuration during which the machine went down twice is not tried a third time."""
        failure = Failure("machine", "the machine went down twice while this configuration was in force")
        number = self.run.next_number()
        trial = Trial(number, configuration, Purpose.SWEEP, TrialState.QUARANTINED, failure=failure)
        self.run.start_trial(trial)
        self.run.finish_trial(trial)
        self.trials.append(trial)

    def _left_s(self) -> float:
        """Of this process's budget; what was measured before an interruption costs nothing now."""
        return math.inf if self.plan.budget_s is None else self.plan.budget_s - (self.clock() - self.start_s)
