"""The comparison in turns: two systems run pair by pair, and a test that may be asked after every pair.

Every comparison of two goes through here. `Gain` knows which way the objective is better, and on what scale
the scores are compared, so that nobody else turns a sign: above zero is better.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from random import Random
from statistics import fmean, geometric_mean
from typing import TYPE_CHECKING, Literal

import msgspec
import numpy as np

from ascar import _core
from ascar.errors import InputError
from ascar.objective import Direction  # noqa: TC001  # the struct's types are read at run time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from ascar._core import SequentialComparison
    from ascar.results.verdict import VerdictEnd, VerdictKind

PAIRS_MIN = 2
ESTIMATES: tuple[str, ...] = (
    *("gain_relative", "gain_low", "gain_high"),
    *("difference", "difference_low", "difference_high"),
)
"""Keys of a gain's estimates in documents."""
_PAIRS_MOST = 100_000
_LOG_MAX = 700.0

Side = Literal["reference", "candidate"]
Order = tuple[Side, Side]
Scores = tuple[float | None, float | None]
"""Of the reference and of the candidate in one pair; None: that run has none."""
Decision = Literal["better", "worse", "equivalent", "not-better", "open"]
_Estimate = tuple[float, float | None, float | None]

_ENDS: dict[VerdictEnd, str] = {
    "separated": "they are told apart",
    "equivalent": "they are shown to differ by less than {margin:.1%}",
    "not-better": "the candidate is shown to be less than {margin:.1%} better",
    "runs-max": "the most pairs that are allowed were made without a decision",
    "time": "the time was spent without a decision",
    "failures": "a run had no score to compare",
}


class Gain(msgspec.Struct, frozen=True):
    """How a candidate stands against a reference after so many pairs; above zero is better.

    Intervals and p-value hold at all looks together.

    Attributes:
        direction: the direction of the objective.
        scale: the scale of the comparison. "ratio": the ratio of the geometric means, if all scores are above
            zero. "difference": the difference of the means in the objective's unit, if some are not.
        gain_relative: change over the reference, e.g. 0.31; None on the scale of differences.
        gain_low: lower end of its interval; None where it has no end yet.
        gain_high: upper end, or None.
        difference: the difference of the means in the objective's unit, on either scale.
        difference_low: lower end of its interval, or None.
        difference_high: upper end, or None.
        confidence: the confidence of the intervals.
        p_value: always-valid, two-sided: the smallest level at which this look tells the two apart.
        pairs: the number of pairs that were compared.
        decision: "better" or "worse": told apart; "equivalent": they differ by less than the margin;
            "not-better": the candidate is less than the margin better, and may be worse; "open": not decided.
    """

    direction: Direction
    scale: Literal["ratio", "difference"]
    gain_relative: float | None
    gain_low: float | None
    gain_high: float | None
    difference: float
    difference_low: float | None
    difference_high: float | None
    confidence: float
    p_value: float
    pairs: int
    decision: Decision

    @classmethod
    def of(
        cls,
        reference: Sequence[float],
        candidate: Sequence[float],
        direction: Direction,
        level: float,
        margin: float | None = None,
    ) -> Gain:
        """Compare runs of the candidate with those of the reference, the i-th with the i-th.

        A mixture of Student t likelihood ratios of the pairs' differences (Lai 1976; Wang and Ramdas 2025):
        exact for normal ones from the second pair on, and what both runs of a pair share cancels. Of scores
        above zero the logarithms are compared: a machine that grows slower slows both sides by the same
        factor, and noise grows with the score.

        Args:
            reference: scores of what has to be beaten, at least two.
            candidate: the candidate's scores, as many as the reference's.
            direction: the direction of the objective.
            level: probability, over all looks together, of calling equal means different.
            margin: difference that does not matter, as a share of the reference; None: only a candidate that
                is told apart is decided.

        Raises:
            InputError: too few scores, numbers of them that differ, or one that is not finite.
        """
        before, after = np.asarray(reference, np.float64), np.asarray(candidate, np.float64)
        if before.size != after.size:
            raise InputError(
                f"pairs: {before.size} runs of the reference, {after.size} of the candidate; "
                "give as many of each"
            )
        sign = 1 if direction == "maximize" else -1
        plain = _tested(after, before, level)
        difference = _oriented(sign, plain.difference, plain.ci_low, plain.ci_high)
        if (before > 0).all() and (after > 0).all():
            found = _tested(np.log(after), np.log(before), level)
            ratio, *limits = _exponential(found)
            relative = _oriented(sign, ratio - 1, *(None if one is None else one - 1 for one in limits))
        else:
            found, relative = plain, (None, None, None)
            same = plain.ci_low == plain.ci_high == 0
            limits = [1.0, 1.0] if same else [plain.ratio_ci_low, plain.ratio_ci_high]
        decision: Decision = "open"
        if found.verdict in ("greater", "less"):
            decision = "better" if (found.verdict == "greater") == (sign > 0) else "worse"
        elif margin is not None and None not in limits:
            decision = _within(margin, *_gains_of(sign, before, *limits))
        return cls(
            direction,
            "difference" if relative[0] is None else "ratio",
            *relative,
            *difference,
            confidence=1 - level,
            p_value=found.p_value,
            pairs=int(before.size),
            decision=decision,
        )

    @classmethod
    def untested(cls, reference: float, candidate: float, direction: Direction) -> Gain:
        """The gain between two means that were not measured in turns: an estimate without an interval."""
        sign = 1 if direction == "maximize" else -1
        is_ratio = reference > 0 and candidate > 0
        return cls(
            direction,
            "ratio" if is_ratio else "difference",
            *(sign * (candidate / reference - 1) if is_ratio else None, None, None),
            *(sign * (candidate - reference), None, None),
            confidence=0.0,
            p_value=1.0,
            pairs=0,
            decision="open",
        )

    @property
    def estimate(self) -> float:
        """The gain on the scale that was compared."""
        return self.difference if self.gain_relative is None else self.gain_relative

    @property
    def interval(self) -> tuple[float, float] | None:
        """Limits of the estimate, the lower one first; None while there are none."""
        relative, plain = (self.gain_low, self.gain_high), (self.difference_low, self.difference_high)
        low, high = plain if self.gain_relative is None else relative
        return None if low is None or high is None else (low, high)

    @property
    def words(self) -> str:
        """For people: "+31.2% (99% interval +25.0% to +37.1%)"; a difference is in the objective's unit."""
        if self.interval is None:
            return self.figure(self.estimate)
        low, high = map(self.figure, self.interval)
        return f"{self.figure(self.estimate)} ({100 * self.confidence:.6g}% interval {low} to {high})"

    def estimates(self) -> dict[str, float | None]:
        """The gain and its limits on both scales, by the keys that documents have."""
        return {key: getattr(self, key) for key in ESTIMATES}

    def figure(self, value: float) -> str:
        """A value on the scale that was compared, with its sign: "+31.2%", "-4.21"."""
        return f"{value:+.4g}" if self.gain_relative is None else f"{value:+.1%}"


def _tested(a: NDArray[np.float64], b: NDArray[np.float64], level: float) -> SequentialComparison:
    try:
        return _core.sequential_pairs(a, b, alpha=level)
    except ValueError as error:
        raise InputError(str(error)) from error


def _exponential(found: SequentialComparison) -> _Estimate:
    """A difference of logarithms, and its limits, as a ratio."""
    if not isfinite(found.ci_high):
        return float(np.exp(found.difference)), None, None
    limits = [max(-_LOG_MAX, min(one, _LOG_MAX)) for one in (found.ci_low, found.ci_high)]
    value, low, high = np.exp([found.difference, *limits]).tolist()
    return value, low, high


def _oriented(sign: int, value: float, low: float | None, high: float | None) -> _Estimate:
    """Above zero is better, the lower limit first; the one place where a sign is turned."""
    if low is None or high is None or not (isfinite(low) and isfinite(high)):
        return sign * value, None, None
    return sign * value, min(sign * low, sign * high), max(sign * low, sign * high)


def _gains_of(
    sign: int, reference: NDArray[np.float64], low: float | None, high: float | None
) -> tuple[float, float]:
    """Limits of a ratio as limits of the gain, a share of the reference's size."""
    assert low is not None
    assert high is not None
    turn = sign if reference.mean() > 0 else -sign  # half of a negative reference is more than it
    first, last = turn * (low - 1), turn * (high - 1)
    return min(first, last), max(first, last)


def _within(margin: float, low: float, high: float) -> Decision:
    """What limits of a gain say of a difference that does not matter."""
    if high >= margin:
        return "open"
    return "equivalent" if low > -margin else "not-better"


@dataclass(frozen=True, slots=True)
class PairTest:
    """What decides a comparison, and when it ends at the latest.

    Attributes:
        level: probability, over all looks together, of calling equal ones different.
        margin: relative difference that does not matter; 0: only a candidate that is told apart is decided.
        pairs_min: the number of pairs before the first decision: two pairs that agree have an interval, but a
            wide one.
        pairs_max: the largest number of pairs.
        failure_ends: whether a run without a score ends it; else its pair is left out.
    """

    level: float = 0.01
    margin: float = 0.01
    pairs_min: int = 8
    pairs_max: int = 20
    failure_ends: bool = True

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises:
            InputError: too few pairs, or far too many.
        """
        if not PAIRS_MIN <= self.pairs_max <= _PAIRS_MOST:
            raise InputError(f"pairs = {self.pairs_max}: must be from {PAIRS_MIN} to {_PAIRS_MOST}")
        if not self.pairs_min >= PAIRS_MIN:
            raise InputError(f"pairs_min = {self.pairs_min}: must be {PAIRS_MIN} or more")


@dataclass(frozen=True, slots=True)
class InTurns:
    """A comparison in turns: after a pair, or at its end.

    Attributes:
        gain: the gain of the candidate over the reference; None if too few pairs could be compared.
        reference: the reference's scores in the pairs with two scores, in the order taken.
        candidate: the other's in the same pairs.
        made: pairs that were run, those without a score included.
        ended: why it ended; None while it goes on.
        test: the test of the comparison.
    """

    gain: Gain | None
    reference: tuple[float, ...]
    candidate: tuple[float, ...]
    made: int
    ended: VerdictEnd | None
    test: PairTest

    @property
    def improved(self) -> bool:
        """Whether the candidate is shown to be better."""
        return self.kind == "improved"

    @property
    def kind(self) -> VerdictKind:
        """What the comparison comes to, in the word that documents use."""
        if self.gain is None or self.ended in (None, "failures"):
            return "not-verified"
        if self.gain.decision == "better":
            return "improved"
        return "undecided" if self.gain.decision == "open" else "default-is-fine"

    @property
    def means(self) -> tuple[float, float] | None:
        """Of the reference's scores and of the candidate's."""
        return (fmean(self.reference), fmean(self.candidate)) if self.reference else None

    @property
    def note(self) -> str:
        """Why it ended, in words."""
        return "" if self.ended is None else _ENDS[self.ended].format(margin=self.test.margin)


def alternating(pair: int) -> Order:
    """Reference first, then candidate first, and so on: a drift favours neither."""
    return ("candidate", "reference") if pair % 2 else ("reference", "candidate")


def drawn(seed: int) -> Callable[[int], Order]:
    """An order that is drawn for each pair: no habit of the machine keeps time with it."""
    random = Random(seed)  # noqa: S311  # no secret
    return lambda _: ("candidate", "reference") if random.random() < 0.5 else ("reference", "candidate")


def taking_turns(
    run: Callable[[Side], float | None],
    order: Callable[[int], Order] = alternating,
    *,
    first: int = 0,
) -> Iterator[Scores]:
    """Run pair after pair, without end; where the first run of a pair has no score the second is not made.

    Args:
        run: settles and runs one side; its score, or None where it has none.
        order: the order of the runs of a pair, by its number.
        first: number of the first pair.
    """
    pair = first
    while True:
        scores: dict[Side, float | None] = {}
        for side in order(pair):
            scores[side] = run(side)
            if scores[side] is None:
                break
        yield scores.get("reference"), scores.get("candidate")
        pair += 1


def compare_in_turns(
    pairs: Iterable[Scores],
    direction: Direction,
    test: PairTest,
    *,
    known: Sequence[Scores] = (),
    over: Callable[[InTurns], bool] = lambda _: False,
    told: Callable[[InTurns], None] = lambda _: None,
) -> InTurns:
    """Take pairs until the two are told apart or shown to be equivalent, or there are enough of them.

    The test is made for repeated looks: ending at the first that decides keeps its level.

    Args:
        pairs: run when they are asked for, see `taking_turns`; where they end, the comparison does.
        direction: the direction of the objective.
        test: the test of the comparison.
        known: pairs that were made before, by a part that was interrupted.
        over: asked when a pair is over whether the time is spent.
        told: hears of each new pair.
    """
    made = list(known)
    source = iter(pairs)
    now = _looked(made, direction, test, over)
    while now.ended is None:
        pair = next(source, None)
        if pair is None:
            return _looked(made, direction, test, over, exhausted=True)
        made.append(pair)
        now = _looked(made, direction, test, over)
        told(now)
    return now


def _looked(
    made: Sequence[Scores],
    direction: Direction,
    test: PairTest,
    over: Callable[[InTurns], bool],
    *,
    exhausted: bool = False,
) -> InTurns:
    """What the pairs show, and whether that is enough."""
    whole = [(one, other) for one, other in made if one is not None and other is not None]
    reference, candidate = tuple(one for one, _ in whole), tuple(other for _, other in whole)
    gain = None
    if len(whole) >= PAIRS_MIN:
        gain = Gain.of(reference, candidate, direction, test.level, test.margin or None)
    now = InTurns(gain, reference, candidate, len(made), None, test)
    ended: VerdictEnd | None = None
    if test.failure_ends and len(whole) < len(made):
        ended = "failures"
    elif gain is not None and gain.decision != "open" and len(made) >= test.pairs_min:
        ended = gain.decision if gain.decision in ("equivalent", "not-better") else "separated"
    elif exhausted or len(made) >= test.pairs_max:
        ended = "runs-max"
    elif len(made) >= test.pairs_min and not whole:
        ended = "failures"
    elif over(now):
        ended = "time"
    return InTurns(gain, reference, candidate, len(made), ended, test)


def mean_at_any_time(values: Sequence[float], level: float) -> tuple[float, float] | None:
    """Limits of the mean of independent runs that hold after every run; None where nothing can be said.

    Those of runs above zero are of their geometric mean, and above zero too.
    """
    if len(values) < PAIRS_MIN:
        return None
    runs = np.asarray(values, np.float64)
    positive = bool((runs > 0).all())
    found = _tested(np.log(runs) if positive else runs, np.zeros_like(runs), level)
    limits = np.array([found.ci_low, found.ci_high])
    if not np.isfinite(limits).all():
        return None
    low, high = np.exp(np.clip(limits, -_LOG_MAX, _LOG_MAX)) if positive else limits
    return float(low), float(high)


def mean_of_runs(values: Sequence[float]) -> float:
    """The mean of runs as comparisons see it: the geometric one if all are above zero."""
    return geometric_mean(values) if min(values) > 0 else fmean(values)


def estimates_of(found: InTurns | None) -> dict[str, float | None]:
    """The gain that a comparison shows, with its limits; all None where it shows none."""
    if found is None or found.gain is None:
        return dict.fromkeys(ESTIMATES)
    return found.gain.estimates()
