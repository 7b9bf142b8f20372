"""The last comparison: best and default in turns, by a test that may be repeated after every pair of runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import fmean
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from ascar.cycles import span_of
from ascar.events import Event
from ascar.optimizers.proposals import Proposal
from ascar.pilot import compare
from ascar.pilot.turns import Gain, PairTest, alternating, compare_in_turns
from ascar.render import estimate
from ascar.results.trial import Origin, Purpose, TrialState
from ascar.results.verdict import ObjectiveGain, Verdict
from ascar.systems import Reusing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ascar.campaign import Campaign
    from ascar.pilot.turns import InTurns, Scores
    from ascar.results.trial import Trial
    from ascar.space import Configuration
    from ascar.study import Study


@dataclass(slots=True)
class Pairs:
    """Runs of the default and of the best in turns, pair by pair.

    Attributes:
        default: the default configuration, which the best one must beat.
        best: the configuration that the search recommends.
        scores: the scores of each pair of completed runs, the default's first; None for a run that failed or
            violated a constraint.
        failed: runs that failed or broke a constraint.
        runs: the pairs that could be compared, the default's run first.
    """

    default: Configuration
    best: Configuration
    scores: list[Scores] = field(default_factory=list["Scores"])
    failed: int = 0
    runs: list[tuple[Trial, Trial]] = field(default_factory=list["tuple[Trial, Trial]"])
    _waiting: Trial | None = None

    @property
    def run_s(self) -> float:
        """The seconds of the longer run of the last pair; 0 before the first."""
        return max((trial.total_s for trial in self.runs[-1]), default=0.0) if self.runs else 0.0

    def turn(self) -> tuple[Configuration, Configuration]:
        """The next pair; the first of each pair alternates, so that a drift favours neither.

        What is left of a pair that an interruption broke is dropped.
        """
        self._waiting = None
        sides = {"reference": self.default, "candidate": self.best}
        first, second = alternating(len(self.scores))
        return sides[first], sides[second]

    def take(self, trial: Trial) -> None:
        """Take in a run that has ended; one of another configuration, or interrupted, is none of ours."""
        if trial.configuration not in (self.default, self.best) or trial.state is TrialState.INTERRUPTED:
            return
        first, self._waiting = self._waiting, None
        self.failed += not trial.usable
        if first is None or first.configuration == trial.configuration:
            self._waiting = trial  # its partner is to come, or was interrupted
            return
        default, best = (first, trial) if first.configuration == self.default else (trial, first)
        self.scores.append((default.score if default.usable else None, best.score if best.usable else None))
        if None not in self.scores[-1]:
            self.runs.append((default, best))

    def taken(self, campaign: Campaign) -> Iterator[Scores]:
        """Run pair after pair, without end."""
        while True:
            for configuration in self.turn():
                proposal = Proposal(configuration, Origin.VERIFICATION)
                self.take(campaign.attempt(proposal, Purpose.VERIFY))
            yield self.scores[-1]


def verify(campaign: Campaign, best: Trial | None) -> Verdict:
    """Compare the best with the default, pair by pair, until it is decided, and say what that shows.

    The test is made for repeated looks: ending at the first that decides keeps its level. Runs that an
    interrupted part of the study made of the same two count too. A pair with a failed run is left out, and
    named in the note.
    """
    defaults = campaign.of(Purpose.DEFAULT)
    if best is None or best.configuration == defaults[0].configuration:
        return _without_comparison(campaign, defaults[0], best)
    study = campaign.prepared.study
    pairs = Pairs(defaults[0].configuration, best.configuration)
    for trial in campaign.trials:
        if trial.purpose is Purpose.VERIFY:
            pairs.take(trial)
    span = span_of(study, campaign.prepared.target, (defaults[0], best), campaign.left_s)
    campaign.verify_load_s = span.load_s
    bounds = {"runs_min": study.verify.runs_min, "runs_max": study.verify.runs_max}
    campaign.listener(Event("verifying", bounds, best))

    def over(now: InTurns) -> bool:
        run_s = max(campaign.trial_s, pairs.run_s)
        return now.made >= study.verify.runs_min and campaign.left_s < 2 * run_s

    def told(now: InTurns) -> None:
        campaign.listener(Event("compared", {"pairs": now.made, **_estimates(now.gain)}))

    found = compared(study, pairs.taken(campaign), known=tuple(pairs.scores), over=over, told=told)
    verdict = conclude(study, pairs, found)
    if span.note:
        verdict = replace(verdict, note=f"{verdict.note}; {span.note}")
    return _with_reuse_bias(campaign, pairs, verdict)


def compared(study: Study, pairs: Iterator[Scores], **how: Any) -> InTurns:
    """Compare by the study's `[verify]` section; see `compare_in_turns`."""
    wanted = study.verify
    test = PairTest(wanted.p_value, wanted.margin, wanted.runs_min, wanted.runs_max, failure_ends=False)
    return compare_in_turns(pairs, study.objective.direction, test, **how)


def _without_comparison(campaign: Campaign, default: Trial, best: Trial | None) -> Verdict:
    """The verdict where nothing else than the default could be put forward: fine only if others were seen."""
    searched = [trial for trial in campaign.trials if trial.purpose.of_search]
    failures = [trial.failure for trial in searched if trial.failure is not None]
    if best is None:
        breaks = "; ".join(default.unmet)
        note = f"no configuration met the constraints; the default breaks {breaks}"
    elif searched and len(failures) == len(searched):
        last = failures[-1]
        note = (
            f"all {len(searched)} trials of the search failed, so nothing is known of any other "
            f"configuration; the last one in {last.stage}: {last.message}"
        )
    elif not searched and campaign.prepared.space.count() != 1:
        note = (
            "the budget left no time to search, only the default was measured; "
            "give the study more, in [study] budget or with --budget"
        )
    else:
        return Verdict(kind="default-is-fine", note="the search found nothing better than the default")
    return Verdict(kind="not-verified", note=note)


def _with_reuse_bias(campaign: Campaign, pairs: Pairs, verdict: Verdict) -> Verdict:
    """Where trials reuse what the one before left: how far that moved the default's score (Cao 6.6.2).

    The verification's runs started afresh; as many more on the aged system tell the difference.
    """
    target, fresh = campaign.prepared.target, verdict.default_scores
    if not (isinstance(target, Reusing) and target.reuses_state) or len(fresh) < 2:
        return verdict
    aged: list[float] = []
    for _ in range(campaign.prepared.study.verify.runs_min):
        trial = campaign.attempt(Proposal(pairs.default, Origin.VERIFICATION), Purpose.BIAS)
        if trial.state is TrialState.COMPLETE and trial.score is not None:
            aged.append(trial.score)
    if len(aged) < 2:
        return verdict
    found = compare(fresh, aged, 1 - verdict.p_value_limit)
    return replace(
        verdict,
        note=f"{verdict.note}; in trials that reused the state of the one before, the default's score was "
        f"{estimate(found.gain_relative, found.gain_low, found.gain_high)} off",
        reuse_bias=found.gain_relative,
        reuse_bias_low=found.gain_low,
        reuse_bias_high=found.gain_high,
    )


def conclude(study: Study, pairs: Pairs, found: InTurns) -> Verdict:
    """The verdict on the pairs of runs.

    Args:
        study: the study, whose `[verify]` section gives the level.
        pairs: all that were made.
        found: the comparison of the pairs.
    """
    known = Verdict(
        kind=found.kind,
        runs_per_side=found.made,
        best_scores=found.candidate,
        default_scores=found.reference,
        p_value_limit=study.verify.p_value,
        margin=study.verify.margin,
        ended=found.ended,
    )
    if found.gain is None:
        failed = (
            f"{pairs.failed} of {2 * found.made} runs failed or broke a constraint; too few pairs are left"
        )
        return replace(known, note=failed)
    note = (
        "an always-valid t-test of the pairs, asked after every pair of interleaved runs; its "
        f"interval and p-value hold at all looks together; it ended after {found.made} pairs: {found.note}"
    )
    if pairs.failed:
        note += f"; {pairs.failed} runs failed or broke a constraint, and their pairs were left out"
    return replace(known, note=note, objectives=_gains(study, pairs), **_estimates(found.gain))


def _gains(study: Study, pairs: Pairs) -> tuple[ObjectiveGain, ...]:
    """What the pairs say of each of several objectives; none where there is only one.

    The level is shared out among them, so that all intervals hold together.
    """
    if len(study.objectives) < 2:
        return ()
    found: list[ObjectiveGain] = []
    for objective in study.objectives:
        default = [objective.score(run.metrics) for run, _ in pairs.runs]
        best = [objective.score(run.metrics) for _, run in pairs.runs]
        gain = Gain.of(default, best, objective.direction, study.verify.p_value / len(study.objectives))
        found.append(ObjectiveGain(objective.text, fmean(best), fmean(default), **gain.estimates()))
    return tuple(found)


def _estimates(gain: Gain | None) -> dict[str, Any]:
    """As verdicts and events have them; none before two pairs could be compared."""
    return {} if gain is None else gain.estimates() | {"p_value": gain.p_value}
