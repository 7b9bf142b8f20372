"""What tuning gains: phases with and without it in turns, compared pair by pair.

Appendix A.4 of the CAPES paper (Li et al., SC'17) measures the baseline once and the tuned system once. Here
both take turns, in an order that is drawn for each pair, so that a drift of the machine favours neither; the
beginning of each phase, while it settles, does not count. A tuned phase begins with the setting that did best
so far, and the learner goes on as it likes: what it loses by trying things out is part of what is measured.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal

from ascar.pilot import analyze
from ascar.pilot.pairs import PAIRS_MIN, compare_pairs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ascar.objective import Objective

__all__ = ["Phase", "Proof", "judge"]

Claim = Literal["gain", "loss", "none"]
_METHOD = (
    "an always-valid t-test of the pairs, asked after every pair of phases in turns; its interval and "
    "p-value hold at all looks together"
)


@dataclass(frozen=True, slots=True)
class Phase:
    """One phase.

    Attributes:
        is_tuned: whether the learner turned the knobs.
        values: the objective, tick by tick, once it had settled.
    """

    is_tuned: bool
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Proof:
    """How tuned phases stand against those at the baseline.

    Attributes:
        pairs: of phases; the independent samples that the interval rests on.
        baseline_mean: over the phases' means.
        tuned_mean: ditto.
        baseline_ticks: that count.
        tuned_ticks: ditto.
        baseline_samples: independent samples that these ticks are worth, autocorrelation allowed for.
        tuned_samples: ditto.
        gain: relative, above zero is better whichever way the objective points; None with too few pairs.
        gain_low: lower end of its interval; None where it has none.
        gain_high: upper end, or None.
        confidence: of the interval.
        p_value: of no difference; None with too few pairs.
        claim: "gain" or "loss" where the interval does not hold zero, else "none".
        method: how it was compared.
    """

    pairs: int
    baseline_mean: float | None
    tuned_mean: float | None
    baseline_ticks: int
    tuned_ticks: int
    baseline_samples: int
    tuned_samples: int
    gain: float | None
    gain_low: float | None
    gain_high: float | None
    confidence: float
    p_value: float | None
    claim: Claim
    method: str = _METHOD

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return asdict(self)

    @property
    def words(self) -> str:
        """One line for people."""
        if self.gain is None or self.gain_low is None or self.gain_high is None:
            count = "1 pair" if self.pairs == 1 else f"{self.pairs} pairs"
            return f"after {count} of phases there is no interval yet; nothing is claimed"
        interval = f"{self.gain_low:+.1%} to {self.gain_high:+.1%} at {self.confidence:.0%}"
        if self.claim == "none":
            return f"nothing is claimed: {self.gain:+.1%} ({interval}), {self.pairs} pairs of phases"
        return f"{self.claim}: {self.gain:+.1%} ({interval}), {self.pairs} pairs of phases"


def judge(phases: Sequence[Phase], objective: Objective, p_value: float) -> Proof:
    """The verdict on phases in the order they were run, the first with the second, the third with the fourth.

    Args:
        phases: of each pair one is tuned; what is left of a broken pair is dropped. None is empty.
        objective: says which direction is better.
        p_value: 1 minus the interval's confidence.
    """
    pairs = list(zip(phases[::2], phases[1::2], strict=False))
    assert all(one.is_tuned != other.is_tuned for one, other in pairs), "a pair has one phase of each kind"
    baseline = [one if not one.is_tuned else other for one, other in pairs]
    tuned = [one if one.is_tuned else other for one, other in pairs]
    means = [fmean(one.values) for one in baseline], [fmean(one.values) for one in tuned]
    gain = low = high = found = None
    claim: Claim = "none"
    if len(pairs) >= PAIRS_MIN and fmean(means[0]):
        found = compare_pairs(*means, p_value)
        sign = objective.sign * (1 if fmean(means[0]) > 0 else -1)
        gain, low, high = sign * found.gain_relative, found.gain_low, found.gain_high
        if sign < 0 and low is not None and high is not None:
            low, high = -high, -low
        if low is not None and high is not None:
            claim = "gain" if low > 0 else "loss" if high < 0 else "none"
    return Proof(
        pairs=len(pairs),
        baseline_mean=fmean(means[0]) if pairs else None,
        tuned_mean=fmean(means[1]) if pairs else None,
        baseline_ticks=sum(len(one.values) for one in baseline),
        tuned_ticks=sum(len(one.values) for one in tuned),
        baseline_samples=_samples(baseline),
        tuned_samples=_samples(tuned),
        gain=gain,
        gain_low=low,
        gain_high=high,
        confidence=1 - p_value,
        p_value=None if found is None else found.p_value,
        claim=claim,
    )


def _samples(phases: Sequence[Phase]) -> int:
    """Independent samples of all ticks: by how they depend on each other around the mean of their phase."""
    around = [value - mean for one in phases for mean in (fmean(one.values),) for value in one.values]
    return max(analyze(around, whole=True).independent_samples, len(phases)) if around else 0
