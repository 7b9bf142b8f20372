from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from ascar.analysis.variation import latency_range, throughput_windows
from ascar.analysis.variation_latency import correlated, is_latency, latency_ranges, percentiles
from ascar.analysis.variation_runs import FrameLayout, runs_of
from ascar.analysis.variation_summary import spread_of
from ascar.analysis.variation_time import cumulative, parts, settled_s, settling, throughput_n, windowed
from ascar.results.measurement import Series


def every(values, step_s=1.0):
    return Series(np.arange(1, len(values) + 1) * step_s, np.asarray(values, float))


def test_cumulative_throughput_is_what_was_done_so_far():
    assert cumulative(every([4, 2, 0, 2])) == pytest.approx([4, 3, 2, 2])
    uneven = Series(np.array([1.0, 3.0, 4.0]), np.array([4.0, 1.0, 2.0]))
    assert cumulative(uneven) == pytest.approx([4, 2, 2])


def test_windows_of_even_readings_are_those_of_section_6_2():
    values = np.random.default_rng(0).random(23)
    assert throughput_n(every(values, 0.25), 1.0) == pytest.approx(throughput_windows(values, 4))
    assert throughput_n(every(values), 24.0).tolist() == []
    jitter = Series(np.arange(1, 21) * 0.25 - 1e-4, np.ones(20))
    assert len(throughput_n(jitter, 5.0)) == 1


def test_windows_of_uneven_readings_add_up():
    rng = np.random.default_rng(0)
    series = Series(np.cumsum(rng.uniform(0.1, 2, 50)), rng.random(50))
    done = parts(series, 7).mean() * series.seconds[-1]
    assert done == pytest.approx((series.values * np.diff(series.seconds, prepend=0)).sum())


def test_how_long_a_run_must_be():
    warm = every([0.0] * 10 + [1.0] * 190)
    # By t the mean is 1 - 10 / t, at the end 0.95; it is within 5% of that from 1 - 10 / t = 0.9025 on.
    assert settled_s(warm, 0.05) == pytest.approx(103)
    assert settled_s(every([5.0] * 50), 0.01) == 0


def runs(series, groups=1):
    n = len(series)
    frame = pl.DataFrame(
        {"a": np.arange(n) // 2, "g": (np.arange(n) // 2) % groups, "y": np.arange(1.0, n + 1)}
    )
    return runs_of(frame, FrameLayout("y", ("a", "g"), series=series))


def test_settling_by_group():
    found = runs([every([1.0] * 100), every([0.0] * 10 + [1.0] * 190), None, every([1.0] * 10)])
    (one,) = settling(found, ("all",), np.zeros(2, int), 0.05)
    assert one.runs == 3 and one.run_s == 100 and one.median_s == 0
    assert one.late == pytest.approx(1 / 3)


def test_ranges_shrink_as_windows_grow():
    rng = np.random.default_rng(0)
    found = windowed(
        runs([every(100 + rng.normal(0, 10, 400)) for _ in range(20)]), ("all",), np.zeros(10, int)
    )
    lengths = [one.window_s for one in found]
    assert lengths[0] == 20 and lengths[-1] == 400 and lengths == sorted(lengths)
    medians = [one.quantiles[0] for one in found]
    assert medians == sorted(medians, reverse=True)
    # The range of two normal means of w readings: sqrt(2) * 0.674 * 10 / sqrt(w) at the median.
    assert medians[0] == pytest.approx(0.674 * np.sqrt(2) * 0.1 / np.sqrt(20), rel=0.25)


def test_idle_windows_are_counted():
    (one,) = windowed(runs([every([0, 0, 1, 1]), every([0, 0, 1, 3])]), ("all",), np.zeros(1, int), [2.0])
    assert one.idle == 1 and one.ranges.tolist() == pytest.approx([1 / 1.5])
    assert windowed(runs([None, None]), ("all",), np.zeros(1, int)) == []


def test_which_columns_are_latencies():
    assert all(
        map(is_latency, ["read_latency_ms_p99", "latency_us_max", "x_latency_ms_mean", "latency_s_p99_9"])
    )
    assert not any(map(is_latency, ["latency", "read_latency_ms_p999", "latencies_ms_p50", "p99"]))


def test_percentiles_by_operation():
    columns = {
        "read_latency_ms_p50": np.array([1.0]),
        "read_latency_ms_p99_9": np.array([5.0]),
        "read_latency_ms_max": np.array([9.0]),
        "latency_ms_p50": np.array([2.0]),
        "write_latency_ms_p50": np.array([np.nan]),
        "write_latency_ms_max": np.array([np.nan]),
    }
    (read,) = percentiles(columns)
    assert read.operation == "read" and read.unit == "ms"
    assert read.levels.tolist() == pytest.approx([0.5, 0.999, 1]) and read.values.tolist() == [[1, 5, 9]]


def latency_table(configurations=40, runs_each=3, seed=0):
    """Reads slow down with the throughput; writes do what they want."""
    rng = np.random.default_rng(seed)
    rows, samples = [], []
    for c in range(configurations):
        spread = rng.uniform(0, 0.5)
        for place in range(runs_each):
            slow = 1 + spread * place / (runs_each - 1)
            read = rng.lognormal(0, 1, 2000) * slow**3
            write = rng.lognormal(0, 1, 2000) * rng.uniform(0.5, 2)
            samples.append(read)
            rows.append((c, 1000 / slow, *(np.quantile(one, q) for one in (read, write) for q in LEVELS)))
    names = [f"{name}_latency_ms_p{100 * q:g}" for name in ("read", "write") for q in LEVELS]
    frame = pl.DataFrame(rows, ["c", "y", *names], orient="row")
    return runs_of(frame, FrameLayout("y", ("c",))), samples


LEVELS = (0.1, 0.5, 0.9, 0.99)


def test_distances_of_percentiles_come_close_to_those_of_samples():
    found, samples = latency_table()
    read = next(one for one in percentiles(found.columns) if one.operation == "read")
    known = latency_ranges(read, found, range(40))
    exact = np.array([latency_range(samples[3 * c : 3 * c + 3]).value for c in range(40)])
    assert np.abs(known - exact).max() < 0.08


def test_the_operation_that_goes_with_the_throughput_is_found():
    found, _ = latency_table()
    ranking = correlated(percentiles(found.columns), found, spread_of(found), (("all",), np.zeros(40, int)))
    assert [one.operation for one in ranking] == ["read", "write"]
    assert ranking[0].estimate.value > 0.9 and abs(ranking[1].estimate.value) < 0.4
    assert ranking[0].configurations == 40


def test_equal_percentiles_are_a_jump():
    frame = pl.DataFrame(
        {"c": [1, 1], "y": [1.0, 2.0], "latency_ms_p50": [1.0, 1.0], "latency_ms_p99": [1.0, 10.0]}
    )
    found = runs_of(frame, FrameLayout("y", ("c",)))
    assert latency_ranges(percentiles(found.columns)[0], found, [0]) == pytest.approx([0.49])
