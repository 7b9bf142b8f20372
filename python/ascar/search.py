"""The search of a study: what to try next, what was learned, when to end."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from ascar.errors import Exhausted, ExpressionError, InputError, StudyError, WorkError
from ascar.optimizers import Evaluation, open_optimizer
from ascar.optimizers.proposals import Proposal, Proposals
from ascar.optimizers.rationing import Rationed
from ascar.optimizers.recommendation import recommend
from ascar.optimizers.several import SeveralObjectives
from ascar.optimizers.starting import start_proposals
from ascar.optimizers.stopping import criterion_of, progress_of
from ascar.reserve import RecommendedTrial
from ascar.results.trial import Origin, Purpose, TrialState
from ascar.space import change_budget
from ascar.study.stop import stop_tables
from ascar.systems import Advising

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from ascar.campaign import Campaign
    from ascar.history import History
    from ascar.optimizers import Optimizer
    from ascar.optimizers.remaining import RemainingGains
    from ascar.reserve import Reserve
    from ascar.results.trial import Trial
    from ascar.space import Configuration, Space
    from ascar.study import Study


# Two runs of the default before the search: one alone would hide a first run that is unlike all others.
_DEFAULT_RUNS = 2
_FAILURES_IN_A_ROW_MAX = 20


def search_optimizer(study: Study, space: Space, starts: Sequence[Proposal] | None = None) -> Optimizer:
    """The optimizer that searches for a study: within its change budget, for all of its objectives.

    Args:
        study: the study to search for.
        space: the space to search.
        starts: what is tried first; None: what the study says.

    Raises:
        StudyError: a key of `[optimizer]` or `[start]` is wrong, or `[stop]` asks for what it cannot tell.
    """
    if starts is None:
        starts = start_proposals(study.start, space, study.seed)
    start = [one.configuration for one in starts]

    def make(space: Space) -> Optimizer:
        valid = tuple(one for one in start if space.is_valid(one))
        return open_optimizer(study.optimizer, space, study.seed, valid)

    needing = [key for key, table in stop_tables(study.stop) if table.diversity is not None]
    limits = change_budget(study.space)
    plain = make(space)
    if needing and (limits or len(study.objectives) > 1 or not hasattr(plain, "generations")):
        raise StudyError(
            f"{needing[0]}.diversity: needs the generations of optimizer.kind = 'genetic', for one objective "
            "and without a change budget; use remaining_gain or trials_without_gain instead"
        )
    if len(study.objectives) > 1:
        several = partial(SeveralObjectives, make, seed=study.seed)
        return Rationed(several, space, limits) if limits else several(space)
    return Rationed(make, space, limits) if limits else plain


def best_of_similar(study: Study, history: History) -> tuple[Proposal, ...]:
    """The best configurations of the study that `[start] study` names, by the means of their trials.

    Raises:
        InputError: there is no such run.
    """
    if study.start.study is None:
        return ()
    try:
        run = history.run(study.start.study)
    except InputError as error:
        raise StudyError(f"start.study = {study.start.study!r:.100}: {error.message}") from error
    scores: dict[Configuration, list[float]] = {}
    for trial in run.trials(readings=False):
        if trial.usable and trial.score is not None:
            scores.setdefault(trial.configuration, []).append(trial.score)
    sign = run.objective.sign
    ranked = sorted(scores, key=lambda one: -sign * float(np.mean(scores[one])))
    # What was verified is known best, however lucky another single trial was.
    recommended = [run.outcome().recommended] if scores else []
    best = tuple(dict.fromkeys((*recommended, *ranked)))[: study.start.study_trials]
    return tuple(
        Proposal(one, Origin.SIMILAR, f"among the best of run {run.id} ({run.name})") for one in best
    )


@dataclass(slots=True)
class Search:
    """An optimizer at work in a campaign.

    Attributes:
        campaign: the campaign that carries out the trials.
        similar: the best of a similar study.
        optimizer: proposes.
        proposals: what is tried next.
        remaining: says what is left to gain; None where the study does not ask.
        is_over: whether it ended for another reason than time, so that it does not go on.
    """

    campaign: Campaign
    similar: tuple[Proposal, ...] = ()
    is_over: bool = field(init=False, default=False)
    optimizer: Optimizer = field(init=False)
    proposals: Proposals = field(init=False)
    remaining: RemainingGains | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        """Tell the optimizer what is known already."""
        study, space = self.campaign.prepared.study, self.campaign.prepared.space
        target = self.campaign.prepared.target
        advised = target.advice if isinstance(target, Advising) else None
        starts = start_proposals(study.start, space, study.seed, self.similar, advised)
        self.optimizer = search_optimizer(study, space, starts)
        self.proposals = Proposals(self.optimizer, starts)
        for configuration in self.campaign.retry:
            self.proposals.put(
                Proposal(configuration, Origin.RETRY, "the machine went down while it was tried")
            )
        if any(table.remaining_gain is not None for _, table in stop_tables(study.stop)):
            from ascar.optimizers.remaining import RemainingGains

            self.remaining = RemainingGains(space, study.seed)
        for trial in self.campaign.trials:
            self._tell(trial)

    def measure_default(self) -> Trial:
        """Measure what has to be beaten, once if the budget holds no more; the first complete trial.

        Raises:
            WorkError: it cannot be measured.
        """
        default = Proposal(self.campaign.prepared.space.default(), Origin.DEFAULT)
        campaign = self.campaign
        while not campaign.of(Purpose.DEFAULT) or len(campaign.defaults) < _DEFAULT_RUNS:
            if campaign.of(Purpose.DEFAULT) and campaign.left_s < campaign.trial_s:
                break
            trial = campaign.attempt(default, Purpose.DEFAULT, enough_s=campaign.search_load_s)
            self._tell(trial)
            if trial.state is not TrialState.COMPLETE:
                problem = trial.failure.message if trial.failure else trial.state.value
                raise WorkError(
                    f"the default configuration cannot be measured: {problem}; there is nothing to beat"
                )
        return campaign.of(Purpose.DEFAULT)[0]

    def run(self, reserve: Reserve) -> str:
        """Try what the optimizer proposes until there is a reason to end; returns the reason.

        Args:
            reserve: seconds to keep back for the verification of the best so far.
        """
        while not (reason := self._reason_to_end(reserve)):
            try:
                proposal = self.proposals.take()
            except Exhausted as exhausted:
                self.is_over = True
                return exhausted.message
            purpose = self._purpose(proposal.configuration)
            self._tell(self.campaign.attempt(proposal, purpose, enough_s=self.campaign.search_load_s))
        return reason

    def may_go_on(self) -> bool:
        """Whether there is time for another trial and for a pair of runs of what it may find."""
        campaign = self.campaign
        default = campaign.prepared.space.default()
        return not self.is_over and campaign.left_s > campaign.trial_s + campaign.pair_s((default, default))

    def best(self, without: Container[Configuration] = ()) -> RecommendedTrial | None:
        """The latest usable trial of what the optimizer recommends, which need not be the luckiest one.

        Args:
            without: configurations that are out of the question; the default always is.
        """
        default = self.campaign.prepared.space.default()
        trials = [
            trial
            for trial in self.campaign.trials
            if _learned(trial) and trial.configuration != default and trial.configuration not in without
        ]
        found = recommend(self.optimizer, [self._evaluation(trial) for trial in trials])
        usable = [trial for trial in trials if trial.usable and trial.score is not None]
        sign = self.campaign.prepared.study.objective.sign
        same = [trial for trial in usable if found and trial.configuration == found.configuration]
        # What is recommended may break a constraint, be the default, or be out of the question.
        best = same[-1] if same else max(usable, key=lambda trial: sign * (trial.score or 0.0), default=None)
        if best is None:
            return None
        score = fmean(trial.score or 0.0 for trial in same or [best])
        # Of several objectives the loss is a compromise, on a scale of its own.
        if found is not None and len(self.campaign.prepared.study.objectives) == 1:
            # No more is expected of another one than of what is recommended.
            score = sign * (-found.loss if same else min(sign * score, -found.loss))
        return RecommendedTrial(best, score)

    def _purpose(self, configuration: Configuration) -> Purpose:
        """Something new, or once more what was measured already."""
        known = any(
            trial.configuration == configuration and trial.state is TrialState.COMPLETE
            for trial in self.campaign.trials
            if _learned(trial)
        )
        return Purpose.REMEASURE if known else Purpose.SEARCH

    def _tell(self, trial: Trial) -> None:
        if not _learned(trial) or trial not in self.campaign.alike:
            return
        evaluation = self._evaluation(trial)
        self.optimizer.tell(evaluation)
        if self.remaining is not None:
            self.remaining.tell(evaluation)

    def _evaluation(self, trial: Trial) -> Evaluation:
        study = self.campaign.prepared.study
        return Evaluation(
            configuration=trial.configuration,
            state=TrialState.FAILED if trial.unmet else trial.state,
            loss=None if trial.score is None else -study.objective.sign * trial.score,
            standard_error=trial.measurement.standard_error if trial.measurement else None,
            seconds=trial.total_s,
            losses=_losses(study, trial),
            change_s=_change_s(trial),
        )

    def _time_spent(self, reserve: Reserve) -> str:
        """Why there is no time for another trial; empty where there is."""
        campaign = self.campaign
        spare_s = campaign.left_s - campaign.trial_s
        if spare_s < 0:
            return "the time budget is spent"
        # Finding the best so far costs a fit of the optimizer's model: not while anything would fit.
        if spare_s < reserve.most_s and spare_s < reserve.needed_s(self.best()):
            return "its share of the time budget is spent; the rest is kept for the verification"
        return ""

    def _reason_to_end(self, reserve: Reserve) -> str:
        """Why the search should end now; empty while it should go on (Cao 9.6)."""
        if spent := self._time_spent(reserve):
            return spent
        reason = self._rule_to_end()
        self.is_over = bool(reason)
        return reason

    def _rule_to_end(self) -> str:
        """Why a rule ends the search; empty where none does."""
        campaign, study = self.campaign, self.campaign.prepared.study
        last = campaign.trials[-_FAILURES_IN_A_ROW_MAX:]
        if len(last) == _FAILURES_IN_A_ROW_MAX and all(trial.state is TrialState.FAILED for trial in last):
            return f"the last {_FAILURES_IN_A_ROW_MAX} trials failed"
        searched = [trial for trial in campaign.trials if trial.purpose.of_search]
        default = campaign.defaults[:1]  # what has to be beaten counts as the first best
        progress = progress_of(
            (self._evaluation(trial) for trial in default + searched),
            campaign.elapsed_s,
            getattr(self.optimizer, "generations", ()),
        )
        progress = replace(
            progress,
            trials=len(searched),
            targets_met=_targets_met(study, searched),
            remaining=self.remaining,
        )
        return criterion_of(study.stop)(progress) or ""


def _losses(study: Study, trial: Trial) -> tuple[float, ...]:
    """Of a study with several objectives, each one's loss; none where something was not measured."""
    if len(study.objectives) < 2 or trial.score is None:
        return ()
    try:
        return tuple(-one.sign * one.score(trial.metrics) for one in study.objectives)
    except ExpressionError:
        return ()


def _change_s(trial: Trial) -> float | None:
    """Seconds until the load could begin; None where the trial did not come that far."""
    if "load" not in trial.stage_s:
        return None
    return sum(trial.stage_s.get(stage, 0.0) for stage in ("change", "fill", "settle"))


def _targets_met(study: Study, trials: Sequence[Trial]) -> frozenset[str]:
    """The targets that a usable trial meets, as text."""
    usable = [dict(trial.metrics) for trial in trials if trial.usable]
    return frozenset(
        text
        for text, target in study.stop_targets.items()
        if any(bool(target.evaluate(metrics)) for metrics in usable)
    )


def _learned(trial: Trial) -> bool:
    """Whether an optimizer is told of a trial: verifications judge the search, they are not part of it."""
    return trial.purpose is Purpose.DEFAULT or trial.purpose.of_search
