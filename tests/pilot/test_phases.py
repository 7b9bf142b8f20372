from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from ascar.pilot import PhaseKind, analyze, phases_of


def _series(*parts, seed=1):
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.normal(level, 1, n) for level, n in parts])


def _phases(values):
    return phases_of(values, analyze(values))


def _cover(phases, values):
    assert phases[0].start == 0
    assert phases[-1].end == len(values)
    assert all(a.end == b.start for a, b in pairwise(phases))
    for phase in phases:
        assert phase.mean == pytest.approx(values[phase.start : phase.end].mean())
        assert len(phase) == phase.end - phase.start > 0


def test_one_level_is_one_stable_phase():
    values = _series((100, 600))
    phases = _phases(values)
    _cover(phases, values)
    stable = max(phases, key=len)
    assert stable.kind is PhaseKind.STABLE
    assert stable.reason == ""
    assert len(stable) > 0.9 * len(values)


def test_warm_up_and_cool_down_are_told_with_how_far_off_they_were():
    values = _series((140, 100), (100, 600), (60, 100))
    phases = _phases(values)
    _cover(phases, values)
    assert phases[0].kind is PhaseKind.WARM_UP
    assert "on another level, +40" in phases[0].reason
    assert phases[-1].kind is PhaseKind.COOL_DOWN
    assert "on another level, -40" in phases[-1].reason
    (stable,) = [phase for phase in phases if phase.kind is PhaseKind.STABLE]
    # What is beside a change may be left out too, and says so.
    assert 100 <= stable.start <= 200
    assert 600 <= stable.end <= 700
    others = [phase for phase in phases[1:-1] if phase is not stable]
    assert all("beside a change of level" in phase.reason for phase in others)


def test_a_warm_up_in_steps_is_several_phases():
    values = _series((160, 100), (130, 100), (100, 700))
    phases = _phases(values)
    _cover(phases, values)
    levels = [phase for phase in phases if "another level" in phase.reason]
    assert len(levels) == 2
    assert [phase.kind for phase in levels] == [PhaseKind.WARM_UP] * 2


def test_without_a_dominant_level_all_phases_are_unstable():
    values = _series((1, 200), (50, 200), (100, 200))
    phases = _phases(values)
    _cover(phases, values)
    assert {phase.kind for phase in phases} == {PhaseKind.UNSTABLE}
    assert all("no stable phase" in phase.reason for phase in phases)


def test_readings_around_zero_have_no_relative_level():
    values = np.concatenate([np.full(100, 5.0), np.zeros(500)])
    phases = _phases(values)
    _cover(phases, values)
    assert "%" not in "".join(phase.reason for phase in phases)


@pytest.mark.parametrize("values", [[1.0], [1.0, 2.0], [3.0] * 50])
def test_short_and_constant_series_are_covered_too(values):
    _cover(_phases(np.array(values)), np.array(values))
