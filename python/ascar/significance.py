"""Tests of significance that several parts share."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ascar import _core

if TYPE_CHECKING:
    from collections.abc import Sequence

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


def mid_ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ranks from 1; equal values share their mean."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return (ends - (counts - 1) / 2)[inverse]


def signed_rank_p_value(differences: NDArray[np.float64]) -> float:
    """The two-sided p-value of Wilcoxon's signed-rank test (1945); 1 where all pairs are equal.

    Equal pairs are split between both signs, so that they speak for neither side.
    """
    if not differences.any():
        return 1.0
    score, deviation = signed_rank_sum(differences)
    return two_sided(score / deviation)


def signed_rank_sum(differences: NDArray[np.float64]) -> tuple[float, float]:
    """The sum of signed ranks, and its standard deviation where each rank has either sign as likely."""
    ranks = mid_ranks(np.abs(differences))
    # Then the variance of a rank is its square, ties or not.
    return float((np.sign(differences) * ranks).sum()), math.sqrt(float((ranks**2).sum()))


def two_sided(z: float) -> float:
    """The chance of a standard normal number at least as far from 0."""
    return math.erfc(abs(z) / math.sqrt(2))


def share(successes: int, trials: int, confidence: float = 0.95) -> tuple[float, float, float]:
    """A proportion with its exact interval (Clopper and Pearson 1934); no trials: unknown, from 0 to 1."""
    if trials == 0:
        return math.nan, 0.0, 1.0
    return _core.proportion_interval(successes, trials, confidence, method="exact")
