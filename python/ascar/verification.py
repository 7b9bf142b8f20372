"""The last comparison: best and default in turns, by a test that may be repeated after every pair of runs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import TYPE_CHECKING

from ascar.outcome import Event, Gain, Purpose, TrialState, Verdict
from ascar.pilot import compare
from ascar.pilot.pairs import PAIRS_MIN, compare_pairs
from ascar.targets import Reusing

if TYPE_CHECKING:
    from ascar.campaign import Campaign
    from ascar.outcome import Trial, VerdictEnd
    from ascar.pilot.pairs import PairComparison
    from ascar.space import Configuration
    from ascar.study import Study

__all__ = ["Pairs", "conclude", "verify"]

_ENDS: dict[VerdictEnd, str] = {
    "separated": "they are told apart",
    "equivalent": "they are shown to differ by less than {margin:.1%}",
    "runs-max": "verify.runs_max was reached without a decision",
    "time": "the time was spent without a decision",
    "failures": "not one pair could be compared",
}


@dataclass(slots=True)
class Pairs:
    """Runs of the default and of the best in turns, pair by pair.

    Attributes:
        default: what has to be beaten.
        best: the configuration that the search recommends.
        default_scores: of the pairs of which both runs are usable, in the order taken.
        best_scores: the same of the best; as many.
        made: pairs of which both runs have ended, however they did.
        failed: runs that failed or broke a constraint.
        runs: the pairs that could be compared, the default's run first.
    """

    default: Configuration
    best: Configuration
    default_scores: list[float] = field(default_factory=list[float])
    best_scores: list[float] = field(default_factory=list[float])
    made: int = 0
    failed: int = 0
    runs: list[tuple[Trial, Trial]] = field(default_factory=list["tuple[Trial, Trial]"])
    _waiting: Trial | None = None

    def turn(self) -> tuple[Configuration, Configuration]:
        """The next pair; the first of each pair alternates, so that a drift favours neither.

        What is left of a pair that an interruption broke is dropped.
        """
        self._waiting = None
        return (self.best, self.default) if self.made % 2 else (self.default, self.best)

    def take(self, trial: Trial) -> None:
        """Take in a run that has ended; one of another configuration, or interrupted, is none of ours."""
        if trial.configuration not in (self.default, self.best) or trial.state is TrialState.INTERRUPTED:
            return
        first, self._waiting = self._waiting, None
        self.failed += not trial.usable
        if first is None or first.configuration == trial.configuration:
            self._waiting = trial  # its partner is to come, or was interrupted
            return
        self.made += 1
        scores = {run.configuration: run.score for run in (first, trial) if run.usable}
        default, best = scores.get(self.default), scores.get(self.best)
        if default is not None and best is not None:
            self.default_scores.append(default)
            self.best_scores.append(best)
            self.runs.append((first, trial) if first.configuration == self.default else (trial, first))

    def compared(self, study: Study) -> PairComparison | None:
        """How the best stands against the default; None while there are too few pairs."""
        if len(self.best_scores) < PAIRS_MIN:
            return None
        wanted = study.verify
        margin = wanted.margin if wanted.margin > 0 else None
        return compare_pairs(self.default_scores, self.best_scores, wanted.p_value, margin)


def verify(campaign: Campaign, best: Trial | None) -> Verdict:
    """Compare the best with the default, pair by pair, until it is decided, and say what that shows.

    The test is made for repeated looks: ending at the first that decides keeps its level. Runs that an
    interrupted part of the study made of the same two count too. A pair with a failed run is left out, and
    named in the note.
    """
    defaults = campaign.of(Purpose.DEFAULT)
    if best is None or best.configuration == defaults[0].configuration:
        return _without_comparison(campaign, defaults[0], best)
    study = campaign.bench.study
    pairs = Pairs(defaults[0].configuration, best.configuration)
    for trial in campaign.trials:
        if trial.purpose is Purpose.VERIFY:
            pairs.take(trial)
    bounds = {"runs_min": study.verify.runs_min, "runs_max": study.verify.runs_max}
    campaign.listener(Event("verifying", bounds, best))
    while (end := _end(campaign, pairs)) is None:
        for configuration in pairs.turn():
            pairs.take(campaign.attempt(configuration, Purpose.VERIFY))
        campaign.listener(_compared(pairs, study))
    verdict = conclude(study, pairs, end)
    return _with_reuse_bias(campaign, pairs, verdict)


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
    elif not searched and campaign.bench.space.count() != 1:
        note = (
            "the budget left no time to search, only the default was measured; "
            "give the study more, in [study] budget or with --budget"
        )
    else:
        return Verdict(kind="default-is-fine", note="the search found nothing better than the default")
    return Verdict(kind="not-verified", note=note)


def _end(campaign: Campaign, pairs: Pairs) -> VerdictEnd | None:
    """Why the comparison ends now; None while it should go on."""
    wanted = campaign.bench.study.verify
    if pairs.made < wanted.runs_min:
        return None
    found = pairs.compared(campaign.bench.study)
    if found is not None and found.decision != "open":
        return "equivalent" if found.decision == "equivalent" else "separated"
    if pairs.made >= wanted.runs_max:
        return "runs-max"
    if not pairs.best_scores:
        return "failures"
    return "time" if campaign.left_s < 2 * campaign.trial_s else None


def _compared(pairs: Pairs, study: Study) -> Event:
    """What is known after a pair."""
    found = pairs.compared(study)
    if found is None:
        return Event("compared", {"pairs": pairs.made})
    low, high = _gain_limits(study, pairs, found)
    return Event(
        "compared",
        {
            "pairs": pairs.made,
            "gain_relative": _gain_sign(study, pairs) * found.gain_relative,
            "gain_low": low,
            "gain_high": high,
            "p_value": found.p_value,
        },
    )


def _with_reuse_bias(campaign: Campaign, pairs: Pairs, verdict: Verdict) -> Verdict:
    """Where trials reuse what the one before left: how far that moved the default's score (Cao 6.6.2).

    The verification's runs started afresh; as many more on the aged system tell the difference.
    """
    target, fresh = campaign.bench.target, pairs.default_scores
    if not (isinstance(target, Reusing) and target.reuses_state) or len(fresh) < 2:
        return verdict
    aged: list[float] = []
    for _ in range(campaign.bench.study.verify.runs_min):
        trial = campaign.attempt(pairs.default, Purpose.BIAS)
        if trial.state is TrialState.COMPLETE and trial.score is not None:
            aged.append(trial.score)
    if len(aged) < 2:
        return verdict
    found = compare(fresh, aged, 1 - verdict.p_value_limit)
    low, high = found.gain_low, found.gain_high
    interval = "" if low is None or high is None else f" ({low:+.1%} to {high:+.1%})"
    return replace(
        verdict,
        note=f"{verdict.note}; in trials that reused the state of the one before, the default's score was "
        f"{found.gain_relative:+.1%}{interval} off",
        reuse_bias=found.gain_relative,
        reuse_bias_low=found.gain_low,
        reuse_bias_high=found.gain_high,
    )


def conclude(study: Study, pairs: Pairs, end: VerdictEnd) -> Verdict:
    """The verdict on the pairs of runs.

    Args:
        study: its `[verify]` section gives the level.
        pairs: all that were made.
        end: why no more are.
    """
    limit, margin = study.verify.p_value, study.verify.margin
    known = Verdict(
        kind="not-verified",
        runs_per_side=pairs.made,
        best_scores=tuple(pairs.best_scores),
        default_scores=tuple(pairs.default_scores),
        p_value_limit=limit,
        margin=margin,
        ended=end,
    )
    found = pairs.compared(study)
    if found is None:
        failed = (
            f"{pairs.failed} of {2 * pairs.made} runs failed or broke a constraint; too few pairs are left"
        )
        return replace(known, note=failed)
    low, high = _gain_limits(study, pairs, found)
    separated = found.decision in ("higher", "lower")
    improved = separated and (found.decision == "higher") == (study.objective.sign > 0)
    note = (
        "an always-valid t-test of the pairs, asked after every pair of interleaved runs; its "
        f"interval and p-value hold at all looks together; it ended after {pairs.made} pairs: "
        f"{_ENDS[end].format(margin=margin)}"
    )
    if pairs.failed:
        note += f"; {pairs.failed} runs failed or broke a constraint, and their pairs were left out"
    return replace(
        known,
        kind="improved" if improved else "default-is-fine",
        gain_relative=_gain_sign(study, pairs) * found.gain_relative,
        gain_low=low,
        gain_high=high,
        p_value=found.p_value,
        note=note,
        objectives=_gains(study, pairs),
    )


def _gains(study: Study, pairs: Pairs) -> tuple[Gain, ...]:
    """What the pairs say of each of several objectives; none where there is only one.

    The level is shared out among them, so that all intervals hold together.
    """
    if len(study.objectives) < 2:
        return ()
    found: list[Gain] = []
    for objective in study.objectives:
        default = [objective.score(run.metrics) for run, _ in pairs.runs]
        best = [objective.score(run.metrics) for _, run in pairs.runs]
        means = fmean(best), fmean(default)
        if means[1] == 0:
            found.append(Gain(objective.text, *means))
            continue
        compared = compare_pairs(default, best, study.verify.p_value / len(study.objectives), None)
        sign = objective.sign * (1 if means[1] > 0 else -1)
        low, high = compared.gain_low, compared.gain_high
        if sign < 0 and low is not None and high is not None:
            low, high = -high, -low
        found.append(Gain(objective.text, *means, sign * compared.gain_relative, low, high))
    return tuple(found)


def _gain_sign(study: Study, pairs: Pairs) -> int:
    """What makes a gain better whichever way the objective points.

    Half the latency is a gain of 1 in speed-up terms to some, of 50% to others; ours is the change in the
    objective's own unit over the default's mean.
    """
    return study.objective.sign * (1 if fmean(pairs.default_scores) >= 0 else -1)


def _gain_limits(study: Study, pairs: Pairs, found: PairComparison) -> tuple[float | None, float | None]:
    """The gain's interval, its lower end first."""
    low, high = found.gain_low, found.gain_high
    if _gain_sign(study, pairs) < 0 and low is not None and high is not None:
        return -high, -low
    return low, high
