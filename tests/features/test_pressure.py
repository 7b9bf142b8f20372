"""Pressure: threads, operations in flight, time spent waiting."""

from __future__ import annotations

import numpy as np
import pytest

from ascar.features import Trace, TraceOperation, pressure_of


def test_operations_in_flight_are_those_of_littles_law():
    trace = Trace.of(
        {
            "seconds": [0.0, 0.0, 1.0, 1.0],
            "operation": [
                TraceOperation.READ,
                TraceOperation.WRITE,
                TraceOperation.READ,
                TraceOperation.WRITE,
            ],
            "thread": [1, 2, 1, 2],
            "file": [1, 2, 3, 4],
            "latency_s": [1.0, 0.5, 1.0, 0.5],
        }
    )
    found = pressure_of(trace)
    assert (found["threads"], found["files_per_thread"]) == (2, 2)
    assert found["read_in_flight_mean"] == pytest.approx(1.0)
    assert found["write_in_flight_mean"] == pytest.approx(0.5)
    assert found["create_in_flight_mean"] == 0
    assert found["busy_share"] == pytest.approx(0.75)


def test_what_is_not_known_is_nan():
    trace = Trace.of({"seconds": [0.0, 1.0], "operation": [0, 1]})
    found = pressure_of(trace)
    assert np.isnan(found["read_in_flight_mean"]) and np.isnan(found["busy_share"])
    empty = pressure_of(Trace.of({"seconds": []}))
    assert empty["threads"] == 0 and np.isnan(empty["busy_share"])
