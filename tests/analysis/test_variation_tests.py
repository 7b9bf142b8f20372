from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from ascar.analysis.variation_tests import (
    first_rank,
    permuted,
    seasonal_kendall,
    signed_rank,
    standardized,
    two_levels,
)
from ascar.significance import mid_ranks


def bounds(*counts):
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.intp)


def test_ranks_as_scipy_has_them():
    values = np.array([3.0, 1, 2, 2, 5, 2])
    assert mid_ranks(values) == pytest.approx(stats.rankdata(values))


@pytest.mark.parametrize("digits", [0, 6])
def test_kendall_of_one_block_as_by_hand(digits):
    rng = np.random.default_rng(0)
    values = np.round(rng.normal(0, 2, 30) + np.arange(30) * 0.1, digits)
    found = seasonal_kendall(values, bounds(30))
    pairs = sum(np.sign(values[j] - values[i]) for i in range(30) for j in range(i + 1, 30))
    _, ties = np.unique(values, return_counts=True)
    variance = (30 * 29 * 65 - (ties * (ties - 1) * (2 * ties + 5)).sum()) / 18
    assert found.statistic == pytest.approx(np.sign(pairs) * (abs(pairs) - 1) / np.sqrt(variance))
    assert found.p_value == pytest.approx(2 * stats.norm.sf(abs(found.statistic)))


def test_kendall_adds_up_over_blocks_whatever_their_levels():
    one = np.array([1.0, 2, 3, 4])
    both = np.concatenate([one, 1000 * one, one[:2]])
    found = seasonal_kendall(both, bounds(4, 4, 2))
    variance = 2 * 4 * 3 * 13 / 18 + 2 * 1 * 9 / 18
    assert found.statistic == pytest.approx((6 + 6 + 1 - 1) / np.sqrt(variance))


def test_nothing_varies():
    flat = np.ones(6)
    assert seasonal_kendall(flat, bounds(3, 3)) is None
    assert first_rank(flat, bounds(3, 3)) is None
    assert signed_rank(np.zeros(3)) is None


def test_a_low_first_run():
    values = np.tile([1.0, 2, 3], 20)
    found = first_rank(values, bounds(*[3] * 20))
    assert found.statistic == pytest.approx(-(20 - 0.5) / np.sqrt(20 * 2 / 3))
    assert found.p_value < 1e-6


def test_signed_ranks_as_scipy_has_them():
    values = np.random.default_rng(1).normal(0.3, 1, 40)
    theirs = stats.wilcoxon(values, correction=True, method="approx")
    assert signed_rank(values).p_value == pytest.approx(theirs.pvalue, rel=1e-6)


def test_permutations_have_the_level_they_say():
    low = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        other = standardized(rng.exponential(size=12), bounds(4, 4, 4))
        values = standardized(rng.exponential(size=12), bounds(4, 4, 4))
        low += permuted(lambda one, other=other: float(one @ other), values, bounds(4, 4, 4), rng) <= 0.1
    assert 2 <= low <= 20


def test_standardized_blocks():
    found = standardized(np.array([1.0, 3, 0.1, 0.1, 0.1]), bounds(2, 3))
    assert found.tolist() == [-1, 1, 0, 0, 0]


def test_two_levels_are_told_from_one():
    rng = np.random.default_rng(0)
    two = np.concatenate([rng.normal(0, 1, 10), rng.normal(20, 1, 10)])
    share, p, (low, high) = two_levels(two)
    assert share > 0.95 and p < 0.001
    assert low == pytest.approx(two[:10].mean()) and high == pytest.approx(two[10:].mean())
    below = sum(two_levels(rng.normal(0, 1, 20))[1] < 0.05 for _ in range(100))
    assert below <= 11
