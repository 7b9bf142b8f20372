"""The offline loop: space -> optimizer -> target -> workload -> pilot -> history, then the verification."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from statistics import median
from typing import TYPE_CHECKING, Any

from ascar.errors import Exhausted, WorkError
from ascar.evaluation import Clock, Evaluator
from ascar.optimizers import Evaluation, open_optimizer
from ascar.optimizers.recommendation import recommend
from ascar.outcome import Event, Failure, Outcome, Purpose, Trial, TrialState, Verdict
from ascar.space import study_space
from ascar.targets import open_target
from ascar.verification import Plan, plan, verify
from ascar.workloads import Workload, open_workload

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ascar.history import History, Run
    from ascar.optimizers import Optimizer
    from ascar.outcome import Listener
    from ascar.space import Configuration, Space
    from ascar.study import Study
    from ascar.targets import Target

__all__ = ["tune"]

# Two runs of the default before the search: one alone would hide a first run that is unlike all others.
_DEFAULT_RUNS = 2
# The search never leaves less than this share of the budget for itself, however noisy the verification.
_SEARCH_SHARE_MIN = 0.4
_FAILURES_IN_A_ROW_MAX = 20


def ignore(event: Event) -> None:
    """A listener for those who want none."""


def tune(
    study: Study,
    history: History,
    *,
    resume: bool = False,
    listener: Listener = ignore,
    clock: Clock | None = None,
) -> Outcome:
    """Search for the best configuration of a study within its budget, and verify it against the default.

    Args:
        study: what is tuned, under which load, for what.
        history: where every trial is kept.
        resume: go on with the latest unfinished run of this study instead of beginning a new one.
        listener: told of everything that happens.
        clock: seconds, monotonic; None: the target's own where it has one (`simulated`), else the machine's.

    Returns:
        What the study came to. "The default is fine" is a result too.

    Raises:
        InputError: the study, or the machine, does not allow it; nothing was touched.
        Refused: a safety rule said no.
        WorkError: the default configuration cannot be measured, or everything fails.
        KeyboardInterrupt: interrupted; completed trials are kept, the machine is put back.
    """
    target = open_target(study.target)
    space = study_space(study, target.space)
    workload = _workload(study, target)
    ticks: Clock = clock or getattr(target, "clock", time.monotonic)
    with (
        target,
        history.resume(study) if resume else history.begin(study, space, _valid_for(target, workload)) as run,
    ):
        search = _Search(
            study, space, run, Evaluator(study, target, workload, listener, ticks), listener, ticks
        )
        search.recall()
        search.measure_default()
        stopped = search.search()
        verdict = search.verify()
        outcome = search.outcome(verdict, stopped)
        run.finish(outcome)
    listener(Event("study-finished", outcome.to_dict()))
    return outcome


def _workload(study: Study, target: Target) -> Workload:
    """The study's load; recorded and simulated systems bring their own."""
    if not study.workload and isinstance(target, Workload):
        return target
    return open_workload(study.workload, target.default_workload)


def _valid_for(target: Target, workload: Workload) -> dict[str, Any]:
    """What the results hold for: the machine, the system under tuning, the load."""
    return {**target.describe(), "workload": dict(workload.describe())}


@dataclass(slots=True)
class _Search:
    """The state of one run: its trials so far, and what they cost."""

    study: Study
    space: Space
    run: Run
    evaluator: Evaluator
    listener: Listener
    clock: Clock
    trials: list[Trial] = field(default_factory=list[Trial])
    optimizer: Optimizer = field(init=False)
    spent_before_s: float = 0.0
    start_s: float = field(init=False)
    retry: list[Configuration] = field(default_factory=list["Configuration"])

    def __post_init__(self) -> None:
        self.optimizer = open_optimizer(self.study.optimizer, self.space, self.study.seed)
        self.start_s = self.clock()

    # The four steps of `tune`, in their order.

    def recall(self) -> None:
        """Take up what an earlier, interrupted run of this study already learned."""
        self.trials = self.run.trials()
        self.spent_before_s = sum(_seconds(trial) for trial in self.trials)
        for trial in self.trials:
            self._tell(trial)
        for configuration in self.run.crashed():
            if self.run.crash_count(configuration) < 2:
                self.retry.append(configuration)
            else:
                self._quarantine(configuration)
        self.listener(
            Event(
                "study-started",
                {
                    "study": self.study.name,
                    "run_id": self.run.id,
                    "budget_s": self.study.budget_s,
                    "valid_configurations": self.space.count(),
                    "trials_recalled": len(self.trials),
                },
            )
        )

    def measure_default(self) -> None:
        """Measure what has to be beaten."""
        default = self.space.default()
        while len(self._of(Purpose.DEFAULT)) < _DEFAULT_RUNS:
            trial = self._try(default, Purpose.DEFAULT)
            if trial.state is not TrialState.COMPLETE:
                problem = trial.failure.message if trial.failure else trial.state.value
                raise WorkError(
                    f"the default configuration cannot be measured: {problem}; there is nothing to beat"
                )

    def search(self) -> str:
        """Try what the optimizer proposes until there is a reason to stop; returns the reason."""
        while not (reason := self._reason_to_stop()):
            try:
                configuration = self.retry.pop() if self.retry else self.optimizer.ask()
            except Exhausted as exhausted:
                return exhausted.message
            self._try(configuration, Purpose.SEARCH)
        return reason

    def verify(self) -> Verdict:
        """Compare the best with the default, interleaved, as often as is fixed now."""
        best, defaults = self._best(), self._of(Purpose.DEFAULT)
        if best is None or best.configuration == defaults[0].configuration:
            return Verdict(kind="default-is-fine", note="the search found nothing better than the default")
        fixed: Plan = plan(self.study, best, defaults, self._left_s(), self._trial_s())
        self.listener(Event("verifying", {"runs_per_side": fixed.runs_per_side}, best))
        return verify(self.study, fixed, lambda configuration: self._try(configuration, Purpose.VERIFY))

    def outcome(self, verdict: Verdict, stopped: str) -> Outcome:
        """Everything the run came to, in one value."""
        best, default = self._best(), self._of(Purpose.DEFAULT)[0]
        stage_s: dict[str, float] = {}
        for trial in self.trials:
            for stage, seconds in trial.stage_s.items():
                stage_s[stage] = stage_s.get(stage, 0.0) + seconds
        elapsed_s = self.spent_before_s + self.clock() - self.start_s
        stage_s["other"] = max(0.0, elapsed_s - sum(stage_s.values()))
        return Outcome(
            run_id=self.run.id,
            study=self.study.name,
            best=best,
            default=default,
            recommended=(best if best and verdict.kind == "improved" else default).configuration,
            verdict=verdict,
            stage_s=stage_s,
            counts={
                state: n for state in TrialState if (n := sum(trial.state is state for trial in self.trials))
            },
            stopped=stopped,
            machine=self.run.machine,
        )

    # What the steps are made of.

    def _try(self, configuration: Configuration, purpose: Purpose) -> Trial:
        """Evaluate one configuration and remember what became of it."""
        trial = Trial(self.run.next_number(), configuration, purpose, TrialState.RUNNING)
        self.run.start_trial(trial)
        self.listener(Event("trial-started", {"trial": trial.number, "left_s": self._left_s()}, trial))
        try:
            trial = self.evaluator.evaluate(trial)
        except BaseException:
            self.run.finish_trial(replace(trial, state=TrialState.INTERRUPTED))
            raise
        self.run.finish_trial(trial)
        self.trials.append(trial)
        self._tell(trial)
        self.listener(Event("trial-finished", {"trial": trial.number, "left_s": self._left_s()}, trial))
        return trial

    def _tell(self, trial: Trial) -> None:
        if _learned(trial):
            self.optimizer.tell(self._evaluation(trial))

    def _evaluation(self, trial: Trial) -> Evaluation:
        measurement = trial.measurement
        return Evaluation(
            configuration=trial.configuration,
            state=TrialState.FAILED if trial.unmet else trial.state,
            loss=None if trial.score is None else -self.study.objective.sign * trial.score,
            standard_error=None if measurement is None else measurement.standard_error,
            seconds=_seconds(trial),
        )

    def _quarantine(self, configuration: Configuration) -> None:
        """A configuration during which the machine went down twice is not tried a third time."""
        failure = Failure("machine", "the machine went down twice while this configuration was in force")
        trial = Trial(
            self.run.next_number(), configuration, Purpose.SEARCH, TrialState.QUARANTINED, failure=failure
        )
        self.run.start_trial(trial)
        self.run.finish_trial(trial)
        self.trials.append(trial)
        self._tell(trial)

    def _of(self, purpose: Purpose) -> list[Trial]:
        return [
            trial for trial in self.trials if trial.purpose is purpose and trial.state is TrialState.COMPLETE
        ]

    def _best(self) -> Trial | None:
        """The latest usable trial of what the optimizer recommends, which need not be the luckiest one."""
        found = recommend(
            self.optimizer, [self._evaluation(trial) for trial in self.trials if _learned(trial)]
        )
        if found is None:
            return None
        usable = self._of(Purpose.DEFAULT) + self._of(Purpose.SEARCH)
        same = [trial for trial in usable if trial.usable and trial.configuration == found.configuration]
        return same[-1] if same else None

    def _left_s(self) -> float:
        return self.study.budget_s - self.spent_before_s - (self.clock() - self.start_s)

    def _trial_s(self) -> float:
        """A trial's usual seconds, from those of the search."""
        seconds = [_seconds(trial) for trial in self.trials if trial.state is TrialState.COMPLETE]
        return median(seconds) if seconds else 0.0

    def _reserve_s(self) -> float:
        """Seconds kept back for the verification."""
        wanted = self.study.verify
        least_s = 2 * wanted.runs_min * self._trial_s()
        share_s = wanted.budget_share * self.study.budget_s
        return min(max(least_s, share_s), (1 - _SEARCH_SHARE_MIN) * self.study.budget_s)

    def _reason_to_stop(self) -> str:
        """Why the search should end now; empty while it should go on (Cao 9.6)."""
        stop, searched = self.study.stop, [trial for trial in self.trials if trial.purpose is Purpose.SEARCH]
        if self._left_s() - self._reserve_s() < self._trial_s():
            return "the time budget is spent"
        if stop.trials is not None and len(searched) >= stop.trials:
            return f"{stop.trials} trials were made"
        if stop.trials_without_gain is not None and self._without_gain(searched) >= stop.trials_without_gain:
            return f"{stop.trials_without_gain} trials in a row brought nothing better"
        if self.study.stop_target is not None:
            for trial in searched:
                if trial.usable and self.study.stop_target.evaluate(dict(trial.metrics)):
                    return f"the target {str(self.study.stop_target)!r} is reached"
        last = self.trials[-_FAILURES_IN_A_ROW_MAX:]
        if len(last) == _FAILURES_IN_A_ROW_MAX and all(trial.state is TrialState.FAILED for trial in last):
            return f"the last {_FAILURES_IN_A_ROW_MAX} trials failed"
        return ""

    def _without_gain(self, searched: Sequence[Trial]) -> int:
        """Trials since the last one that was better than all before it, the default included."""
        best: float | None = None
        count = 0
        for trial in [*self._of(Purpose.DEFAULT), *searched]:
            gained = (
                trial.usable
                and trial.score is not None
                and (best is None or self.study.objective.better(trial.score, best))
            )
            if gained:
                best = trial.score
            count = 0 if gained or trial.purpose is Purpose.DEFAULT else count + 1
        return count


def _learned(trial: Trial) -> bool:
    """Whether an optimizer is told of a trial: verifications judge the search, they are not part of it."""
    return trial.purpose in (Purpose.DEFAULT, Purpose.SEARCH)


def _seconds(trial: Trial) -> float:
    return sum(trial.stage_s.values())
