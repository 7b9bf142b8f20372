from __future__ import annotations

import numpy as np
import pytest

from ascar.errors import InputError
from ascar.pilot import ComparisonTerms, lower_is_better, rank


def _ar(seed, mean, sd=5.0, rho=0.0, n=2000):
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=n)
    for i in range(1, n):
        noise[i] = rho * noise[i - 1] + np.sqrt(1 - rho**2) * noise[i]
    return mean + sd * noise


def test_series_are_ranked_on_their_stable_phases():
    warm = _ar(1, 100, sd=2)
    warm[:300] += 60  # its mean over all readings would be the highest
    found = rank([warm, _ar(2, 103, sd=2)], ComparisonTerms())
    assert found.standing.order == (1, 0)
    (pair,) = found.standing.pairs
    assert pair.verdict == "separated"
    assert pair.ratio_low < 1.03 < pair.ratio_high
    assert found.measurements[0].mean == pytest.approx(100, rel=0.01)
    assert found.measurements[0].stable_start == pytest.approx(300, abs=5)


def test_far_apart_the_intervals_alone_tell():
    found = rank([_ar(1, 100), _ar(2, 150)], ComparisonTerms())
    assert found.standing.pairs[0].method == "intervals apart"


def test_near_ones_take_welch():
    """The difference is about 3.1 standard errors: intervals that only just overlap, and p below 0.01."""
    a, b = _ar(3, 100), _ar(4, 100)  # of both all readings are kept
    b += a.mean() - b.mean() + 3.1 * 5 * np.sqrt(2 / 2000)
    (pair,) = rank([a, b], ComparisonTerms()).standing.pairs
    assert (pair.verdict, pair.method) == ("separated", "Welch's test")
    assert 0 < pair.p_value < 0.01


def test_equal_ones_do_not_differ_by_more_than_the_margin():
    (pair,) = rank([_ar(1, 100, sd=1), _ar(2, 100, sd=1)], ComparisonTerms()).standing.pairs
    assert pair.verdict == "equivalent"


def test_too_few_readings_say_how_many_more_would_do():
    (pair,) = rank([_ar(1, 100, n=100), _ar(3, 101, n=100)], ComparisonTerms()).standing.pairs
    assert pair.verdict == "undecided"
    assert 50 < pair.more < 100_000


def test_correlated_readings_are_not_taken_for_independent_ones():
    """By all readings as they are, Welch separates more than half of these equal series."""
    wrong = sum(
        rank([_ar(seed, 100, rho=0.9), _ar(seed + 500, 100, rho=0.9)], ComparisonTerms(p=0.05))
        .standing.pairs[0]
        .verdict
        == "separated"
        for seed in range(60)
    )
    assert wrong <= 8  # 3 are promised


def test_without_a_stable_phase_nothing_is_claimed():
    rng = np.random.default_rng(1)
    levels = np.concatenate([np.full(200, level) for level in (1.0, 50.0, 100.0)]) + rng.normal(size=600)
    (pair,) = rank([levels, _ar(1, 1000)], ComparisonTerms()).standing.pairs
    assert pair.verdict == "no-interval"
    assert pair.p_value is None


@pytest.mark.parametrize("series", [[], [np.ones(10)]])
def test_fewer_than_two_are_no_comparison(series):
    with pytest.raises(InputError, match="at least two"):
        rank(series, ComparisonTerms())


def test_readings_that_are_not_finite_are_refused():
    with pytest.raises(InputError):
        rank([np.array([1.0, np.nan]), np.ones(10)], ComparisonTerms())


def test_few_or_constant_readings_do_not_crash():
    for a, b in (
        ([1.0], [2.0]),
        ([1.0] * 20, [1.0] * 20),
        ([0.0] * 20, [1.0] * 20),
        ([1.0, 2.0], [3.0, 4.0]),
    ):
        found = rank([a, b], ComparisonTerms())
        assert len(found.standing.pairs) == 1


@pytest.mark.parametrize(
    ("metric", "lower"),
    [
        ("duration_s", True),
        ("latency_ms_p99", True),
        ("read.lat_ns", True),
        ("clat_ns", True),
        ("wall time", True),
        ("throughput_mb_per_s", False),
        ("iops", False),
        ("read.bw_bytes_per_s", False),
        ("items", False),
        ("ops per s", False),
    ],
)
def test_which_way_is_better_is_told_from_the_name(metric, lower):
    assert lower_is_better(metric) is lower


def test_two_that_read_zero_every_time_do_not_differ():
    (pair,) = rank([np.zeros(100), np.zeros(80)], ComparisonTerms()).standing.pairs
    assert (pair.verdict, pair.ratio) == ("equivalent", None)
    (pair,) = rank([np.zeros(100), np.ones(80)], ComparisonTerms()).standing.pairs
    assert pair.verdict == "separated"
