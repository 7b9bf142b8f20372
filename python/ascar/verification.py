"""The last comparison: best and default, interleaved, so often as was fixed before the first run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING

from ascar.outcome import Event, Purpose, TrialState, Verdict
from ascar.pilot import compare, runs_needed
from ascar.targets import Reusing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ascar.campaign import Campaign
    from ascar.outcome import Trial
    from ascar.space import Configuration
    from ascar.study import Study

__all__ = ["Plan", "plan", "verify"]

# Between fresh runs of one configuration real file systems differ by a few percent even when the readings
# inside each run agree; planning with less would promise a certainty that the machine does not have.
_RELATIVE_SD_FLOOR = 0.03


@dataclass(frozen=True, slots=True)
class Plan:
    """The comparison, fixed before it starts.

    Attributes:
        best: the configuration that the search recommends.
        default: what it has to beat.
        runs_per_side: how often each is measured.
    """

    best: Configuration
    default: Configuration
    runs_per_side: int

    def order(self) -> list[Configuration]:
        """Both sides in turn, the first of each pair alternating, so that a drift favours neither."""
        pairs = ((self.default, self.best), (self.best, self.default))
        return [configuration for run in range(self.runs_per_side) for configuration in pairs[run % 2]]


def verify(campaign: Campaign, best: Trial | None) -> Verdict:
    """Compare the best with the default, interleaved, and say what that shows.

    The number of runs is the plan's whatever the first ones say: stopping at the first significant look is no
    test. Failed runs count against their side's number of runs and are named in the note.
    """
    defaults = campaign.of(Purpose.DEFAULT)
    if best is None or best.configuration == defaults[0].configuration:
        return Verdict(kind="default-is-fine", note="the search found nothing better than the default")
    fixed = plan(campaign, best, defaults)
    campaign.listener(Event("verifying", {"runs_per_side": fixed.runs_per_side}, best))
    scores: dict[Configuration, list[float]] = {fixed.best: [], fixed.default: []}
    failed = 0
    for configuration in fixed.order():
        trial = campaign.attempt(configuration, Purpose.VERIFY)
        if trial.usable and trial.score is not None:
            scores[configuration].append(trial.score)
        else:
            failed += 1
    verdict = conclude(campaign.bench.study, fixed, scores[fixed.default], scores[fixed.best], failed)
    return _with_reuse_bias(campaign, fixed, scores[fixed.default], verdict)


def _with_reuse_bias(campaign: Campaign, fixed: Plan, fresh: list[float], verdict: Verdict) -> Verdict:
    """Where trials reuse what the one before left: how far that moved the default's score (Cao 6.6.2).

    The verification's runs started afresh; as many more on the aged system tell the difference.
    """
    target = campaign.bench.target
    if not (isinstance(target, Reusing) and target.reuses_state) or len(fresh) < 2:
        return verdict
    aged: list[float] = []
    for _ in range(campaign.bench.study.verify.runs_min):
        trial = campaign.attempt(fixed.default, Purpose.BIAS)
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


def plan(campaign: Campaign, best: Trial, defaults: Sequence[Trial]) -> Plan:
    """How many runs a side: enough for the observed difference and variance, as far as time allows.

    Args:
        campaign: its study's `[verify]` section gives level, power and bounds; its clock the time left.
        best: the best usable trial of the search.
        defaults: complete trials of the default configuration, at least one.
    """
    wanted, trial_s = campaign.bench.study.verify, campaign.trial_s
    assert best.score is not None, "a usable trial has a score"
    scores = [trial.score for trial in defaults if trial.score is not None]
    needed = runs_needed(scores, [best.score], _RELATIVE_SD_FLOOR, wanted.p_value, wanted.power)
    affordable = int(campaign.left_s / (2 * trial_s)) if trial_s > 0 else wanted.runs_max
    runs = max(wanted.runs_min, min(needed, affordable, wanted.runs_max))
    return Plan(best.configuration, defaults[0].configuration, runs)


def conclude(
    study: Study, plan: Plan, default_scores: list[float], best_scores: list[float], failed: int
) -> Verdict:
    """The verdict on two sets of independent runs."""
    limit = study.verify.p_value
    if min(len(default_scores), len(best_scores)) < 2:
        return Verdict(
            kind="not-verified",
            runs_per_side=plan.runs_per_side,
            best_scores=tuple(best_scores),
            default_scores=tuple(default_scores),
            p_value_limit=limit,
            note=f"{failed} of {2 * plan.runs_per_side} runs failed or broke a constraint; too few are left",
        )
    found = compare(default_scores, best_scores, 1 - limit)
    # A gain is better whichever way the objective points: half the latency is a gain of 1 in speed-up terms
    # to some, of 50% to others; ours is the change in the objective's own unit over the default's mean.
    sign = study.objective.sign * (1 if fmean(default_scores) >= 0 else -1)
    low, high = found.gain_low, found.gain_high
    if sign < 0 and low is not None and high is not None:
        low, high = -high, -low
    separated = found.p_value is not None and found.p_value < limit
    improved = separated and study.objective.better(fmean(best_scores), fmean(default_scores))
    note = f"Welch's t-test over {plan.runs_per_side} interleaved runs a side, the number fixed beforehand"
    if failed:
        note += f"; {failed} runs failed or broke a constraint and were left out"
    return Verdict(
        kind="improved" if improved else "default-is-fine",
        gain_relative=sign * found.gain_relative,
        gain_low=low,
        gain_high=high,
        p_value=found.p_value,
        runs_per_side=plan.runs_per_side,
        best_scores=tuple(best_scores),
        default_scores=tuple(default_scores),
        p_value_limit=limit,
        note=note,
    )
