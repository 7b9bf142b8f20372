from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from ascar.analysis import variation
from ascar.errors import InputError

# Anscombe 1973, "Graphs in statistical analysis", data set I; r = 0.816 there.
ANSCOMBE_X = [10, 8, 13, 9, 11, 14, 6, 4, 12, 7, 5]
ANSCOMBE_Y = [8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68]


def test_relative_standard_deviation_by_hand():
    found = variation.relative_standard_deviation([1, 2, 3, 4, 5])
    assert found.value == pytest.approx(np.sqrt(2.5) / 3)
    assert found.low is not None
    assert found.high is not None
    # The interval's ends are the RSDs under which the value is at its quantiles, by SciPy's own distribution.
    t = np.sqrt(5) / found.value
    assert stats.nct.cdf(t, 4, np.sqrt(5) / found.low) == pytest.approx(0.025, abs=1e-6)
    assert stats.nct.cdf(t, 4, np.sqrt(5) / found.high) == pytest.approx(0.975, abs=1e-6)


def test_relative_standard_deviation_covers_the_true_one():
    rng = np.random.default_rng(1)
    covered = 0
    for _ in range(400):
        found = variation.relative_standard_deviation(rng.normal(1000, 80, 10))
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= 0.08 <= found.high
    assert stats.binom.ppf(0.001, 400, 0.95) <= covered <= stats.binom.ppf(0.999, 400, 0.95)


def test_many_runs_and_little_variation_are_no_trouble():
    values = 1e6 + np.random.default_rng(2).normal(0, 10, 2_000)
    found = variation.relative_standard_deviation(values)
    assert found.low is not None
    assert found.high is not None
    assert found.low < 1e-5 < found.high
    assert found.high / found.low < 1.1
    same = variation.relative_standard_deviation([3, 3, 3])
    assert (same.value, same.low) == (0.0, None)
    assert "do not vary" in same.reason


def test_the_limits_of_the_exact_interval_agree_with_it():
    for n, deviation in [(10, 1.01e-3), (1_000, 0.05), (1_000, 1.5)]:
        values = np.random.default_rng(7).normal(0, 1, n)
        values = 1 + deviation * (values - values.mean()) / values.std(ddof=1)
        exact = variation.relative_standard_deviation(values)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(variation, "_LITTLE", 0.01)
            patch.setattr(variation, "_MANY", 500)
            limit = variation.relative_standard_deviation(values)
        assert (limit.low, limit.high) == pytest.approx((exact.low, exact.high), rel=1e-3)
        assert (limit.low, limit.high) != (exact.low, exact.high)


def test_a_mean_that_is_not_told_from_0_bears_no_interval():
    found = variation.relative_standard_deviation([-10.0, 10.5])
    assert found.low is None
    assert "more runs" in found.reason


def test_relative_range_by_hand():
    assert variation.relative_range([1, 2, 3, 4, 5]) == pytest.approx(4 / 3)
    assert variation.relative_range([7]) == 0


def test_the_range_promises_what_the_published_tables_say():
    # Wilks 1941: 93 observations cover 95 percent with confidence 0.95; 130 with 0.99.
    assert variation.range_coverage(92) < 0.95 < variation.range_coverage(93)
    assert variation.range_coverage(129, 0.99) < 0.95 < variation.range_coverage(130, 0.99)
    assert variation.range_coverage(10) == pytest.approx(0.606, abs=5e-4)


def test_windows_and_their_ranges():
    runs = [[10, 20, 30, 40, 99], [20, 30, 40, 50, 99, 99]]
    assert variation.throughput_windows(runs[0], 2).tolist() == [15, 35]
    assert variation.throughput_ranges(runs, 2) == pytest.approx([10 / 20, 10 / 40])
    assert variation.throughput_normalized([5, 10, 2]).tolist() == [0.5, 1, 0.2]


def test_longer_windows_hide_what_only_short_ones_show():
    rng = np.random.default_rng(3)
    runs = [100 + rng.normal(0, 20, 800) for _ in range(10)]
    medians = [float(np.median(variation.throughput_ranges(runs, window))) for window in (1, 10, 100)]
    assert medians[0] > 2 * medians[1] > 4 * medians[2]


def test_latency_distance_by_hand_and_by_another_hand():
    assert variation.latency_distance([1, 2, 3, 4], [3, 4, 5, 6]).value == 0.5
    assert variation.latency_distance([1, 2], [3, 4]).value == 1
    rng = np.random.default_rng(4)
    a, b = rng.lognormal(0, 1, 500), rng.lognormal(0.3, 1, 700)
    assert variation.latency_distance(a, b).value == pytest.approx(stats.ks_2samp(a, b).statistic)


def test_latency_distance_covers_the_true_one():
    # Two normal distributions one standard deviation apart: the distance is 2 Phi(1/2) - 1.
    true = 2 * stats.norm.cdf(0.5) - 1
    rng = np.random.default_rng(5)
    for _ in range(50):
        found = variation.latency_distance(rng.normal(0, 1, 400), rng.normal(1, 1, 300))
        assert found.low is not None
        assert found.high is not None
        assert found.low <= true <= found.high
        assert found.high - found.low < 0.45


def test_the_range_of_distributions_is_the_largest_distance():
    samples = [[1, 2, 3, 4], [2, 3, 4, 5], [9, 9, 9, 9]]
    found = variation.latency_range(samples)
    assert found.value == 1
    assert found.high == 1
    pairs = [variation.latency_distance(samples[0], samples[1]).value]
    assert pairs[0] == 0.25


def test_correlation_of_anscombes_data():
    found = variation.latency_throughput_correlations(ANSCOMBE_X, {"read": ANSCOMBE_Y})["read"]
    assert found.value == pytest.approx(0.8164205, abs=1e-7)
    # What R's cor.test gives for these data.
    assert (found.low, found.high) == pytest.approx((0.4243912, 0.9506933), abs=1e-6)
    assert found.value > variation.STRONG_CORRELATION


def test_operations_are_ranked_and_those_that_do_not_vary_left_out():
    rng = np.random.default_rng(6)
    throughput = rng.uniform(0, 0.4, 39)
    latency = {
        "write": rng.uniform(0, 1, 39),
        "open": throughput * 2 + rng.normal(0, 0.02, 39),
        "stat": np.full(39, 0.5),
    }
    found = variation.latency_throughput_correlations(throughput, latency)
    assert list(found) == ["open", "write"]
    assert found["write"].low is not None
    assert found["write"].low < 0.3
    short = variation.latency_throughput_correlations([1, 2, 4], {"read": [1, 3, 2]})["read"]
    assert short.low is None
    assert "at least 4" in short.reason


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: variation.relative_standard_deviation([1]), "values has shape"),
        (lambda: variation.relative_standard_deviation([1, float("nan")]), r"values\[1\] = nan"),
        (lambda: variation.relative_standard_deviation(["fast", "slow"]), "values must be numbers"),
        (lambda: variation.relative_standard_deviation([-1, 1]), "mean 0"),
        (lambda: variation.relative_standard_deviation([1, 2], confidence=1.0), "confidence = 1.0"),
        (lambda: variation.relative_range([]), "values has shape"),
        (lambda: variation.relative_range([[1, 2]]), "values has shape"),
        (lambda: variation.range_coverage(1), "runs = 1"),
        (lambda: variation.throughput_windows([1, 2], 3), "window = 3"),
        (lambda: variation.throughput_windows([1, 2], 0), "window = 0"),
        (lambda: variation.throughput_ranges([[1, 2]], 1), "1 runs"),
        (lambda: variation.throughput_normalized([0, 0]), "largest is 0"),
        (lambda: variation.latency_range([[1]]), "1 samples"),
        (lambda: variation.latency_range([[1], []]), r"samples\[1\]"),
        (lambda: variation.latency_throughput_correlations([1, 2], {"read": [1, 2, 3]}), "'read'"),
        (lambda: variation.latency_throughput_correlations([1], {}), "throughput has shape"),
    ],
)
def test_what_cannot_be_measured_is_refused(call, named):
    with pytest.raises(InputError, match=named):
        call()
