"""Means that were saved, at another confidence: as wide as the readings themselves would say, or wider."""

from __future__ import annotations

import numpy as np
import pytest

from ascar.pilot import analyze
from ascar.pilot.machine import machine_differences, record_machine
from ascar.pilot.saved import at_confidence
from ascar.results.measurement import Measurement


def _series(seed: int, n: int, rho: float) -> np.ndarray:
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=n)
    for index in range(1, n):
        noise[index] = rho * noise[index - 1] + np.sqrt(1 - rho * rho) * noise[index]
    return 100 + 5 * noise


@pytest.mark.parametrize("rho", [0.0, 0.6])
@pytest.mark.parametrize("n", [300, 3000])
def test_a_wider_interval_is_hardly_ever_too_narrow(n: int, rho: float) -> None:
    narrow = 0
    for seed in range(40):
        values = _series(seed, n, rho)
        saved = analyze(values, 0.95, whole=True)
        told = analyze(values, 0.999, whole=True)
        wide = at_confidence(saved, 0.999)
        if saved.ci_low is None:
            assert wide == saved
            continue
        narrow += (wide.ci_width or 0) < 0.97 * (told.ci_width or 0)
        assert wide.confidence == 0.999
    assert narrow <= 4


def test_the_same_confidence_changes_nothing() -> None:
    saved = analyze(_series(1, 200, 0.3), 0.95)
    again = at_confidence(saved, 0.95)
    assert (again.ci_low, again.ci_high) == pytest.approx((saved.ci_low, saved.ci_high))
    single = Measurement.single(3.0)
    assert at_confidence(single, 0.99) == single


def test_a_harmonic_mean_is_widened_where_its_interval_is_even() -> None:
    saved = Measurement(50.0, 40.0, 200 / 3, 0.95, 20, 20, 0.0, 1, 0, 20, (), "harmonic, corrected")
    wide = at_confidence(saved, 0.99)
    assert wide.ci_low is not None and wide.ci_high is not None
    assert 1 / wide.ci_low - 1 / 50 == pytest.approx(1 / 50 - 1 / wide.ci_high)
    assert wide.ci_low < 40
    far = at_confidence(Measurement(50.0, 26.0, 600.0, 0.95, 4, 4, 0.0, 1, 0, 4, (), "harmonic"), 0.999)
    assert far.ci_low is None
    assert "reaches 0" in far.reason


def test_small_differences_of_memory_and_load_are_none() -> None:
    here = record_machine()
    from msgspec.structs import replace

    like = replace(here, memory_bytes=int(here.memory_bytes * 1.01), load_begin=here.load_begin)
    assert machine_differences({"a": here, "b": like}) == ()
    assert machine_differences({"a": None, "b": None}) == ()
    busy = replace(here, load_begin=here.load_begin + here.cpus, cpu="Z80", governor="powersave")
    found = {one.fact: one.values for one in machine_differences({"a": here, "b": busy})}
    assert found["cpu"] == {"a": here.cpu, "b": "Z80"}
    assert set(found) == {"cpu", "governor", "load before"}
