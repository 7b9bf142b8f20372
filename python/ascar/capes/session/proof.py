"""What tuning gains: phases with and without it in turns, compared pair by pair.

Appendix A.4 of the CAPES paper (Li et al., SC'17) measures the baseline once and the tuned system once. Here
both take turns, in an order that is drawn for each pair, so that a drift of the machine favours neither; the
beginning of each phase, while it settles, does not count. A tuned phase begins with the setting that did best
so far, and the learner goes on as it likes: what it loses by trying things out is part of what is measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Literal

from ascar.pilot import analyze
from ascar.pilot.turns import ESTIMATES, PAIRS_MIN, PairTest, compare_in_turns
from ascar.render import count
from ascar.results.session import Proof

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ascar.objective import Objective

Claim = Literal["gain", "loss", "none"]
_METHOD = (
    "an always-valid t-test of the pairs, asked after every pair of phases in turns; its interval and "
    "p-value hold at all looks together"
)


@dataclass(frozen=True, slots=True)
class ComparedPhase:
    """One phase.

    Attributes:
        is_tuned: whether the learner turned the knobs.
        values: the objective, tick by tick, once it had settled.
    """

    is_tuned: bool
    values: tuple[float, ...]


def line_of(proof: Proof) -> str:
    """A proof in one line for people."""
    pairs, words = count(proof.pairs, "pair"), words_of(proof)
    if words is None:
        return f"after {pairs} of phases there is no interval yet; nothing is claimed"
    claim = "nothing is claimed" if proof.claim == "none" else proof.claim
    return f"{claim}: {words}, {pairs} of phases"


def words_of(proof: Proof) -> str | None:
    """The gain and its interval; None while there is no interval."""
    values, form = (proof.gain, proof.gain_low, proof.gain_high), "+.1%"
    if proof.gain is None:
        values, form = (proof.difference, proof.difference_low, proof.difference_high), "+.4g"
    known = [format(one, form) for one in values if one is not None]
    return f"{known[0]} ({known[1]} to {known[2]})" if len(known) == len(values) else None


def judge(phases: Sequence[ComparedPhase], objective: Objective, p_value: float) -> Proof:
    """The verdict on phases in the order they were run, the first with the second, the third with the fourth.

    Args:
        phases: the phases, of which one in each pair is tuned; the remaining phase of a broken pair is
            dropped, and none is empty.
        objective: says which direction is better.
        p_value: 1 minus the interval's confidence.
    """
    pairs = list(zip(phases[::2], phases[1::2], strict=False))
    assert all(one.is_tuned != other.is_tuned for one, other in pairs), "a pair has one phase of each kind"
    baseline = [one if not one.is_tuned else other for one, other in pairs]
    tuned = [one if one.is_tuned else other for one, other in pairs]
    means = [fmean(one.values) for one in baseline], [fmean(one.values) for one in tuned]
    # All phases count, those after a decision too: the learner goes on.
    test = PairTest(p_value, margin=0, pairs_min=max(len(pairs), PAIRS_MIN))
    gain = compare_in_turns((), objective.direction, test, known=list(zip(*means, strict=True))).gain
    claims: dict[str, Claim] = {"better": "gain", "worse": "loss"}
    estimates = dict.fromkeys(ESTIMATES) if gain is None else gain.estimates()
    estimates["gain"] = estimates.pop("gain_relative")
    return Proof(
        pairs=len(pairs),
        baseline_mean=fmean(means[0]) if pairs else None,
        tuned_mean=fmean(means[1]) if pairs else None,
        baseline_ticks=sum(len(one.values) for one in baseline),
        tuned_ticks=sum(len(one.values) for one in tuned),
        baseline_samples=_samples(baseline),
        tuned_samples=_samples(tuned),
        **estimates,
        confidence=1 - p_value,
        p_value=None if gain is None else gain.p_value,
        claim="none" if gain is None else claims.get(gain.decision, "none"),
        method=_METHOD,
    )


def _samples(phases: Sequence[ComparedPhase]) -> int:
    """Independent samples of all ticks: by how they depend on each other around the mean of their phase."""
    around = [value - mean for one in phases for mean in (fmean(one.values),) for value in one.values]
    return max(analyze(around, whole=True).independent_samples, len(phases)) if around else 0
