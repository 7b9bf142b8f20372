"""Intervals of independent samples, speed from rounds, and measures of variation."""

import math

import numpy as np
import pytest
from scipy import stats

from ascar._core import (
    distribution_range,
    harmonic_mean_interval,
    kolmogorov_smirnov,
    mean_interval,
    pearson,
    percentile_interval,
    proportion_interval,
    relative_range,
    relative_standard_deviation,
    throughput_windows,
    work_per_second,
)


def test_the_mean_interval_is_students() -> None:
    values = np.random.default_rng(1).normal(size=13)
    mean, low, high = mean_interval(values, 0.9)
    expected = stats.t.interval(0.9, 12, values.mean(), stats.sem(values))
    assert mean == pytest.approx(values.mean())
    assert (low, high) == pytest.approx(expected, rel=1e-10)


def test_a_ratio_is_averaged_harmonically() -> None:
    """100 units at 10 a second and 100 at 30 a second take 13.3 s: 15 a second, not 20."""
    mean, low, high = harmonic_mean_interval(np.array([10.0, 30.0, 10.0, 30.0]))
    assert mean == pytest.approx(15.0)
    assert low < 15.0 < high
    with pytest.raises(ValueError, match="values is 0 at index 1; allowed: rates above 0"):
        harmonic_mean_interval(np.array([1.0, 0.0]))


@pytest.mark.parametrize("method", ["wilson", "exact"])
def test_proportions_agree_with_scipy(method: str) -> None:
    for successes, trials in [(0, 12), (12, 12), (3, 40), (999, 1000)]:
        _, low, high = proportion_interval(successes, trials, 0.99, method=method)
        theirs = stats.binomtest(successes, trials).proportion_ci(0.99, method)
        assert (low, high) == pytest.approx((theirs.low, theirs.high), abs=1e-9)
    with pytest.raises(ValueError, match="successes is 5; allowed: at most the number of trials, 4"):
        proportion_interval(5, 4)


def test_percentiles_cover() -> None:
    covered = 0
    truth = math.exp(1.2815515655446004)
    for seed in range(500):
        found = percentile_interval(np.random.default_rng(seed).lognormal(size=200), 0.9)
        assert found is not None
        covered += found[1] <= truth <= found[2]
    assert covered >= 465
    assert percentile_interval(np.arange(20.0), 0.99) is None


def halving(count: int) -> np.ndarray:
    """The published sequence of work amounts: 1/2, 1/4, 3/4, 1/8, ..."""
    out: list[float] = []
    level = 1
    while len(out) < count:
        out += [numerator / 2**level for numerator in range(1, 2**level, 2)]
        level += 1
    return np.array(out[:count])


@pytest.mark.parametrize("rounds", [10, 25, 60])
@pytest.mark.parametrize("scatter", ["constant", "proportional"])
def test_speeds_cover(rounds: int, scatter: str) -> None:
    covered = given = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        work = 200.0 + 10_000.0 * halving(rounds)
        duration = 2.0 + work / 100.0
        noise = rng.normal(size=rounds)
        duration += noise if scatter == "constant" else 0.05 * duration * noise
        found = work_per_second(work, duration)
        if found.ci_low is not None and found.ci_high is not None:
            given += 1
            covered += found.ci_low <= 100.0 <= found.ci_high
    assert given == 300
    assert covered / given >= 0.95 - 4 * math.sqrt(0.95 * 0.05 / given)


def test_rounds_dominated_by_the_overhead_are_set_aside() -> None:
    rng = np.random.default_rng(2)
    work = np.array([10.0, 20.0, 50.0, 1000.0, 2000.0, 3000.0, 4000.0, 5000.0, 6000.0])
    duration = 20.0 + work / 50.0 + rng.normal(0.0, 0.2, work.size)
    found = work_per_second(work, duration)
    assert found.rounds == 6
    assert found.speed == pytest.approx(50.0, rel=0.02)
    assert found.predict_duration_s(10_000.0) == pytest.approx(220.0, rel=0.02)


def test_speed_says_why_there_is_none() -> None:
    same = work_per_second(np.full(6, 5.0), np.arange(1.0, 7.0))
    assert same.reason == "all rounds have the same work amount; vary it"
    falling = work_per_second(np.arange(1.0, 7.0), np.arange(7.0, 1.0, -1.0))
    assert falling.reason == "durations do not grow with the work amount"
    assert math.isnan(falling.speed)
    with pytest.raises(ValueError, match="work is 0 at index 0; allowed: a number above 0"):
        work_per_second(np.array([0.0, 1.0]), np.array([1.0, 2.0]))
    with pytest.raises(ValueError, match="duration_s is a series of 1; allowed: as many"):
        work_per_second(np.array([1.0, 2.0]), np.array([1.0]))


def test_variation() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.normal(50.0, 5.0, 40), rng.normal(52.0, 9.0, 30)
    assert relative_standard_deviation(a) == pytest.approx(a.std(ddof=1) / a.mean(), rel=1e-12)
    assert relative_range(a) == pytest.approx(np.ptp(a) / a.mean(), rel=1e-12)
    assert kolmogorov_smirnov(a, b) == pytest.approx(stats.ks_2samp(a, b).statistic, abs=1e-12)
    assert pearson(a[:30], b) == pytest.approx(stats.pearsonr(a[:30], b).statistic, rel=1e-10)
    assert pearson(np.ones(5), np.arange(5.0)) is None
    c = rng.normal(70.0, 1.0, 10)
    assert distribution_range([a, b, c]) == max(
        kolmogorov_smirnov(a, b), kolmogorov_smirnov(a, c), kolmogorov_smirnov(b, c)
    )
    assert throughput_windows(np.arange(7.0), 3).tolist() == [1.0, 4.0]
    with pytest.raises(ValueError, match="window is 8; allowed: 1 to the number of readings, 7"):
        throughput_windows(np.arange(7.0), 8)
    with pytest.raises(ValueError, match="a mean other than 0"):
        relative_range(np.array([-1.0, 1.0]))
