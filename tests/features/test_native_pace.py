"""A trace without the tracing that it was made by."""

from __future__ import annotations

import numpy as np
import pytest

from ascar.features import Trace, TraceOperation, at_native_pace, signature_of

INSIDE_S, BETWEEN_S = 5e-6, 12e-6
"""What tracing adds to a call's latency, and between two calls."""


def traced(own_s: float, think_s: float, calls: int) -> tuple[Trace, float]:
    """Loops of so many calls and a pause by two threads, traced; and how much slower they went for it."""
    chance = np.random.default_rng(1)
    columns: dict[str, list[float]] = {"seconds": [], "operation": [], "thread": [], "latency_s": []}
    native_s = traced_s = 0.0
    for thread in range(2):
        now_s = native_now_s = 0.0
        for place in range(6000):
            own = own_s * chance.exponential()
            inside, between = chance.uniform(1, 1.5) * INSIDE_S, chance.uniform(1, 1.5) * BETWEEN_S
            pause = think_s if place % calls == 0 else 0.0
            columns["seconds"].append(now_s)
            columns["operation"].append(TraceOperation.READ if place % 3 else TraceOperation.STAT)
            columns["thread"].append(thread)
            columns["latency_s"].append(own + inside)
            now_s += own + inside + between + pause
            native_now_s += own + pause
        traced_s, native_s = traced_s + now_s, native_s + native_now_s
    columns["size_bytes"] = [4096 if kind == TraceOperation.READ else 0 for kind in columns["operation"]]
    return Trace.of(columns), traced_s / native_s


@pytest.mark.parametrize("own_s", [1e-6, 20e-6])
def test_a_load_that_waits_for_nothing_does_not_think(own_s: float) -> None:
    trace, slowdown = traced(own_s, 0.0, 1)
    native = at_native_pace(trace, slowdown)
    assert native.duration_s == pytest.approx(trace.duration_s / slowdown)
    before, after = signature_of(trace), signature_of(native)
    assert before.think_s is not None
    assert after.think_s is not None
    assert before.think_s > 0.25 * before.length * 2 / before.operations_per_s
    assert after.think_s < 0.02 * after.length * 2 / after.operations_per_s


@pytest.mark.parametrize(("think_s", "calls"), [(0.01, 10), (0.001, 10), (0.0005, 1)])
def test_time_to_think_is_kept(think_s: float, calls: int) -> None:
    trace, slowdown = traced(3e-6, think_s, calls)
    signature = signature_of(at_native_pace(trace, slowdown))
    assert signature.think_s == pytest.approx(think_s / calls * signature.length, rel=0.03)


def test_what_is_not_known_is_left_alone() -> None:
    trace, slowdown = traced(1e-6, 0.0, 1)
    assert at_native_pace(trace, 1.0) is trace
    assert at_native_pace(trace, float("nan")) is trace
    unknown = Trace(
        **{name: getattr(trace, name) for name in trace.__slots__ if name != "latency_s"},
        latency_s=np.full(len(trace), np.nan),
    )
    native = at_native_pace(unknown, slowdown)
    assert np.all(np.isnan(native.latency_s))
    assert native.duration_s == pytest.approx(trace.duration_s / slowdown)
    nothing = trace.only(TraceOperation.WRITE)
    assert at_native_pace(nothing, 2.0) is nothing
