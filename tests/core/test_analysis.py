"""The analysis of a series: what it finds, what it removes, and that its intervals keep their promise."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from ascar._core import analyze, autocorrelation, effective_sample_size, subsession_size

Series = NDArray[np.float64]


def autoregressive(rng: np.random.Generator, n: int, rho: float) -> Series:
    """A stationary AR(1) series of mean 100 and standard deviation 5."""
    shocks = rng.normal(size=n + 400)
    out = np.empty(n + 400)
    level = 0.0
    for index, shock in enumerate(shocks):
        level = rho * level + shock
        out[index] = level
    return 100.0 + 5.0 * math.sqrt(1.0 - rho * rho) * out[400:]


def periodic_spikes(rng: np.random.Generator, n: int) -> tuple[Series, float]:
    values = 100.0 + 5.0 * rng.normal(size=n)
    values[(np.arange(n) + rng.integers(50)) % 50 == 0] -= 40.0
    return values, 100.0 - 40.0 / 50


def noise(kind: str, rng: np.random.Generator, n: int) -> tuple[Series, float]:
    match kind:
        case "iid":
            return rng.normal(100.0, 5.0, n), 100.0
        case "ar3":
            return autoregressive(rng, n, 0.3), 100.0
        case "ar6":
            return autoregressive(rng, n, 0.6), 100.0
        case "ar9":
            return autoregressive(rng, n, 0.9), 100.0
        case "lognormal":
            return rng.lognormal(0.0, 0.5, n), math.exp(0.125)
        case "pareto":
            return 1.0 + rng.pareto(3.0, n), 1.5
        case _:
            return periodic_spikes(rng, n)


KINDS = ["iid", "ar3", "ar6", "ar9", "lognormal", "pareto", "spikes"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [600, 2500])
def test_the_interval_covers_the_true_mean_as_often_as_it_says(kind: str, n: int) -> None:
    sessions = 250
    covered = missing = 0
    for seed in range(sessions):
        values, truth = noise(kind, np.random.default_rng(seed), n)
        found = analyze(values)
        if found.ci_low is None or found.ci_high is None:
            missing += 1
        elif found.ci_low <= truth <= found.ci_high:
            covered += 1
    given = sessions - missing
    assert missing <= 0.1 * sessions
    # Four binomial standard errors below 95%: 89.5% of 250.
    assert covered / given >= 0.95 - 4 * math.sqrt(0.95 * 0.05 / given)


def test_the_published_rule_does_not_cover_correlated_readings() -> None:
    """The reason for the corrected method: the naive reading of "95%" is off by more than ten percent."""
    missed = {"corrected": 0, "faithful": 0}
    for seed in range(200):
        values = autoregressive(np.random.default_rng(seed), 1000, 0.9)
        for method in ("corrected", "faithful"):
            found = analyze(values, method=method, autocorrelation_limit=0.8)
            if found.ci_low is None or found.ci_high is None or not found.ci_low <= 100.0 <= found.ci_high:
                missed[method] += 1
    assert missed["corrected"] <= 22
    assert missed["faithful"] >= 50


@pytest.mark.parametrize("kind", KINDS)
def test_stationary_readings_are_kept(kind: str) -> None:
    kept = []
    split = 0
    for seed in range(100):
        found = analyze(noise(kind, np.random.default_rng(seed), 1500)[0])
        kept.append(found.n / 1500)
        split += bool(found.change_points)
    assert np.mean(kept) > 0.96  # a tail is seen in a few of them
    assert split <= 4


def test_a_warm_up_ramp_and_a_cool_down_are_removed() -> None:
    rng = np.random.default_rng(5)
    values = rng.normal(100.0, 5.0, 1200)
    values[:150] *= np.linspace(0.3, 1.0, 150)
    values[1100:] *= 0.5
    found = analyze(values)
    assert 100 <= found.stable_start <= 260
    assert 1050 <= found.stable_end <= 1105
    assert found.n == found.stable_end - found.stable_start
    assert found.ci_low is not None and found.ci_high is not None
    assert found.ci_low < 100.0 < found.ci_high
    assert {why for _, _, why in found.removed} <= {"level", "settling", "edge"}
    removed = sum(end - start for start, end, _ in found.removed)
    assert removed + found.n == len(values)


def test_a_cache_fill_step_is_located() -> None:
    rng = np.random.default_rng(6)
    values = np.concatenate([rng.normal(220.0, 8.0, 300), rng.normal(100.0, 8.0, 900)])
    found = analyze(values)
    assert found.change_points == [300]
    assert 300 <= found.stable_start <= 390
    assert found.mean == pytest.approx(100.0, abs=1.0)


def test_a_first_cold_reading_of_a_short_trial_is_removed() -> None:
    rng = np.random.default_rng(7)
    values = rng.normal(100.0, 2.0, 16)
    values[0] = 30.0
    found = analyze(values)
    assert found.stable_start >= 1
    assert found.removed[0] == (0, found.stable_start, "edge")


@pytest.mark.parametrize("n", [8, 16, 30])
def test_short_series_cover_too(n: int) -> None:
    covered = given = 0
    for seed in range(400):
        values = np.random.default_rng(seed).normal(100.0, 5.0, n)
        found = analyze(values)
        if found.ci_low is not None and found.ci_high is not None:
            given += 1
            covered += found.ci_low <= 100.0 <= found.ci_high
    assert given >= 340
    assert covered / given >= 0.95 - 4 * math.sqrt(0.95 * 0.05 / given)


def test_no_interval_where_half_the_readings_are_at_another_level() -> None:
    rng = np.random.default_rng(8)
    values = np.concatenate([rng.normal(level, 1.0, 400) for level in (10.0, 20.0, 30.0)])
    found = analyze(values)
    assert found.ci_low is None
    assert found.ci_high is None
    assert found.reason is not None
    assert "no stable phase" in found.reason


def test_a_level_that_keeps_recurring_is_part_of_the_load() -> None:
    rng = np.random.default_rng(9)
    cycle = np.concatenate([np.full(150, 100.0), np.full(60, 60.0)])
    values = np.tile(cycle, 20) + rng.normal(0.0, 3.0, 4200)
    found = analyze(values)
    assert len(found.change_points) > 20
    assert (found.stable_start, found.stable_end) == (0, 4200)
    assert found.ci_low is not None and found.ci_high is not None
    assert found.ci_low < np.mean(cycle) < found.ci_high


def test_a_random_walk_bears_no_narrow_interval() -> None:
    widths = []
    for seed in range(40):
        values = np.cumsum(np.random.default_rng(seed).normal(size=800))
        found = analyze(values)
        if found.ci_low is not None and found.ci_high is not None:
            widths.append((found.ci_high - found.ci_low) / np.std(values))
    assert np.median(widths) > 1.0 if widths else True
    assert len(widths) < 30


def test_autocorrelation_and_effective_size() -> None:
    values = autoregressive(np.random.default_rng(1), 20_000, 0.6)
    assert autocorrelation(values) == pytest.approx(0.6, abs=0.03)
    assert autocorrelation(values, 2) == pytest.approx(0.36, abs=0.05)
    assert effective_sample_size(values) == pytest.approx(20_000 * 0.25, rel=0.2)
    size = subsession_size(values)
    assert size is not None
    assert 5 <= size <= 40


def test_strided_and_foreign_arrays_are_refused() -> None:
    values = np.arange(40.0)
    with pytest.raises(ValueError, match="values is a strided array; .*ascontiguousarray"):
        analyze(values[::2])
    with pytest.raises(ValueError, match="method is \"best\"; allowed: 'corrected' or 'faithful'"):
        analyze(values, method="best")
    with pytest.raises(ValueError, match="values is NaN at index 3"):
        analyze(np.array([1.0, 2.0, 3.0, math.nan]))
    with pytest.raises(ValueError, match="values is 1e300 at index 1"):
        analyze(np.array([1.0, 1e300]))
    with pytest.raises(ValueError, match="values is a series of magnitude 2e-310; .*take a smaller unit"):
        analyze(np.array([1e-310, 2e-310] * 50))
    with pytest.raises(ValueError, match="values is a series of 0; allowed: at least 1"):
        analyze(np.array([]))
