"""Scrambled sequences are the points of SciPy's, digit for digit."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import qmc

from ascar.space.low_discrepancy import HaltonPoints, SobolPoints


@pytest.mark.parametrize(("ours", "theirs"), [(SobolPoints, qmc.Sobol), (HaltonPoints, qmc.Halton)])
@pytest.mark.parametrize("width", [1, 2, 7, 40, 200])
def test_points_are_scipys(ours, theirs, width):
    for seed in range(3):
        engine = theirs(width, scramble=True, rng=np.random.default_rng(seed))
        points = ours(width, np.random.default_rng(seed).spawn(1)[0])
        for count in (8, 4, 1, 3):  # the next continue where the last ended
            assert np.array_equal(points.following(count), engine.random(count))


def test_all_directions_are_scipys():
    engine = qmc.Sobol(1024, scramble=True, rng=np.random.default_rng(1))
    points = SobolPoints(1024, np.random.default_rng(1).spawn(1)[0])
    assert np.array_equal(points.following(64), engine.random(64))


def test_dimensions_beyond_the_known_are_plain_random_numbers():
    points = SobolPoints(1030, np.random.default_rng(1)).following(256)
    assert points.shape == (256, 1030)
    assert points.min() >= 0 and points.max() < 1
    assert points.mean(0) == pytest.approx(0.5, abs=0.1)
    # Of any power of two there is one in each interval as wide; by chance some stay empty.
    filled = [len(set((column * 256).astype(int))) for column in points.T]
    assert set(filled[:1024]) == {256} and max(filled[1024:]) < 200
