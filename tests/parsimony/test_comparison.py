"""The test of a loss: how often it is wrong, and what is known of the scatter."""

from __future__ import annotations

from math import inf, log1p

import numpy as np
import pytest

from ascar.pairs import Scatter, changes
from ascar.parsimony.comparison import LossTest

MARGIN = 0.03


def test_scatter_is_pooled_but_the_greater_own_one_stands():
    earlier = Scatter(1.0, 30)
    assert Scatter(0.5, 4).with_earlier(earlier).dof == 14
    assert 0.5 < Scatter(0.5, 4).with_earlier(earlier).sd < 1.0
    assert Scatter(2.0, 4).with_earlier(earlier) == Scatter(2.0, 4)
    assert Scatter().with_earlier(earlier) == Scatter(1.0, 10)
    assert Scatter.of([1.0]) == Scatter()
    assert changes([(100.0, 110.0), (-1.0, -2.0)]) == pytest.approx([10 / 49.5, -1 / 49.5])


def test_a_known_scatter_narrows_the_limits_of_few_pairs():
    seen = [0.001, -0.002, 0.0015]
    _, low, high = LossTest(0.01, MARGIN, Scatter(0.002, 20)).limits(seen)
    assert -MARGIN < low < high < MARGIN
    _, low, high = LossTest(0.01, MARGIN, Scatter()).limits(seen)
    assert high - low > 2 * MARGIN
    assert LossTest(0.01, MARGIN, Scatter()).limits(seen[:1])[1:] == (-inf, inf)


@pytest.mark.parametrize("ratio", [1.0, 2.0])
@pytest.mark.parametrize("run_sd", [0.004, 0.02])
def test_a_loss_of_the_margin_is_accepted_at_most_as_often_as_the_level_says(run_sd, ratio):
    # One-sided 2.5% over all looks, 300 comparisons: 7.5 are expected at most, 17 would be beyond chance.
    rng, wrong = np.random.default_rng(1), 0
    for _ in range(300):
        earlier = Scatter.of(list(run_sd * np.sqrt(2) * rng.standard_normal(12)))
        test = LossTest(0.05, MARGIN, earlier)
        seen = list(log1p(-MARGIN) + run_sd * np.hypot(1, ratio) * rng.standard_normal(30))
        looks = range(test.pairs_min(5), 31)
        wrong += any(test.limits(seen[:count])[1] > log1p(-MARGIN) for count in looks)
    assert wrong <= 16
