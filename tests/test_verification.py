"""The last comparison: fixed beforehand, interleaved, honest in both directions."""

from __future__ import annotations

import pytest

from ascar.space import Configuration
from ascar.study import Study
from ascar.verification import Plan, conclude

BEST, DEFAULT = Configuration({"depth": 64}), Configuration({"depth": 1})


def study(direction: str = "maximize") -> Study:
    return Study.parse(
        f"""
        [study]
        name = "verify"
        objective = "{direction} throughput_ops_per_s"
        budget = "1 min"
        [target]
        kind = "simulated"
        """
    )


def test_the_sides_take_turns_and_the_first_of_each_pair_alternates():
    assert Plan(BEST, DEFAULT, 3).order() == [DEFAULT, BEST, BEST, DEFAULT, DEFAULT, BEST]


def test_a_clear_gain_is_improved_with_its_interval():
    verdict = conclude(
        study(), Plan(BEST, DEFAULT, 5), [100, 101, 99, 100, 102], [130, 131, 129, 132, 130], 0
    )
    assert verdict.kind == "improved"
    assert verdict.gain_relative == pytest.approx(0.2988, abs=1e-3)
    assert verdict.gain_low is not None
    assert verdict.gain_high is not None
    assert verdict.gain_low < 0.2988 < verdict.gain_high
    assert verdict.p_value is not None
    assert verdict.p_value < 0.01


def test_a_clear_loss_is_no_improvement():
    verdict = conclude(
        study(), Plan(BEST, DEFAULT, 5), [130, 131, 129, 132, 130], [100, 101, 99, 100, 102], 0
    )
    assert verdict.kind == "default-is-fine"
    assert verdict.gain_relative is not None
    assert verdict.gain_relative < 0


def test_less_is_a_gain_where_less_is_wanted():
    verdict = conclude(
        study("minimize"), Plan(BEST, DEFAULT, 5), [130, 131, 129, 132, 130], [100, 101, 99, 100, 102], 0
    )
    assert verdict.kind == "improved"
    assert verdict.gain_relative == pytest.approx(0.23, abs=0.01)
    assert verdict.gain_low is not None
    assert verdict.gain_high is not None
    assert 0 < verdict.gain_low < verdict.gain_relative < verdict.gain_high


def test_noise_is_not_a_gain():
    verdict = conclude(study(), Plan(BEST, DEFAULT, 4), [100, 120, 90, 110], [104, 118, 95, 112], 0)
    assert verdict.kind == "default-is-fine"
    assert verdict.p_value is not None
    assert verdict.p_value > 0.01


def test_too_many_failures_leave_nothing_to_say():
    verdict = conclude(study(), Plan(BEST, DEFAULT, 5), [100.0, 101.0], [130.0], 7)
    assert verdict.kind == "not-verified"
    assert "7 of 10 runs failed" in verdict.note


def test_failed_runs_are_named():
    verdict = conclude(study(), Plan(BEST, DEFAULT, 4), [100, 101, 99], [130, 131, 129, 130], 1)
    assert "1 runs failed" in verdict.note
