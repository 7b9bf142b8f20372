"""Algorithm 1 of chapter 7: parameters are chosen one by one, each with its interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from msgspec.structs import replace

from ascar.importance.measures import chance, relative_deviation, relative_deviations
from ascar.importance.sums import Blocks, Parts, Sums, centred
from ascar.results.importance import RankedParameter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from ascar.importance.observations import Factor, Observations
    from ascar.importance.sums import Across

    Floats = NDArray[np.float64]

StopReason = Literal["rsd", "no-evidence", "exhausted", "count", "too-fine"]

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class SelectionOptions:
    """How parameters are chosen.

    Attributes:
        rsd_max: the selection ends when no combination of the chosen parameters' values has a greater
            relative standard deviation.
        across: the reduction of a parameter's importance inside each combination of the chosen values to one
            number: "max", the greatest (7.4), or "mean", weighted by rows.
        evidence: end, too, when the interval of the most important one left reaches 0, or when an analysis
            of variance does not find it significant (at 1 - `confidence`, by Bonferroni's rule over all
            parameters left and all combinations).
        count_max: choose at most so many; None: any number.
        resamples: the number of bootstrap resamples; 0: no intervals and no stability.
        confidence: the confidence of the intervals.
        rows_min: leave out a value of a parameter that has fewer rows.
    """

    rsd_max: float = 0.02
    across: Across = "max"
    evidence: bool = True
    count_max: int | None = None
    resamples: int = 200
    confidence: float = 0.95
    rows_min: int = 0


FOR_PEOPLE = SelectionOptions(across="mean", rows_min=10)
"""What reports and `ascar importance` begin with: shares that add up, none of them from a handful of rows."""


@dataclass(frozen=True, slots=True)
class Selection:
    """What came of it.

    Attributes:
        ranking: every parameter but those that are the `same_as` another, the most important first.
        stop_reason: "rsd": configurations in which the chosen ones are equal perform alike; "no-evidence":
            what the next one explains may be chance; "exhausted": no other explains anything; "count":
            as many as were asked for; "too-fine": there are too many combinations to go on.
        stability: share of the resamples in which the chosen ones are chosen in this order (where none is:
            in which the first of the ranking is first); None without resampling.
        rows: the number of rows.
        mean: the mean of the rows.
        variance: the variance of the rows (7.1).
        rsd: relative standard deviation of the rows (6.2).
        rsd_left: the greatest of any combination of the chosen ones' values.
        across: how the reductions inside combinations became one number.
    """

    ranking: tuple[RankedParameter, ...]
    stop_reason: StopReason
    stability: float | None
    rows: int
    mean: float
    variance: float
    rsd: float
    rsd_left: float
    across: Across = "max"

    @property
    def selected(self) -> tuple[str, ...]:
        """The chosen parameters, in their order."""
        return tuple(one.parameter for one in self.ranking if one.selected)

    def shares(self) -> dict[str, tuple[float, float]]:
        """Of each chosen parameter: the share of the variance by itself, and the share of interactions.

        The second is what it explains only together with those chosen before it. With `across` = "mean" each
        step explains a part of what the steps before left, so that all of them sum to at most 1; the greatest
        reductions of "max" are no shares, and there are none.
        """
        if self.across != "mean":
            return {}
        whole = self.variance or 1.0
        found: dict[str, tuple[float, float]] = {}
        for one in self.ranking:
            if one.selected:
                own = min(one.importance, one.importance_alone) / whole
                found[one.parameter] = own, one.importance / whole - own
        return found


def select(observations: Observations, rules: SelectionOptions, rng: np.random.Generator) -> Selection:
    """Choose parameters by their conditional importance until what is left is alike (Algorithm 1).

    Unlike there, none is chosen where all rows are alike from the start, and none without evidence.

    Args:
        observations: the measured rows.
        rules: the options of the selection.
        rng: the random generator of the resampling.
    """
    values = centred(observations)
    blocks = Blocks.draw(len(values), rules.resamples, rng) if rules.resamples else None
    field = _Field(values, blocks, rules, float(values.var()))
    left = observations.factors
    parts, chosen, alone = Parts.by(observations, ()), list[RankedParameter](), dict[str, float]()
    agreed = np.ones(rules.resamples, bool)
    ranked, firsts = field.rank(left, parts, (), alone)
    stable = firsts
    reason: StopReason | None
    while True:
        rsd_left = float(relative_deviations(observations.values, parts).max())
        alike = rsd_left <= rules.rsd_max and parts.sizes.max() > 1  # one row alone says nothing of that
        reason = "rsd" if alike else _reason(rules, ranked, len(chosen), field.least)
        if reason is None and rules.evidence:
            by_chance = chance(observations, ranked[0].parameter, parts, rules.rows_min) * len(left)
            reason = "no-evidence" if by_chance > 1 - rules.confidence else None
        if reason is not None:
            break
        best = observations.factor(ranked[0].parameter)
        equals = {
            one.parameter for one in ranked if abs(one.importance - ranked[0].importance) <= field.least
        }
        same = tuple(one.name for one in left if one is not best and one.name in equals and _same(one, best))
        chosen.append(replace(ranked[0], selected=True, same_as=same))
        agreed &= firsts
        stable = agreed
        left = tuple(one for one in left if one is not best and one.name not in same)
        finer = parts.split(best)
        if not all(Sums.fits(one, finer, blocks) for one in left):
            ranked, reason = ranked[1:], "too-fine"
            break
        parts = finer
        ranked, firsts = field.rank(left, parts, tuple(one.parameter for one in chosen), alone)
    return Selection(
        (*chosen, *ranked),
        reason,
        float(stable.mean()) if rules.resamples else None,
        len(values),
        float(observations.values.mean()),
        float(values.var()),
        relative_deviation(observations.values),
        rsd_left,
        rules.across,
    )


def _reason(
    rules: SelectionOptions, ranked: Sequence[RankedParameter], chosen: int, least: float
) -> StopReason | None:
    """Why no other parameter is chosen although the rows are not alike; None: one is."""
    if rules.count_max is not None and chosen >= rules.count_max:
        return "count"
    if not ranked or ranked[0].importance <= least:
        return "exhausted"
    low = ranked[0].ci_low
    return "no-evidence" if rules.evidence and low is not None and low <= 0 else None


@dataclass(frozen=True, slots=True, eq=False)
class _Field:
    """What does not change from step to step."""

    values: Floats
    blocks: Blocks | None
    rules: SelectionOptions
    variance: float

    @property
    def least(self) -> float:
        """An importance up to this is rounding."""
        return _ROUNDING * self.variance

    def rank(
        self, left: Sequence[Factor], parts: Parts, given: tuple[str, ...], alone: dict[str, float]
    ) -> tuple[list[RankedParameter], NDArray[np.bool_]]:
        """The parameters left, the most important first; and in which resamples the first one is."""
        across, resamples = self.rules.across, self.rules.resamples
        found: list[RankedParameter] = []
        drawn: dict[str, Floats] = {}
        for factor in left:
            sums = Sums.of(factor, parts, self.values, self.blocks, self.rules.rows_min)
            estimate = sums.reduction(across)
            low, high = None, None
            if self.blocks is not None:
                drawn[factor.name] = sums.resampled(self.blocks, across)
                low, high = self._interval(estimate, drawn[factor.name])
            alone.setdefault(factor.name, estimate)
            found.append(RankedParameter(factor.name, estimate, low, high, given, alone[factor.name]))
        # Equals, but for rounding, stay in the order of the columns.
        found.sort(key=lambda one: -float(_rounded(one.importance, self.variance)))
        if self.blocks is None or not found:
            return found, np.zeros(resamples, bool)
        names = [one.parameter for one in found]
        most = np.argmax(_rounded(np.array([drawn[name] for name in names]), self.variance), axis=0)
        shares = np.bincount(most, minlength=len(names)) / resamples
        ranked = [replace(one, first_share=float(share)) for one, share in zip(found, shares, strict=True)]
        return ranked, most == 0

    def _interval(self, estimate: float, drawn: Floats) -> tuple[float, float]:
        """Percentiles of the resamples, moved by their bias.

        Resamples scatter about what the rows show as the rows do about the truth, so the excess of their mean
        over the estimate is that of the estimate over the truth. It is taken off twice: theirs and its own.
        """
        tail = (1 - self.rules.confidence) / 2
        low, high = np.quantile(drawn, [tail, 1 - tail])
        bias = 2 * (float(drawn.mean()) - estimate)
        return max(float(low) - bias, 0.0), max(float(high) - bias, 0.0)


def _rounded(numbers: Floats | float, scale: float) -> Floats:
    """In units of the scale, without what is rounding."""
    return np.round(np.asarray(numbers, np.float64) / (scale or 1.0) / _ROUNDING)


def _same(one: Factor, other: Factor) -> bool:
    """Whether two parameters split the rows in the same way."""
    widths = int(one.codes.max()) + 2, int(other.codes.max()) + 2
    pairs = np.bincount((one.codes + 1) * widths[1] + other.codes + 1, minlength=widths[0] * widths[1])
    held = pairs.reshape(widths) > 0
    return bool((held.sum(0) <= 1).all() and (held.sum(1) <= 1).all())
