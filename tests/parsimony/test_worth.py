"""What is kept of a gain, by exact numbers."""

from __future__ import annotations

import pytest

from ascar.parsimony.worth import gain_kept, still_better
from ascar.results.parsimony import ReductionStep
from ascar.results.verdict import Verdict


def verdict(gain, low, high):
    return Verdict("improved", gain_relative=gain, gain_low=low, gain_high=high)


def step(gain, low, high):
    return ReductionStep(
        (), {}, accepted=True, gain_relative=gain, gain_low=low, gain_high=high, confidence=0.99
    )


def test_more_is_better():
    # 100 -> 150; the smaller one has 145.5: 45.5 of 50.
    found = gain_kept(verdict(0.5, 0.4, 0.6), step(-0.03, -0.05, 0.01), 1)
    assert found["gain_kept"] == pytest.approx(0.91)
    # The least: 100 -> 140 -> 133; the most: 140 -> 141.4.
    assert found["gain_kept_low"] == pytest.approx(33 / 40)
    assert found["gain_kept_high"] == pytest.approx(41.4 / 40)
    assert found["gain_kept_confidence"] == pytest.approx(0.98)


def test_less_is_better():
    # 100 -> 50; the smaller one has 51: 49 of 50.
    found = gain_kept(verdict(0.5, 0.4, 0.6), step(-0.02, -0.05, 0.01), -1)
    assert found["gain_kept"] == pytest.approx(0.98)
    # The least: 100 -> 60 -> 63.
    assert found["gain_kept_low"] == pytest.approx(37 / 40)


def test_differences():
    gain = Verdict("improved", difference=10.0, difference_low=8.0, difference_high=12.0)
    lost = ReductionStep((), {}, accepted=True, difference=-1.0, difference_low=-2.0, difference_high=0.0)
    found = gain_kept(gain, lost, 1)
    assert (found["gain_kept"], found["gain_kept_low"], found["gain_kept_high"]) == (0.9, 0.75, 1.0)
    assert still_better(gain, lost, 1)


@pytest.mark.parametrize(
    ("low", "lost", "sign", "better"),
    [(0.1, -0.05, 1, True), (0.04, -0.05, 1, False), (0.1, -0.05, -1, True), (0.04, -0.05, -1, False)],
)
def test_a_smaller_one_beats_the_default_if_it_loses_less_than_the_best_gains(low, lost, sign, better):
    assert still_better(verdict(0.5, low, 0.6), step(0.0, lost, 0.05), sign) is better


def test_without_limits_there_is_no_interval_and_no_proof():
    found = gain_kept(verdict(0.5, None, None), step(-0.03, None, None), 1)
    assert found == {"gain_kept": pytest.approx(0.91)}
    assert not still_better(verdict(0.5, None, None), step(-0.03, None, None), 1)
