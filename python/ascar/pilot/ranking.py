"""Recorded readings ranked: intervals that do not overlap, else Welch's test (Li's thesis, section 4.2.4).

Looked at once, so tests made for one look hold. What enters is the stable phase of each series, with the
independent samples that it is worth.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ascar import _core
from ascar.errors import InputError
from ascar.pilot.analysis import analyze
from ascar.pilot.contest import ComparisonTerms, Pair, Standing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from ascar.results.measurement import Measurement

_POWER = 0.8


@dataclass(frozen=True, slots=True)
class RecordedRanking:
    """Series ranked by their means.

    Attributes:
        measurements: the measurement of each series, in the order given, for display.
        standing: the ranking.
    """

    measurements: tuple[Measurement, ...]
    standing: Standing


def rank(series: Sequence[ArrayLike], terms: ComparisonTerms, confidence: float = 0.95) -> RecordedRanking:
    """Rank recorded series, and compare neighbours.

    Args:
        series: (n_i,) readings each, in the order they were taken; at least two series.
        terms: p over all pairs together, and the margin.
        confidence: the confidence of the displayed intervals; the compared ones have 1 - p, shared among
            pairs.

    Raises:
        InputError: fewer than two series, or readings that are not finite numbers.
    """
    if len(series) < 2:
        raise InputError(f"{len(series)} series to compare: give at least two")
    level = terms.level(len(series))
    return rank_means(
        [analyze(values, 1 - level) for values in series],
        tuple(analyze(values, confidence) for values in series),
        terms,
    )


def rank_means(
    strict: Sequence[Measurement], shown: tuple[Measurement, ...], terms: ComparisonTerms
) -> RecordedRanking:
    """Rank means that are known, and compare neighbours.

    Args:
        strict: at least two means, with intervals of the level that the terms ask for.
        shown: the same with the intervals to show.
        terms: p over all pairs together, and the margin.
    """
    level = terms.level(len(strict))
    sign = 1 if terms.lower_is_better else -1
    order = tuple(sorted(range(len(strict)), key=lambda index: sign * strict[index].mean))
    pairs = tuple(_compared((a, b), strict, terms, level) for a, b in itertools.pairwise(order))
    return RecordedRanking(shown, Standing(order, pairs))


def _compared(
    pair: tuple[int, int], found: Sequence[Measurement], terms: ComparisonTerms, level: float
) -> Pair:
    a, b = found[pair[0]], found[pair[1]]
    ratio = a.mean / b.mean if b.mean else None
    samples = min(a.independent_samples, b.independent_samples)
    if a.ci_low is None or a.ci_high is None or b.ci_low is None or b.ci_high is None or samples < 2:
        return Pair(*pair, ratio, None, None, None, samples, "no-interval", "none")
    variances = [(one.standard_error or 0.0) ** 2 * one.independent_samples for one in (a, b)]
    sides = [(one.mean, v, float(one.independent_samples)) for one, v in zip((a, b), variances, strict=True)]
    welch = _core.welch_samples(sides[0], sides[1], 1 - level)
    limits = welch.ratio_ci_low, welch.ratio_ci_high
    apart = a.ci_low > b.ci_high or a.ci_high < b.ci_low
    if apart or welch.p_value < level:
        verdict = "separated"
    elif a.ci_low == a.ci_high == b.ci_low == b.ci_high or (
        limits[0] is not None and limits[1] is not None and _near(limits[0], limits[1], terms.margin)
    ):
        verdict = "equivalent"
    else:
        verdict = "undecided"
    return Pair(
        *pair,
        ratio,
        *limits,
        welch.p_value,
        samples,
        verdict,
        "intervals apart" if apart else "Welch's test",
        _more(a, b, variances, level) if verdict == "undecided" else None,
    )


def _near(low: float, high: float, margin: float) -> bool:
    return low > 1 - margin and high < 1 + margin


def _more(a: Measurement, b: Measurement, variances: Sequence[float], level: float) -> int | None:
    """Readings that the side with fewer independent samples would have to add."""
    if a.mean == b.mean:
        return None
    sds = [math.sqrt(variance) for variance in variances]
    wanted = _core.welch_sample_size(a.mean, sds[0], b.mean, sds[1], level, _POWER)
    return max(math.ceil(wanted * one.n / one.independent_samples - one.n) for one in (a, b))
