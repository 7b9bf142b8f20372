"""Two systems run in turns and compared after every pair of runs, by a test that may be repeated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from ascar import _core
from ascar.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["PAIRS_MIN", "PairComparison", "compare_pairs", "mean_at_any_time"]

PAIRS_MIN = 2
_LOG_MAX = 700.0
Decision = Literal["higher", "lower", "equivalent", "open"]


@dataclass(frozen=True, slots=True)
class PairComparison:
    """How b stands against a after so many pairs; limits and p-value hold at all looks together.

    Attributes:
        gain_relative: mean of b over mean of a, minus one; of scores above zero geometric means.
        gain_low: lower end of its interval (confidence 1 - level); None where it has no end yet.
        gain_high: upper end, or None.
        p_value: always-valid, two-sided: the smallest level at which this look tells the two apart.
        pairs: how many were compared.
        decision: "higher": b's mean is above a's; "lower": below; "equivalent": they differ by less than the
            margin; "open": not decided.
    """

    gain_relative: float
    gain_low: float | None
    gain_high: float | None
    p_value: float
    pairs: int
    decision: Decision


def compare_pairs(
    a: Sequence[float], b: Sequence[float], level: float, margin: float | None = None
) -> PairComparison:
    """Compare runs of b with those of a, the i-th with the i-th; may be asked after every pair.

    A mixture of Student t likelihood ratios of the pairs' differences (Lai 1976; Wang and Ramdas 2025): exact
    for normal ones from the second pair on, and what both runs of a pair share cancels. Of scores above zero
    the logarithms are compared: a machine that grows slower slows both sides by the same factor, and noise
    grows with the score. The ratio is then that of the geometric means; else that of the means (Fieller).

    Args:
        a: scores of the one, at least two.
        b: scores of the other, as many.
        level: probability, over all looks together, of calling equal means different.
        margin: relative difference that does not matter; None never calls two equivalent.

    Raises:
        InputError: too few scores, numbers of them that differ, or one that is not finite.
    """
    left, right = np.asarray(a, np.float64), np.asarray(b, np.float64)
    if left.size != right.size:
        raise InputError(f"pairs: {left.size} runs of a, {right.size} of b; give as many of each")
    positive = bool((left > 0).all() and (right > 0).all())
    if positive:
        left, right = np.log(left), np.log(right)
    try:
        found = _core.sequential_pairs(right, left, alpha=level)
    except ValueError as error:
        raise InputError(str(error)) from error
    if positive:
        ratio = float(np.exp(found.difference))
        ends = np.exp(np.clip([found.ci_low, found.ci_high], -_LOG_MAX, _LOG_MAX))
        low, high = (float(ends[0]), float(ends[1])) if np.isfinite(found.ci_high) else (None, None)
    else:
        ratio, low, high = found.ratio, found.ratio_ci_low, found.ratio_ci_high
    decision: Decision = "open"
    if found.verdict == "greater":
        decision = "higher"
    elif found.verdict == "less":
        decision = "lower"
    elif (
        margin is not None and low is not None and high is not None and 1 - margin < low <= high < 1 + margin
    ):
        decision = "equivalent"
    return PairComparison(
        gain_relative=ratio - 1,
        gain_low=None if low is None else low - 1,
        gain_high=None if high is None else high - 1,
        p_value=found.p_value,
        pairs=left.size,
        decision=decision,
    )


def mean_at_any_time(values: Sequence[float], level: float) -> tuple[float, float] | None:
    """Limits of the mean of independent runs that hold after every run; None where nothing can be said."""
    if len(values) < PAIRS_MIN:
        return None
    runs = np.asarray(values, np.float64)
    found = _core.sequential_pairs(runs, np.zeros_like(runs), alpha=level)
    return (found.ci_low, found.ci_high) if np.isfinite([found.ci_low, found.ci_high]).all() else None
