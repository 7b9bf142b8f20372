"""One against several, run by run."""

from __future__ import annotations

import numpy as np
import pytest

from ascar.errors import InputError
from ascar.pilot.rivals import against_each, check_contest
from ascar.pilot.turns import Gain

RNG = np.random.default_rng(1)
SHARED = RNG.normal(100, 10, 30)
OURS, EQUAL, WORSE = SHARED + 5, SHARED + RNG.normal(5, 1, 30), SHARED + RNG.normal(0, 1, 30)


def test_the_first_is_compared_with_each_of_the_others():
    first, equal, worse = against_each({"a": OURS, "b": EQUAL, "c": WORSE}, "maximize", 0.95)
    assert (first.verdict, equal.verdict, worse.verdict) == ("itself", "open", "better")
    assert worse.gain_relative == pytest.approx(0.05, rel=0.2)
    assert worse.gain_low > 0
    first, _, worse = against_each({"a": OURS, "b": EQUAL, "c": WORSE}, "minimize", 0.95)
    assert worse.verdict == "worse"
    assert worse.gain_high < 0


def test_all_intervals_hold_together():
    *_, alone = against_each({"a": OURS, "c": WORSE}, "maximize", 0.95)
    *_, of_two = against_each({"a": OURS, "b": EQUAL, "c": WORSE}, "maximize", 0.95)
    assert alone.gain_low == Gain.of(WORSE, OURS, "maximize", 0.05).gain_low
    assert of_two.gain_low == Gain.of(WORSE, OURS, "maximize", 0.025).gain_low < alone.gain_low


def test_where_scores_are_not_above_zero_differences_are_told():
    _, other = against_each({"a": OURS - 100, "b": WORSE - 100}, "maximize", 0.95)
    assert other.gain_relative is None
    assert other.difference_low > 0
    assert other.verdict == "better"


@pytest.mark.parametrize(("runs", "confidence", "contenders"), [(1, 0.95, 2), (2, 1.0, 2), (2, 0.95, 1)])
def test_what_cannot_be_told_apart_is_refused_before_any_run(runs, confidence, contenders):
    with pytest.raises(InputError):
        check_contest(runs, confidence, contenders)
