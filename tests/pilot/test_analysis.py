from __future__ import annotations

import itertools

import numpy as np
import pytest

from ascar.errors import InputError
from ascar.pilot import Goal, analyze, compare, phases_of, verdict_on


def _noise(n, rho=0.0, seed=1):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=n)
    for index in range(1, n):
        values[index] += rho * values[index - 1]
    return values


def test_warm_up_and_cool_down_are_removed_and_said_so():
    values = 100 + _noise(1000, 0.5)
    values[:200] += 30
    values[900:] -= 40
    found = analyze(values)
    assert (found.change_points) == pytest.approx((200, 900), abs=3)
    assert found.ci_low is not None
    assert found.ci_high is not None
    assert found.ci_low < 100 < found.ci_high
    assert found.n == found.stable_end - found.stable_start
    assert found.subsessions == found.n // found.subsession_size
    phases = phases_of(values, found)
    assert [phase.kind.value for phase in phases].count("stable") == 1
    assert phases[0].kind.value == "warm-up"
    assert phases[0].reason == "on another level, +30.0%"
    assert phases[-1].kind.value == "cool-down"
    assert phases[-1].reason.startswith("on another level, -")


def test_phases_cover_the_series_whatever_it_is():
    rng = np.random.default_rng(3)
    for trial in range(60):
        values = np.concatenate(
            [
                rng.normal(rng.choice([0, 5, 20, 100]), 1, rng.integers(1, 150))
                for _ in range(rng.integers(1, 6))
            ]
        )
        found = analyze(values)
        phases = phases_of(values, found)
        assert phases[0].start == 0, trial
        assert phases[-1].end == len(values)
        assert all(a.end == b.start for a, b in itertools.pairwise(phases))
        assert all(len(phase) > 0 for phase in phases)
        assert all(phase.mean == pytest.approx(values[phase.start : phase.end].mean()) for phase in phases)
        kinds = {phase.kind.value for phase in phases}
        assert ("stable" in kinds) != ("unstable" in kinds)
        assert all(bool(phase.reason) == (phase.kind.value != "stable") for phase in phases)


def test_a_series_without_a_dominant_phase_has_no_interval():
    values = np.repeat([0.0, 50.0, 100.0, 10.0], 100) + _noise(400)
    found = analyze(values)
    assert found.ci_low is None
    assert "no stable phase" in found.reason
    assert {phase.kind.value for phase in phases_of(values, found)} == {"unstable"}
    assert verdict_on(found, Goal(0.1, 12)).word == "no-interval"


def test_verdicts_in_words():
    values = 100 + _noise(200)
    found = analyze(values)
    assert verdict_on(found, Goal(0.1, 50)).word == "reached"
    assert verdict_on(found, Goal(0.1, 201)).word == "too-few-readings"
    assert verdict_on(found, Goal(1e-6, 50)).word == "too-wide"
    assert verdict_on(analyze([1.0]), Goal(0.1, 1)).word == "no-interval"
    assert verdict_on(analyze(np.tile([1.0, -1.0], 50)), Goal(0.1, 1)).word == "too-wide"


def test_whole_takes_the_readings_as_one_phase():
    values = np.repeat([0.0, 100.0], 100) + _noise(200)
    assert analyze(values, whole=True).change_points == ()
    assert len(analyze(values).change_points) == 1


def test_the_published_rule_is_kept_as_faithful_with_its_limit():
    values = 100 + _noise(2000, 0.8)
    loose, tight = (analyze(values, method="faithful", autocorrelation_limit=limit) for limit in (0.8, 0.1))
    assert loose.method == "faithful"
    assert loose.subsession_size < tight.subsession_size
    assert loose.ci_width is not None
    assert tight.ci_width is not None
    assert loose.ci_width < tight.ci_width


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ([], "shape"),
        ([[1.0, 2.0]], "shape"),
        (["a"], "must be numbers"),
        ([1.0, float("nan")], "finite"),
        ([1.0, float("inf"), 2.0], "finite"),
    ],
)
def test_what_are_no_readings_is_refused(values, told):
    with pytest.raises(InputError, match=told):
        analyze(values)


def test_a_confidence_that_is_none_is_refused():
    for values in ([1.0, 2.0, 3.0], [1.0]):
        with pytest.raises(InputError, match="confidence"):
            analyze(values, confidence=1.5)
        with pytest.raises(InputError, match="confidence"):
            compare(values, [1.0, 2.0], confidence=1.5)


def test_one_reading_that_is_no_number_is_refused_as_more_are():
    for values in ([np.nan], [np.inf], [np.nan, 1.0]):
        with pytest.raises(InputError, match="finite numbers"):
            analyze(values)


def test_presets_by_name_with_what_is_changed():
    goal = Goal.of("strict", interval_width=0.02)
    assert (goal.interval_width, goal.readings_min, goal.confidence) == (0.02, 200, 0.95)
    for wrong in (
        {"preset": "fast"},
        {"preset": "quick", "interval_width": 0},
        {"preset": "quick", "confidence": 2},
    ):
        with pytest.raises(InputError):
            Goal.of(**wrong)
