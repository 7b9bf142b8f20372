"""Workload features of traces whose features are known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import wasserstein_distance

from ascar.features import (
    CAO_FEATURES,
    Trace,
    TraceOperation,
    cao_features,
    cao_windows,
    earth_movers_distance,
    features_of,
    relative_differences,
    standardize,
    standardized_distance,
)
from ascar.features.gaps import positional_gaps


def reads(offsets: list[int], size: int = 10, **columns: list[float]) -> Trace:
    n = len(offsets)
    base = {"seconds": np.arange(n) * 0.5, "operation": [TraceOperation.READ] * n, "size_bytes": [size] * n}
    return Trace.of({**base, "offset_bytes": offsets, **columns})


def test_a_sequential_stream_has_no_gap() -> None:
    features = features_of(reads([0, 10, 20, 30]))
    assert features["read_sequential_share"] == 1
    assert features["read_run_bytes_mean"] == 40
    assert features["read_gap_s_mean"] == 0.5
    assert features["read_gap_s_relative_sd"] == 0
    assert math.isnan(features["read_jump_bytes_mean"])
    assert math.isnan(features["write_gap_s_mean"])
    assert features["read_share"] == 1
    assert math.isnan(features["read_to_write_ratio"])


def test_jumps_and_runs_are_told_apart() -> None:
    # Two runs of two, a jump forward of 80 between them, then a jump back of 40.
    gaps = positional_gaps(reads([0, 10, 100, 110, 80]))
    assert gaps.run_operations.tolist() == [2, 2, 1]
    assert gaps.run_bytes.tolist() == [20, 20, 10]
    assert sorted(gaps.jump_bytes.tolist()) == [40, 80]
    assert gaps.jumps.tolist() == [False, True, True]
    assert gaps.sequential_share == 0.5


def test_gaps_are_those_of_one_thread() -> None:
    """Two threads, each sequential, in turns."""
    trace = reads([0, 1000, 10, 1010, 20, 1020], thread=[1, 2, 1, 2, 1, 2])
    assert features_of(trace)["read_sequential_share"] == 1
    assert features_of(reads([0, 1000, 10, 1010, 20, 1020]))["read_sequential_share"] == 0


def test_another_file_is_a_switch_and_no_distance() -> None:
    features = features_of(reads([0, 10, 0, 10], file=[1, 1, 2, 2]))
    assert features["read_switch_share"] == pytest.approx(1 / 3)
    assert features["read_sequential_share"] == pytest.approx(2 / 3)
    assert features["read_run_bytes_mean"] == 20


def test_types_have_their_own_gaps_and_shares() -> None:
    kinds = [
        TraceOperation.READ,
        TraceOperation.WRITE,
        TraceOperation.READ,
        TraceOperation.CREATE,
        TraceOperation.OPEN,
    ]
    trace = Trace.of({"seconds": [0, 1, 4, 5, 6], "operation": kinds, "size_bytes": [4, 8, 4, 0, 0]})
    features = features_of(trace)
    assert features["read_gap_s_mean"] == 4
    assert features["read_share"] == 0.5  # opening is not part of the mix
    assert features["read_to_write_ratio"] == 2
    assert features["data_to_metadata_ratio"] == 3


def test_an_empty_trace_has_no_features_and_does_not_fail() -> None:
    empty = Trace.of({"seconds": []})
    assert all(math.isnan(value) for value in features_of(empty).values())
    assert np.isnan(cao_features(empty)).all()
    assert cao_windows(empty, 1.0).shape == (0, 18)


columns = st.integers(0, 40).flatmap(
    lambda n: st.fixed_dictionaries(
        {
            "seconds": st.lists(st.floats(0, 1e6), min_size=n, max_size=n),
            "operation": st.lists(st.integers(0, 7), min_size=n, max_size=n),
            "thread": st.lists(st.integers(0, 3), min_size=n, max_size=n),
            "file": st.lists(st.integers(0, 3), min_size=n, max_size=n),
            "offset_bytes": st.lists(st.integers(0, 2**50), min_size=n, max_size=n),
            "size_bytes": st.lists(st.integers(0, 2**30), min_size=n, max_size=n),
        }
    )
)


@given(columns)
def test_any_trace_has_sane_features(given_columns: dict[str, list[float]]) -> None:
    trace = Trace.of(given_columns)
    features = features_of(trace)
    assert not any(math.isinf(value) for value in features.values())
    shares = [value for name, value in features.items() if name.endswith("_share") and not math.isnan(value)]
    assert all(-1e-12 <= share <= 1 + 1e-12 for share in shares)
    for operation in (TraceOperation.READ, TraceOperation.WRITE):
        part = trace.only(operation)
        gaps = positional_gaps(part)
        assert gaps.run_operations.sum() == len(part)
        assert gaps.run_bytes.sum() == pytest.approx(float(part.size_bytes.sum()))
    assert all(difference == 0 for difference in relative_differences(features, features).values())
    assert not np.isinf(cao_features(trace)).any()


def test_caos_eighteen() -> None:
    assert len(CAO_FEATURES) == 18
    kinds = [
        TraceOperation.READ,
        TraceOperation.WRITE,
        TraceOperation.READ,
        TraceOperation.READ,
        TraceOperation.WRITE,
    ]
    trace = Trace.of(
        {
            "seconds": [0.0, 1.0, 2.0, 6.0, 7.0],
            "operation": kinds,
            "offset_bytes": [0, 100, 40, 20, 300],
            "size_bytes": [10, 20, 10, 40, 20],
        }
    )
    values = dict(zip(CAO_FEATURES, cao_features(trace).tolist(), strict=True))
    assert values["data_position_range_bytes"] == 300
    assert values["data_position_sd_bytes"] == pytest.approx(np.std([0, 100, 40, 20, 300]))
    assert values["data_position_delta_sd_bytes"] == pytest.approx(np.std([100, -60, -20, 280]))
    assert values["read_interarrival_s_mean"] == 3
    assert values["read_position_range_bytes"] == 40
    assert values["read_position_delta_sd_bytes"] == pytest.approx(np.std([40, -20]))
    assert values["read_size_bytes_mean"] == 20
    assert values["write_interarrival_s_mean"] == 6
    assert values["read_to_write_ratio"] == 1.5
    assert values["read_interarrival_relative_sd"] == pytest.approx(np.std([2, 4]) / 3)
    assert values["read_size_relative_sd"] == pytest.approx(np.std([10, 10, 40]) / 20)
    assert values["write_size_relative_sd"] == 0


def test_windows_hold_what_began_in_them() -> None:
    trace = reads(list(range(0, 100, 10)))  # one each half second: 4.5 s
    windows = cao_windows(trace, 2.0)
    assert windows.shape == (2, 18)
    first = cao_features(trace.between(0.0, 2.0))
    np.testing.assert_array_equal(windows[0], first)


def test_differences_leave_out_what_hardly_occurs() -> None:
    original = {
        "read_share": 0.99,
        "write_share": 0.01,
        "write_size_bytes_mean": 10.0,
        "read_size_bytes_mean": 8.0,
    }
    other = {**original, "write_size_bytes_mean": 90.0, "read_size_bytes_mean": math.nan}
    near = relative_differences(original, other, share_min=0.02)
    assert near == {"read_share": 0, "read_size_bytes_mean": math.inf}
    assert relative_differences(original, other)["write_size_bytes_mean"] == 8


samples = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30)


@given(samples, samples)
def test_the_earth_movers_distance_is_scipys(a: list[float], b: list[float]) -> None:
    ours = earth_movers_distance(np.array(a), np.array(b))
    assert ours == pytest.approx(wasserstein_distance(a, b), abs=1e-6, rel=1e-9)


def test_the_earth_movers_distance_of_nothing_is_not_known() -> None:
    assert math.isnan(earth_movers_distance(np.empty(0), np.array([1.0])))


def test_standardizing() -> None:
    rows = np.array([[1.0, 5.0, np.nan], [3.0, 5.0, 2.0], [5.0, 5.0, 4.0]])
    scores = standardize(rows)
    assert scores[:, 0] == pytest.approx([-1.2247, 0, 1.2247], abs=1e-4)
    assert scores[:, 1].tolist() == [0, 0, 0]
    assert scores[:, 2].tolist() == [0, -1, 1]
    distance = standardized_distance(rows)
    assert distance.shape == (3, 3)
    assert (distance == distance.T).all()
    assert distance.diagonal().tolist() == [0, 0, 0]
