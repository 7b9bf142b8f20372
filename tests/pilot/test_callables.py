from __future__ import annotations

import itertools
import time

import numpy as np
import pytest

from ascar.errors import InputError
from ascar.pilot import Goal, Indicator, Kind, Limits, Round, WorkAmounts, measure

GOAL = Goal(interval_width=0.1, readings_min=30)


def _numbers(mean=100.0, sd=5.0, seed=1):
    rng = np.random.default_rng(seed)
    return lambda: rng.normal(mean, sd)


def test_a_function_that_returns_a_number_is_measured_by_it():
    session = measure(_numbers(), GOAL)
    (finding,) = session.findings
    assert session.reached
    assert finding.indicator.name == "value"
    assert finding.measurement.ci_low < 100 < finding.measurement.ci_high


@pytest.mark.slow
def test_a_function_that_returns_nothing_is_timed_many_calls_a_round():
    calls = itertools.count()
    session = measure(lambda: (next(calls), None)[1], "quick", limits=Limits(session_s=20))
    (finding,) = session.findings
    assert finding.indicator.name == "seconds_per_call"
    assert 0 < finding.measurement.mean < 1e-3
    assert next(calls) > 100 * len(session.rounds)
    assert all(done.seconds > 1e-3 for done in session.rounds)


def test_a_slow_function_is_called_once_a_round():
    session = measure(lambda: time.sleep(0.011), "quick", limits=Limits(rounds_max=6))
    assert session.findings[0].measurement.mean >= 0.011
    assert len(session.rounds) == 6


def test_a_row_of_numbers_is_unit_readings():
    draw = _numbers()
    session = measure(lambda: [draw() for _ in range(100)], GOAL)
    assert session.findings[0].basis == "unit readings"
    assert session.findings[0].readings == 100 * len(session.rounds)


def test_a_mapping_gives_several_indicators():
    calm, wild = _numbers(10, 0.1), _numbers(10, 4)
    session = measure(
        lambda: {"calm": calm(), "wild": [wild() for _ in range(40)]},
        GOAL,
        indicators=[Indicator("calm", goal=None), Indicator("wild", goal=GOAL)],
    )
    assert session.reached
    assert [finding.basis for finding in session.findings] == ["readings", "unit readings"]


def test_a_round_says_all_of_it():
    draw = _numbers()
    session = measure(lambda: Round(3.0, None, {"value": draw()}), GOAL)
    assert session.reached
    assert {done.seconds for done in session.rounds} == {3.0}


def test_work_is_passed_on_and_its_speed_told():
    rng = np.random.default_rng(1)
    session = measure(
        lambda work: Round((2 + work / 10) * (1 + 0.02 * rng.normal()), work),
        GOAL,
        work=WorkAmounts(1, 10_000),
    )
    assert session.reached
    assert session.speed.ci_low < 10 < session.speed.ci_high


def test_kinds_are_those_of_the_indicators():
    values = itertools.cycle([50.0, 200.0])
    session = measure(
        lambda: next(values),
        indicators=[Indicator("value", Kind.RATIO, GOAL)],
        limits=Limits(rounds_max=300),
    )
    assert session.findings[0].measurement.mean == pytest.approx(80, rel=0.1)


def test_each_round_is_told():
    seen = []
    session = measure(_numbers(), GOAL, on_round=seen.append)
    assert [len(state.rounds) for state in seen] == list(range(1, len(session.rounds) + 1))


def test_what_the_function_raises_comes_through():
    with pytest.raises(ZeroDivisionError):
        measure(lambda: 1 / 0)


@pytest.mark.parametrize(
    "told", ["fast", object(), {"x": "y"}, [[1.0], [2.0]], float("nan"), [1.0, float("inf")]]
)
def test_what_cannot_be_read_is_refused(told):
    name = "x" if isinstance(told, dict) else "value"
    with pytest.raises(InputError):
        measure(lambda: told, indicators=[Indicator(name)])


@pytest.mark.parametrize(
    ("told", "named"),
    [
        ({"ops": 1.0}, "no 'value', only ops"),
        (Round(1.0, None, {"ops": 1.0}), "no 'value', only ops"),
        (Round(1.0), "no 'value', only None"),
    ],
)
def test_a_reading_that_decides_and_never_comes_is_no_reason_to_wait(told, named):
    with pytest.raises(InputError, match=named):
        measure(lambda: told, GOAL)


def test_a_mean_time_that_may_be_zero_has_no_speed_and_says_why():
    values = itertools.cycle([1e-3, 1e3, 1e3, 1e3, 1e3, 1e3, 1e3])
    session = measure(
        lambda: next(values), indicators=[Indicator("value", Kind.RATIO, GOAL)], limits=Limits(rounds_max=9)
    )
    found = session.findings[0].measurement
    assert (found.ci_low, found.ci_high) == (None, None)
    assert "reaches 0" in found.reason


def test_an_unknown_preset_is_refused_before_anything_is_called():
    with pytest.raises(InputError, match="quick, normal, strict"):
        measure(lambda: pytest.fail("called"), "huge")
