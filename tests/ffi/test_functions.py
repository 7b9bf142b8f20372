"""The functions that analyse readings say what `ascar._core` says, for it is the same mathematics."""

from __future__ import annotations

import ctypes
import math

import numpy as np
import pytest

from ascar import _core
from elf_file import Elf, faults

pytestmark = pytest.mark.timeout(1800)


def test_the_library_is_hardened(prefix):
    assert faults(Elf((prefix / "lib/libascar.so").read_bytes()), is_program=False) == []


def _noise(n, rho=0.0, seed=1):
    values = np.random.default_rng(seed).normal(size=n)
    for index in range(1, n):
        values[index] += rho * values[index - 1]
    return values


def _series():
    warming = 100 + _noise(1200, 0.6)
    warming[:250] += 30
    warming[1100:] -= 25
    spiky = 5 + _noise(700, seed=2)
    spiky[::50] += 40
    unstable = np.repeat([0.0, 50.0, 100.0, 10.0], 100) + _noise(400, seed=3)
    return {
        "warm-up": warming,
        "correlated": 10 + _noise(3000, 0.9, seed=4),
        "spikes": spiky,
        "no stable phase": unstable,
        "constant": np.full(50, 3.25),
        "three": np.array([1.0, 2.0, 4.0]),
        "one": np.array([7.0]),
    }


def _nan(value):
    return math.nan if value is None else value


def _same(found, told):
    assert found == pytest.approx(told, rel=1e-12, nan_ok=True)


@pytest.mark.parametrize("name", _series())
@pytest.mark.parametrize("method", ["corrected", "faithful"])
def test_analyze(pilot, name, method):
    values = _series()[name]
    told = _core.analyze(values, confidence=0.9, autocorrelation_limit=0.2, method=method, min_segment=25)
    found = pilot.new("measurement")
    options = pilot.new("analysis_options")
    options.confidence, options.autocorrelation_limit, options.min_segment = 0.9, 0.2, 25
    options.method = pilot.constants[f"PILOT_{method.upper()}"]
    pilot.call("analyze", values, len(values), options, found)
    assert (found.n, found.stable_start, found.stable_end) == (told.n, told.stable_start, told.stable_end)
    assert found.change_points == len(told.change_points)
    assert found.subsession_size == (told.subsession_size or told.n)
    assert found.subsessions == told.n // found.subsession_size
    assert found.method.decode() == told.method
    assert found.reason.decode() == (told.reason or "")
    for field in ("mean", "ci_low", "ci_high", "confidence", "autocorrelation"):
        _same(getattr(found, field), _nan(getattr(told, field)))
    _same(found.independent_samples, told.effective_n)


def test_analyze_without_options_has_the_defaults(pilot):
    values = _series()["warm-up"]
    found = pilot.new("measurement")
    pilot.call("analyze", values, len(values), None, found)
    told = _core.analyze(values)
    _same((found.mean, found.ci_low, found.ci_high), (told.mean, told.ci_low, told.ci_high))
    assert found.confidence == 0.95


@pytest.mark.parametrize("name", _series())
def test_change_points(pilot, name):
    values = _series()[name]
    points, count = np.zeros(64, np.uintp), ctypes.c_size_t()
    pilot.call("change_points", values, len(values), 30, points, 64, count)
    told = _core.change_points(values)
    assert points[: count.value].tolist() == told
    pilot.call("edm_change_points", values, len(values), None, points, 64, count)
    assert points[: count.value].tolist() == _core.edm_change_points(values)
    options = pilot.new("edm_options")
    options.min_segment, options.percent, options.degree = 40, 0.1, 2
    pilot.call("edm_change_points", values, len(values), options, points, 64, count)
    told = _core.edm_change_points(values, min_segment=40, percent=0.1, degree=2)
    assert points[: count.value].tolist() == told


def test_points_beyond_the_room_are_counted_and_not_written(pilot):
    values = _series()["warm-up"]
    told = _core.change_points(values)
    assert len(told) >= 2
    points, count = np.full(4, 9, np.uintp), ctypes.c_size_t()
    pilot.call("change_points", values, len(values), 30, points, 1, count)
    assert count.value == len(told)
    assert points.tolist() == [told[0], 9, 9, 9]
    pilot.call("change_points", values, len(values), 30, None, 0, count)
    assert count.value == len(told)


def test_correlation(pilot):
    values = _series()["correlated"]
    number, size = ctypes.c_double(), ctypes.c_size_t()
    pilot.call("autocorrelation", values, len(values), 2, number)
    _same(number.value, _core.autocorrelation(values, 2))
    pilot.call("effective_sample_size", values, len(values), number)
    _same(number.value, _core.effective_sample_size(values))
    pilot.call("subsession_size", values, len(values), 0.1, size)
    assert size.value == _core.subsession_size(values, 0.1)
    pilot.call("subsession_size", np.arange(9.0), 9, 0.01, size)
    assert size.value == (_core.subsession_size(np.arange(9.0), 0.01) or 0)


def test_intervals(pilot):
    values = 50 + _noise(80)
    found = pilot.new("interval")
    for name, told, *arguments in [
        ("mean", _core.mean_interval(values, 0.9), 0.9),
        ("harmonic_mean", _core.harmonic_mean_interval(values, 0.9), 0.9),
        ("percentile", _core.percentile_interval(values, 0.8, 0.9), 0.8, 0.9),
    ]:
        pilot.call(f"{name}_interval", values, len(values), *arguments, found)
        _same((found.estimate, found.low, found.high), told)
    for method in ("wilson", "exact"):
        kind = pilot.constants[f"PILOT_{method.upper()}"]
        pilot.call("proportion_interval", 7, 40, 0.99, kind, found)
        _same((found.estimate, found.low, found.high), _core.proportion_interval(7, 40, 0.99, method=method))
    pilot.call("percentile_interval", values, 5, 0.99, 0.95, found)
    assert _core.percentile_interval(values[:5], 0.99, 0.95) is None
    assert all(math.isnan(end) for end in (found.estimate, found.low, found.high))


def test_comparisons(pilot):
    a, b = 100 + _noise(60), 103 + _noise(45, seed=9)
    found = pilot.new("welch")
    pilot.call("welch", a, len(a), b, len(b), 0.99, found)
    told = _core.welch(a, b, 0.99)
    for field, _ in found._fields_:
        _same(getattr(found, field), getattr(told, field))
    looks = pilot.new("sequential")
    verdicts = set()
    for n, margin in [(6, 0.0), (45, 0.0), (45, 0.5)]:
        for left, right in [(a, b), (b, a), (a, a + 1e-6)]:
            pilot.call("sequential_compare", left, n, right, n, 0.01, margin, looks)
            told = _core.sequential_compare(left[:n], right[:n], alpha=0.01, margin=margin or None)
            for field in ("difference", "ci_low", "ci_high", "ratio", "p_value"):
                _same(getattr(looks, field), getattr(told, field))
            _same(looks.ratio_ci_low, _nan(told.ratio_ci_low))
            _same(looks.independent_samples, told.effective_n)
            assert looks.verdict == pilot.constants[f"PILOT_{told.verdict.upper()}"]
            verdicts.add(told.verdict)
    assert verdicts == {"undecided", "less", "greater", "equivalent"}
    samples = ctypes.c_uint64()
    pilot.call("welch_sample_size", 100.0, 5.0, 101.0, 6.0, 0.05, 0.8, samples)
    assert samples.value == _core.welch_sample_size(100, 5, 101, 6, 0.05, 0.8)


def test_work_per_second(pilot):
    work = np.tile(np.arange(1.0, 31.0), 2) * 100
    seconds = 2 + work / 70 * (1 + 0.02 * _noise(60))
    found = pilot.new("speed")
    pilot.call("work_per_second", work, seconds, len(work), 0.95, found)
    told = _core.work_per_second(work, seconds)
    _same((found.work_per_s, found.ci_low, found.ci_high), (told.speed, told.ci_low, told.ci_high))
    _same((found.overhead_s, found.autocorrelation), (told.overhead_s, told.autocorrelation))
    assert (found.rounds, found.reason) == (told.rounds, b"")
    pilot.call("work_per_second", work, seconds[::-1].copy(), 30, 0.95, found)
    assert math.isnan(found.work_per_s)
    assert b"do not grow" in found.reason
