"""Which of several is better: ranked, neighbours compared (Li's thesis, section 4.2.4).

The contestants run in turns (Fig. 4.4), and the i-th round of one is paired with the i-th of its neighbour
in the ranking: what a block of rounds shares, such as a drift of the machine, cancels in a pair. After each
block neighbours are compared by the always-valid test of pairs (`crates/statistics`, `paired`), so that
looking as often as one likes keeps the error that was stated; Welch's test does not.

Which two are neighbours depends on the readings, and any two may become neighbours. The level is therefore
divided by the number of all pairs, k (k - 1) / 2: the probability that anything at all is told apart, or
called equal, wrongly is at most p (Bonferroni).

That holds for pairs that are independent of each other. A contestant that wanders on its own from round to
round is the hard case: its correlation is looked for and merged away, but a few rounds do not show it.
"""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np

from ascar import _core
from ascar.errors import InputError
from ascar.pilot.analysis import analyze
from ascar.results.measurement import Measurement

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

Verdict = Literal["separated", "equivalent", "undecided", "no-interval"]

# Fewer differences tell nothing of their correlation.
_CORRELATION_READ_MIN = 8
_CORRELATION_LIMIT = 0.2
_ROUNDS_MORE_MAX = 10_000_000


@dataclass(frozen=True, slots=True)
class ComparisonTerms:
    """What telling contestants apart means.

    Attributes:
        p: probability, over all pairs and looks together, of a wrong verdict.
        margin: relative difference that does not matter.
        rounds_min: rounds of each before anything is decided.
        lower_is_better: whether a lower value is better, as for durations.
    """

    p: float = 0.01
    margin: float = 0.01
    rounds_min: int = 10
    lower_is_better: bool = False

    def __post_init__(self) -> None:
        """Check the terms.

        Raises:
            InputError: a number is out of its range.
        """
        if not 0 < self.p < 1:
            raise InputError(f"p = {self.p!r}: must be between 0 and 1, e.g. 0.01")
        if not 0 < self.margin < 1:
            raise InputError(f"margin = {self.margin!r}: must be above 0 and below 1, e.g. 0.01 for 1%")
        if self.rounds_min < 1:
            raise InputError(f"rounds_min = {self.rounds_min!r}: must be at least 1")

    @classmethod
    def of(
        cls, preset: str, *, p: float = 0.01, margin: float | None = None, lower_is_better: bool = False
    ) -> ComparisonTerms:
        """A preset's margin and fewest rounds; a margin that is not None in its place.

        Raises:
            InputError: there is no such preset, or a number is out of its range.
        """
        if preset not in _PRESETS:
            raise InputError(f"preset = {preset!r}: must be one of {', '.join(_PRESETS)}")
        known, rounds_min = _PRESETS[preset]
        return cls(p, known if margin is None else margin, rounds_min, lower_is_better)

    def level(self, contestants: int) -> float:
        """Of the comparison of one pair, where any two may become neighbours."""
        return self.p / max(math.comb(contestants, 2), 1)


# Margin, and the fewest rounds.
_PRESETS = {"quick": (0.05, 6), "normal": (0.01, 10), "strict": (0.005, 20)}


@dataclass(frozen=True, slots=True)
class Pair:
    """Two neighbours in the ranking.

    Attributes:
        better: the contestant that is ahead, whether or not that is more than chance.
        worse: the next.
        ratio: mean of the one ahead over mean of the next; None before both have a reading.
        ratio_low: lower end of its interval, valid at all looks where they were repeated; None: there is
            none.
        ratio_high: upper end, or None.
        p_value: the p-value of equal means, as valid as the interval; None: unknown.
        samples: pairs of rounds, or independent samples of the side with fewer.
        verdict: "separated"; "equivalent": they differ by less than the margin; "undecided", which more
            rounds would cure; "no-interval": nothing honest can be said.
        method: the method of the comparison.
        more: about how many more rounds, or readings, of each would decide; None: nothing tells, or it is
            decided.
    """

    better: int
    worse: int
    ratio: float | None
    ratio_low: float | None
    ratio_high: float | None
    p_value: float | None
    samples: int
    verdict: Verdict
    method: str
    more: int | None = None

    @property
    def decided(self) -> bool:
        """Whether more rounds would change nothing."""
        return self.verdict in ("separated", "equivalent")


@dataclass(frozen=True, slots=True)
class Standing:
    """A ranking.

    Attributes:
        order: contestants, the best first.
        pairs: neighbours in it, from the top.
    """

    order: tuple[int, ...]
    pairs: tuple[Pair, ...]

    @property
    def decided(self) -> bool:
        """Whether all neighbours are told apart or shown not to differ by more than the margin."""
        return all(pair.decided for pair in self.pairs)

    @property
    def ranks(self) -> tuple[int, ...]:
        """In the order of `order`; what is not separated from the one ahead shares its rank."""
        ranks = [1]
        for place, pair in enumerate(self.pairs, start=2):
            ranks.append(place if pair.verdict == "separated" else ranks[-1])
        return tuple(ranks)


@dataclass(slots=True)
class Contest:
    """Blocks of rounds, one round a contestant that ran, and what they say.

    Attributes:
        contestants: the number of contestants.
        terms: the terms of the comparison.
    """

    contestants: int
    terms: ComparisonTerms
    _blocks: list[list[float]] = field(default_factory=list["list[float]"], repr=False)

    def add(self, block: Mapping[int, float]) -> None:
        """Take in one block: what each contestant that ran read.

        Raises:
            InputError: a reading is not a finite number.
        """
        for reading in block.values():
            if not math.isfinite(reading):
                raise InputError(f"a reading = {reading!r}: must be a finite number")
        self._blocks.append([block.get(index, math.nan) for index in range(self.contestants)])

    def __len__(self) -> int:
        return len(self._blocks)

    def values(self, contestant: int) -> NDArray[np.float64]:
        """What a contestant read, in order."""
        column = np.array([block[contestant] for block in self._blocks], np.float64)
        return column[~np.isnan(column)]

    def measurement(self, contestant: int, confidence: float = 0.95) -> Measurement:
        """A contestant's mean on its own, with an interval that holds at all looks.

        Raises:
            InputError: it has no reading yet, or the confidence is impossible.
        """
        values = self.values(contestant)
        if len(values) < 2:
            return analyze(values, confidence)
        merged, zeros, size = means_of_subsessions(values, np.zeros(len(values)))
        limits = _core.sequential_pairs(merged, zeros, alpha=1 - confidence)
        known = math.isfinite(limits.ci_low) and math.isfinite(limits.ci_high)
        return Measurement(
            mean=float(values.mean()),
            ci_low=limits.ci_low if known else None,
            ci_high=limits.ci_high if known else None,
            confidence=confidence,
            n=len(values),
            independent_samples=len(merged),
            autocorrelation=_core.autocorrelation(values),
            subsession_size=size,
            stable_start=0,
            stable_end=len(values),
            method="always-valid interval",
            reason="" if known else "too few rounds for an interval that holds at every look",
        )

    def standing(self) -> Standing:
        """Rank all, and compare neighbours."""
        table = np.array(self._blocks, np.float64).reshape(len(self._blocks), self.contestants)
        order = self._ranked(table)
        level = self.terms.level(self.contestants)
        pairs = tuple(_compared(table, pair, self.terms, level) for pair in itertools.pairwise(order))
        return Standing(order, pairs)

    def undecided(self, standing: Standing) -> frozenset[int]:
        """Contestants that have to go on; one that is decided against both neighbours may rest."""
        return frozenset(
            contestant
            for pair in standing.pairs
            if not pair.decided
            for contestant in (pair.better, pair.worse)
        )

    def _ranked(self, table: NDArray[np.float64]) -> tuple[int, ...]:
        """The best first; two are compared over the blocks in which both ran."""

        def ahead(one: int, other: int) -> int:
            both = table[:, [one, other]]
            both = both[~np.isnan(both).any(axis=1)]
            gap = float((both[:, 0] - both[:, 1]).mean()) if len(both) else 0.0
            return int(np.sign(gap if self.terms.lower_is_better else -gap))

        return tuple(sorted(range(self.contestants), key=functools.cmp_to_key(ahead)))


def _compared(
    table: NDArray[np.float64], pair: tuple[int, int], terms: ComparisonTerms, level: float
) -> Pair:
    """Two neighbours, by the rounds of the blocks in which both ran."""
    both = table[:, list(pair)]
    both = both[~np.isnan(both).any(axis=1)]
    a, b, size = means_of_subsessions(both[:, 0], both[:, 1])
    method = "always-valid test of pairs" + (f" of subsessions of {size} rounds" if size > 1 else "")
    if len(a) < 2:
        return Pair(*pair, None, None, None, None, len(both), "undecided", method)
    found = _core.sequential_pairs(a, b, alpha=level, margin=terms.margin)
    verdict: Verdict = "undecided"
    # Two that read the same every time, such as no errors at all, have no ratio where that is zero.
    same = found.ci_low == found.ci_high == 0
    if len(both) >= terms.rounds_min and (same or found.verdict != "undecided"):
        verdict = "equivalent" if same or found.verdict == "equivalent" else "separated"
    limits = found.ratio_ci_low, found.ratio_ci_high
    return Pair(
        *pair,
        found.ratio if math.isfinite(found.ratio) else None,
        *limits,
        found.p_value,
        len(both),
        verdict,
        method,
        _outlook(limits, len(both), terms) if verdict == "undecided" else None,
    )


def means_of_subsessions(
    a: Sequence[float] | NDArray[np.float64], b: Sequence[float] | NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], int]:
    """Paired rounds merged until the differences of neighbours are no longer correlated (section 4.2.2).

    What a pair shares has cancelled by then, so there is rarely anything left to merge; a contestant that
    drifts on its own, such as one that warms up more slowly, leaves correlation, and then the rounds are not
    independent. Correlation counts from 0.2 on, its estimate corrected for its bias (Kendall 1954, "Note on
    bias in the estimation of autocorrelation").

    Args:
        a: (n,) one side.
        b: (n,) the other.

    Returns:
        (n // size,) means of each side, and the size.
    """
    left, right, size = np.array(a, np.float64), np.array(b, np.float64), 1
    while len(left) >= _CORRELATION_READ_MIN:
        differences = left / (abs(left.mean()) or 1.0) - right / (abs(right.mean()) or 1.0)
        if not differences.std() > 0:
            break
        found = _core.autocorrelation(differences)
        if found + (1 + 4 * found) / len(differences) <= _CORRELATION_LIMIT:
            break
        # The oldest odd round is left out: later ones are the warmer.
        left, right = (side[len(side) % 2 :].reshape(-1, 2).mean(axis=1) for side in (left, right))
        size *= 2
    return left, right, size


def _outlook(limits: tuple[float | None, float | None], samples: int, terms: ComparisonTerms) -> int | None:
    """About how many more samples would decide: an interval narrows with the square root of their number.

    Args:
        limits: the present limits of the ratio.
        samples: the number of samples behind them.
        terms: the terms of the comparison.
    """
    low, high = limits
    if low is None or high is None or samples < 2:
        return None
    gap, half = abs((low + high) / 2 - 1), (high - low) / 2
    wanted = max(gap, terms.margin - gap)
    more = samples * ((half / wanted) ** 2 - 1) if wanted > 0 else _ROUNDS_MORE_MAX
    return math.ceil(min(max(more, terms.rounds_min - samples, 1), _ROUNDS_MORE_MAX))
