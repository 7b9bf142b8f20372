"""The search of a study: what to try next, what was learned, when to end."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ascar.errors import Exhausted, WorkError
from ascar.optimizers import Evaluation, open_optimizer
from ascar.optimizers.rationing import Rationed
from ascar.optimizers.recommendation import recommend
from ascar.optimizers.stopping import AnyOf, TargetReached, Trials, WindowWithoutGain, progress_of
from ascar.outcome import Purpose, TrialState
from ascar.space import change_budget

if TYPE_CHECKING:
    from ascar.campaign import Campaign
    from ascar.optimizers import Optimizer
    from ascar.optimizers.stopping import Criterion
    from ascar.outcome import Trial
    from ascar.space import Space
    from ascar.study import Study

__all__ = ["Search"]

# Two runs of the default before the search: one alone would hide a first run that is unlike all others.
_DEFAULT_RUNS = 2
# The search never leaves less than this share of the budget for itself, however noisy the verification.
_SEARCH_SHARE_MIN = 0.4
_FAILURES_IN_A_ROW_MAX = 20


@dataclass(slots=True)
class Search:
    """An optimizer at work in a campaign."""

    campaign: Campaign
    optimizer: Optimizer = field(init=False)

    def __post_init__(self) -> None:
        """Tell the optimizer what is known already."""
        study, space = self.campaign.bench.study, self.campaign.bench.space

        def make(space: Space) -> Optimizer:
            return open_optimizer(study.optimizer, space, study.seed)

        limits = change_budget(study.space)
        self.optimizer = Rationed(make, space, limits) if limits else make(space)
        for trial in self.campaign.trials:
            self._tell(trial)

    def measure_default(self) -> Trial:
        """Measure what has to be beaten; the first of its complete trials.

        Raises:
            WorkError: it cannot be measured.
        """
        default = self.campaign.bench.space.default()
        while len(self.campaign.of(Purpose.DEFAULT)) < _DEFAULT_RUNS:
            trial = self.campaign.attempt(default, Purpose.DEFAULT)
            self._tell(trial)
            if trial.state is not TrialState.COMPLETE:
                problem = trial.failure.message if trial.failure else trial.state.value
                raise WorkError(
                    f"the default configuration cannot be measured: {problem}; there is nothing to beat"
                )
        return self.campaign.of(Purpose.DEFAULT)[0]

    def run(self) -> str:
        """Try what the optimizer proposes until there is a reason to end; returns the reason."""
        while not (reason := self._reason_to_end()):
            try:
                retry = self.campaign.retry
                configuration = retry.pop() if retry else self.optimizer.ask()
            except Exhausted as exhausted:
                return exhausted.message
            self._tell(self.campaign.attempt(configuration, Purpose.SEARCH))
        return reason

    def best(self) -> Trial | None:
        """The latest usable trial of what the optimizer recommends, which need not be the luckiest one."""
        campaign = self.campaign
        found = recommend(
            self.optimizer, [self._evaluation(trial) for trial in campaign.trials if _learned(trial)]
        )
        tried = campaign.of(Purpose.DEFAULT) + campaign.of(Purpose.SEARCH)
        usable = [trial for trial in tried if trial.usable]
        same = [trial for trial in usable if found and trial.configuration == found.configuration]
        if same:
            return same[-1]
        # What is recommended broke a constraint: the best of what did not.
        sign = campaign.bench.study.objective.sign
        return max(usable, key=lambda trial: sign * (trial.score or 0.0), default=None)

    def _tell(self, trial: Trial) -> None:
        if _learned(trial):
            self.optimizer.tell(self._evaluation(trial))

    def _evaluation(self, trial: Trial) -> Evaluation:
        sign = self.campaign.bench.study.objective.sign
        return Evaluation(
            configuration=trial.configuration,
            state=TrialState.FAILED if trial.unmet else trial.state,
            loss=None if trial.score is None else -sign * trial.score,
            standard_error=trial.measurement.standard_error if trial.measurement else None,
            seconds=trial.total_s,
        )

    def _reason_to_end(self) -> str:
        """Why the search should end now; empty while it should go on (Cao 9.6)."""
        campaign, study = self.campaign, self.campaign.bench.study
        if campaign.left_s - self._reserve_s() < campaign.trial_s:
            if campaign.left_s < 2 * campaign.trial_s:
                return "the time budget is spent"
            return "its share of the time budget is spent; the rest is kept for the verification"
        last = campaign.trials[-_FAILURES_IN_A_ROW_MAX:]
        if len(last) == _FAILURES_IN_A_ROW_MAX and all(trial.state is TrialState.FAILED for trial in last):
            return f"the last {_FAILURES_IN_A_ROW_MAX} trials failed"
        searched = [trial for trial in campaign.trials if trial.purpose is Purpose.SEARCH]
        default = campaign.of(Purpose.DEFAULT)[:1]  # what has to be beaten counts as the first best
        progress = progress_of(
            (self._evaluation(trial) for trial in default + searched),
            campaign.elapsed_s,
            target_met=any(_meets_target(study, trial) for trial in searched),
        )
        return _criterion(study)(replace(progress, trials=len(searched))) or ""

    def _reserve_s(self) -> float:
        """Seconds kept back for the verification."""
        study = self.campaign.bench.study
        least_s = 2 * study.verify.runs_min * self.campaign.trial_s
        share_s = study.verify.budget_share * study.budget_s
        return min(max(least_s, share_s), (1 - _SEARCH_SHARE_MIN) * study.budget_s)


def _criterion(study: Study) -> Criterion:
    """The study's `[stop]` section."""
    criteria: list[Criterion] = [TargetReached()]
    if study.stop.trials is not None:
        criteria.append(Trials(study.stop.trials))
    if study.stop.trials_without_gain is not None:
        criteria.append(WindowWithoutGain(study.stop.trials_without_gain))
    return AnyOf(tuple(criteria))


def _meets_target(study: Study, trial: Trial) -> bool:
    target = study.stop_target
    return target is not None and trial.usable and bool(target.evaluate(dict(trial.metrics)))


def _learned(trial: Trial) -> bool:
    """Whether an optimizer is told of a trial: verifications judge the search, they are not part of it."""
    return trial.purpose in (Purpose.DEFAULT, Purpose.SEARCH)
