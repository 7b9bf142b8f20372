"""The last comparison: the best rules and the system as it is, in turns, on fresh random numbers."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Literal

from ascar.errors import InputError
from ascar.pilot.pairs import PAIRS_MIN, compare_pairs, mean_at_any_time
from ascar.sharp.bench import FRESH, Trial

if TYPE_CHECKING:
    from ascar.sharp.judge import Judge
    from ascar.sharp.rules import RuleSet

__all__ = ["Terms", "Verification", "verify"]

_PAIRS_MOST = 100_000
_TOLD_APART = "they are told apart"
_ENDS = {
    "higher": _TOLD_APART,
    "lower": _TOLD_APART,
    "equivalent": "they are shown to differ by less than the margin",
}


@dataclass(frozen=True, slots=True)
class Terms:
    """When the comparison ends.

    Attributes:
        level: probability, over all looks together, of calling equal ones different.
        margin: relative difference that does not matter.
        pairs_max: runs of each side at most.
        pairs_min: before which nothing is decided: two pairs that agree have an interval, but a wide one.
    """

    level: float = 0.01
    margin: float = 0.01
    pairs_max: int = 20
    pairs_min: int = 8

    def __post_init__(self) -> None:
        """Check the terms.

        Raises:
            InputError: too few pairs, or far too many.
        """
        if not PAIRS_MIN <= self.pairs_max <= _PAIRS_MOST:
            raise InputError(f"pairs = {self.pairs_max}: must be from {PAIRS_MIN} to {_PAIRS_MOST}")


@dataclass(frozen=True, slots=True)
class Verification:
    """What the comparison shows; intervals and p-value hold at all looks together.

    Attributes:
        kind: "improved": better than the system as it is; "default-is-fine": equal, worse, or not told apart;
            "not-verified": nothing could be compared.
        best_mean: score of the rules; None: not measured.
        default_mean: score of the system as it is.
        difference: the former minus the latter, above zero is better whichever way the objective points.
        difference_low: lower end of its interval; None: there is none yet.
        difference_high: upper end.
        gain_relative: the difference over the default's score; None where scores are not all above zero.
        gain_low: lower end of its interval.
        gain_high: upper end.
        p_value: always-valid.
        pairs: compared.
        note: why it ended.
    """

    kind: Literal["improved", "default-is-fine", "not-verified"]
    best_mean: float | None = None
    default_mean: float | None = None
    difference: float | None = None
    difference_low: float | None = None
    difference_high: float | None = None
    gain_relative: float | None = None
    gain_low: float | None = None
    gain_high: float | None = None
    p_value: float | None = None
    pairs: int = 0
    note: str = ""


def verify(judge: Judge, rules: RuleSet, terms: Terms, until_s: float | None = None) -> Verification:
    """Compare rules with the system without any, pair by pair, until told apart or shown to be equal.

    Args:
        judge: runs them.
        rules: the best that was found.
        terms: when to end.
        until_s: end when the search, this included, has taken so long; None: whatever it takes.
    """
    sides: tuple[list[float], list[float]] = [], []
    for pair in range(terms.pairs_max):
        if pair >= PAIRS_MIN and until_s is not None and judge.elapsed_s >= until_s:
            return _concluded(judge, sides, terms, "the time was spent")
        ours, theirs = Trial(rules, FRESH + pair), Trial(None, FRESH + pair)
        order = (ours, theirs) if pair % 2 else (theirs, ours)
        results = dict(zip(order, judge.fetch(order), strict=True))
        scores = [judge.value(results[trial]) for trial in (theirs, ours)]
        if min(scores) == float("-inf"):
            return Verification("not-verified", note="the objective has no value for one of the runs")
        for side, score in zip(sides, scores, strict=True):
            side.append(judge.objective.sign * score)
        if len(sides[0]) >= terms.pairs_min:
            found = compare_pairs(*sides, terms.level, terms.margin)
            if found.decision != "open":
                return _concluded(judge, sides, terms, _ENDS[found.decision])
    return _concluded(judge, sides, terms, "so many pairs did not decide it")


def _concluded(judge: Judge, sides: tuple[list[float], list[float]], terms: Terms, note: str) -> Verification:
    default, best = sides
    sign = judge.objective.sign
    found = compare_pairs(default, best, terms.level, terms.margin)
    improved = found.decision == ("higher" if sign > 0 else "lower")
    differences = [sign * (one - other) for one, other in zip(best, default, strict=True)]
    limits = mean_at_any_time(differences, terms.level) or (None, None)
    positive = min(*default, *best) > 0
    low, high = found.gain_low, found.gain_high
    if sign < 0 and low is not None and high is not None:
        low, high = -high, -low
    return Verification(
        kind="improved" if improved else "default-is-fine",
        best_mean=fmean(best),
        default_mean=fmean(default),
        difference=fmean(differences),
        difference_low=limits[0],
        difference_high=limits[1],
        gain_relative=sign * found.gain_relative if positive else None,
        gain_low=low if positive else None,
        gain_high=high if positive else None,
        p_value=found.p_value,
        pairs=len(best),
        note=note,
    )
