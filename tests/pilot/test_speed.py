from __future__ import annotations

import numpy as np
import pytest

from ascar.errors import InputError
from ascar.pilot import Goal, Round, speed_of


def _rounds(amounts, alpha_s=2.0, speed=50.0, noise=0.0, seed=0):
    rng = np.random.default_rng(seed)
    return [
        Round((alpha_s + amount / speed) * (1 + noise * rng.normal()), float(amount)) for amount in amounts
    ]


def test_speed_and_start_are_told_apart():
    found = speed_of(_rounds(range(200, 1200, 40), noise=0.01))
    assert found.ci_low < 50 < found.ci_high
    assert found.ci_width_relative < 0.1
    assert found.alpha_s == pytest.approx(2, abs=0.4)
    assert found.seconds_for(5000) == pytest.approx(102, rel=0.03)
    assert found.work_min == pytest.approx(100, rel=0.2)


def test_rounds_with_less_work_than_the_start_had_time_for_are_dropped():
    short, long = [20, 30, 40, 50], list(range(200, 1200, 50))
    found = speed_of(_rounds(short + long, noise=0.005))
    assert found.rounds == len(long)
    assert found.work_min > 50


def test_a_start_that_is_faster_than_the_rest_has_a_negative_alpha():
    """The first part of the work goes into a cache."""
    found = speed_of(_rounds(range(200, 1200, 40), alpha_s=-1.0, noise=0.002))
    assert found.alpha_s < 0
    assert found.work_min == 0


@pytest.mark.parametrize(
    "rounds",
    [
        [],
        _rounds([100]),
        _rounds([100, 100, 100]),
        [Round(1.0), Round(2.0)],
        [Round(2.0, 100.0), Round(1.0, 200.0)],
        [Round(1.0, 100.0), Round(1.0, 200.0), Round(1.0, 300.0)],
    ],
)
def test_without_a_rising_line_there_is_no_speed(rounds):
    assert speed_of(rounds) is None


def test_two_rounds_have_a_speed_and_no_interval():
    found = speed_of(_rounds([1000, 2000]))
    assert found.work_per_s == pytest.approx(50)
    assert found.ci_low is None
    assert found.reason
    assert found.ci_width_relative is None


def test_few_rounds_meet_no_goal_however_well_they_agree():
    goal = Goal(interval_width=0.2, readings_min=12)
    assert not speed_of(_rounds(range(500, 1300, 80), noise=0.001)).meets(goal)
    assert speed_of(_rounds(range(500, 3500, 60), noise=0.001)).meets(goal)
    assert not speed_of(_rounds(range(500, 3500, 60), noise=0.4)).meets(goal)


def test_a_higher_confidence_widens_the_interval():
    rounds = _rounds(range(200, 1200, 40), noise=0.02)
    assert speed_of(rounds, 0.99).ci_width_relative > speed_of(rounds, 0.9).ci_width_relative


def test_rounds_without_a_duration_are_refused():
    with pytest.raises(InputError, match="rounds: duration_s is 0 at index 1"):
        speed_of([Round(1.0, 1.0), Round(0.0, 2.0)])
