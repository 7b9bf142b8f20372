"""Tests of significance that several parts share."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values adjusted for their number, so that one below a level anywhere is that rare.

    Source: Holm, "A Simple Sequentially Rejective Multiple Test Procedure", 1979.
    """
    adjusted, most = [1.0] * len(p_values), 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        most = max(most, min(1.0, p_values[place] * (len(p_values) - rank)))
        adjusted[place] = most
    return adjusted


def signed_rank_p_value(differences: NDArray[np.float64]) -> float:
    """The two-sided p-value of Wilcoxon's signed-rank test (1945); 1 where all pairs are equal.

    Equal pairs are split between both signs, so that they speak for neither side.
    """
    from scipy import stats

    if not differences.any():
        return 1.0
    test = cast("Any", stats).wilcoxon(differences, zero_method="zsplit", method="approx")
    return float(test.pvalue)


def share(successes: int, trials: int, confidence: float = 0.95) -> tuple[float, float, float]:
    """A proportion with its exact interval (Clopper and Pearson 1934); no trials: unknown, from 0 to 1."""
    from scipy.special import betaincinv  # scipy.stats has the same, and takes a second to import

    if trials == 0:
        return math.nan, 0.0, 1.0
    tail = (1 - confidence) / 2
    low = 0.0 if successes == 0 else float(betaincinv(successes, trials - successes + 1, tail))
    high = 1.0 if successes == trials else float(betaincinv(successes + 1, trials - successes, 1 - tail))
    return successes / trials, low, high
