"""Welch's test and the comparison that may be looked at as often as one likes."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from ascar._core import (
    sequential_compare,
    sequential_first_decision,
    sequential_mean,
    sequential_pairs,
    welch,
    welch_sample_size,
    welch_samples,
)

Series = NDArray[np.float64]


def autoregressive(rng: np.random.Generator, n: int, rho: float, mean: float = 100.0) -> Series:
    shocks = rng.normal(size=n + 200)
    out = np.empty(n + 200)
    level = 0.0
    for index, shock in enumerate(shocks):
        level = rho * level + shock
        out[index] = level
    return mean + 5.0 * math.sqrt(1.0 - rho * rho) * out[200:]


def test_welch_agrees_with_scipy() -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        a = rng.normal(10.0, 1.0, int(rng.integers(2, 40)))
        b = rng.normal(10.5, 3.0, int(rng.integers(2, 40)))
        ours = welch(a, b, 0.9)
        theirs = stats.ttest_ind(a, b, equal_var=False)
        interval = theirs.confidence_interval(0.9)
        assert ours.t == pytest.approx(theirs.statistic, rel=1e-10)
        assert ours.p_value == pytest.approx(theirs.pvalue, rel=1e-10)
        assert ours.dof == pytest.approx(theirs.df, rel=1e-10)
        assert (ours.ci_low, ours.ci_high) == pytest.approx((interval.low, interval.high), rel=1e-9)


def test_the_ratio_interval_covers() -> None:
    covered = 0
    for seed in range(1000):
        rng = np.random.default_rng(seed)
        found = welch(rng.normal(110.0, 20.0, 15), rng.normal(100.0, 10.0, 12))
        assert found.ratio_ci_low is not None and found.ratio_ci_high is not None
        covered += found.ratio_ci_low <= 1.1 <= found.ratio_ci_high
    assert 925 <= covered <= 975


def test_a_ratio_to_nothing_has_no_limits() -> None:
    rng = np.random.default_rng(3)
    found = welch(rng.normal(5.0, 1.0, 10), rng.normal(0.0, 1.0, 10))
    assert found.ratio_ci_low is None
    assert found.ratio_ci_high is None


def test_recorded_results_compare_as_their_readings_do() -> None:
    rng = np.random.default_rng(4)
    a, b = rng.normal(1.0, 1.0, 20), rng.normal(2.0, 2.0, 30)
    direct = welch(a, b)
    recorded = welch_samples(
        (float(a.mean()), float(a.var(ddof=1)), 20.0), (float(b.mean()), float(b.var(ddof=1)), 30.0)
    )
    assert recorded.p_value == pytest.approx(direct.p_value, rel=1e-9)


def test_the_sample_size_reaches_its_power() -> None:
    n = welch_sample_size(100.0, 5.0, 102.0, 8.0, 0.05, 0.8)
    rejected = 0
    for seed in range(1500):
        rng = np.random.default_rng(seed)
        rejected += welch(rng.normal(100.0, 5.0, n), rng.normal(102.0, 8.0, n)).p_value < 0.05
    assert rejected / 1500 == pytest.approx(0.8, abs=4 * math.sqrt(0.16 / 1500))
    with pytest.raises(ValueError, match="mean_b is 1; allowed: a mean different from mean_a"):
        welch_sample_size(1.0, 1.0, 1.0, 1.0, 0.05, 0.8)


@pytest.mark.parametrize("rho", [0.0, 0.6, 0.9])
def test_looking_often_does_not_raise_the_error(rho: float) -> None:
    """Thirty looks at equal sides: fixed-sample tests are wrong in a third of all comparisons."""
    comparisons = 200
    wrong = 0
    for seed in range(comparisons):
        rng = np.random.default_rng(seed)
        a, b = autoregressive(rng, 900, rho), autoregressive(rng, 900, rho)
        wrong += sequential_first_decision(a, b, first=30, every=30) is not None
    assert wrong <= comparisons * 0.05 + 3 * math.sqrt(comparisons * 0.05 * 0.95)


def test_two_percent_with_five_percent_noise_is_ordered_soon() -> None:
    needed: list[int] = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        decided = sequential_first_decision(
            rng.normal(102.0, 5.0, 2000), rng.normal(100.0, 5.0, 2000), first=20, every=20
        )
        assert decided is not None
        needed.append(decided[0])
        assert decided[1] == "greater"
    # Welch's test at a size fixed in advance needs 100 a side for power 0.8.
    assert np.median(needed) < 250


def test_equal_sides_are_called_equal_within_the_margin() -> None:
    verdicts = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        decided = sequential_first_decision(
            rng.normal(100.0, 5.0, 4000), rng.normal(100.0, 5.0, 4000), first=50, every=50, margin=0.02
        )
        verdicts.append(None if decided is None else decided[1])
    assert verdicts.count("equivalent") >= 54


def test_a_running_candidate_against_a_finished_incumbent() -> None:
    rng = np.random.default_rng(5)
    incumbent = rng.normal(100.0, 5.0, 400)
    worse = rng.normal(80.0, 5.0, 400)
    looks = [sequential_compare(worse[:n], incumbent) for n in (8, 16, 24, 32)]
    assert looks[-1].verdict == "less"
    assert looks[-1].ratio_ci_high is not None
    assert looks[-1].ratio_ci_high < 0.9
    assert looks[-1].p_value < 0.01 < looks[0].p_value


def test_the_sequence_of_one_mean() -> None:
    missed = 0
    for seed in range(200):
        values = np.random.default_rng(seed).normal(3.0, 1.0, 600)
        for n in range(20, 601, 20):
            limits = sequential_mean(values[:n])
            if limits is not None and not limits[0] <= 3.0 <= limits[1]:
                missed += 1
                break
    assert missed <= 19
    assert sequential_mean(np.array([1.0, 2.0, 1.5, 1.0, 2.5, 3.0])) is None


def test_refusals() -> None:
    a = np.arange(10.0)
    with pytest.raises(ValueError, match="margin is 0; allowed: a relative difference"):
        sequential_compare(a, a, margin=0.0)
    with pytest.raises(ValueError, match="alpha is 1; allowed"):
        sequential_compare(a, a, alpha=1.0)
    with pytest.raises(ValueError, match="every is 0; allowed: 1 or more"):
        sequential_first_decision(a, a, first=6, every=0)
    with pytest.raises(ValueError, match="first is 2; allowed: 6 or more"):
        sequential_first_decision(a, a, first=2, every=1)
    with pytest.raises(ValueError, match="b is a series of 1; allowed: at least 2"):
        welch(a, np.array([1.0]))


def test_pairs_keep_the_level_however_often_one_looks() -> None:
    wrong = 0
    for seed in range(500):
        rng = np.random.default_rng(seed)
        drift = rng.normal(0.0, 5.0, 20).cumsum()
        a, b = 100.0 + drift + rng.normal(0.0, 6.0, 20), 100.0 + drift + rng.normal(0.0, 2.0, 20)
        looks = (sequential_pairs(a[:n], b[:n], alpha=0.05).p_value for n in range(2, 21))
        wrong += min(looks) < 0.05
    assert wrong <= 40, "5% of 500 is 25, with a standard deviation of 5"


def test_five_pairs_decide_a_gain_of_a_third() -> None:
    decided = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        a, b = 1.38 * rng.normal(1.0, 0.015, 5), rng.normal(1.0, 0.015, 5)
        found = sequential_pairs(a, b, alpha=0.01, margin=0.03)
        decided += found.verdict == "greater"
        assert found.ratio_ci_low is not None and found.ratio_ci_high is not None
        assert (found.p_value < 0.01) == (found.ratio_ci_low > 1.0)
    assert decided >= 198


def test_limits_for_large_effects_hold_at_all_looks_and_are_there_early() -> None:
    missed = 0
    first: list[bool] = []
    for seed in range(300):
        values = autoregressive(np.random.default_rng(seed), 120, 0.3)
        looks = [sequential_mean(values[:n], alpha=0.05, large_effects=True) for n in range(8, 121, 4)]
        given = [one for one in looks if one is not None]
        missed += any(not low <= 100.0 <= high for low, high in given)
        first.append(looks[0] is not None)
        assert sequential_mean(values[:8], alpha=0.01) is None
    assert sum(first) >= 200, "at a level of 5% eight readings nearly always suffice"
    assert missed <= 30, "5% of 300 is 15, with a standard deviation of 4"


def test_pairs_that_cannot_be_compared_are_refused() -> None:
    with pytest.raises(ValueError, match="a"):
        sequential_pairs(np.array([1.0]), np.array([1.0, 2.0]))
    with pytest.raises(ValueError, match="alpha"):
        sequential_pairs(np.array([1.0, 2.0]), np.array([1.0, 2.0]), alpha=0.0)
