"""The first configurations of a search, and what is recommended at its end."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from ascar.optimizers import Evaluation
from ascar.optimizers.initialization import initial
from ascar.optimizers.random import RandomSearch
from ascar.optimizers.recommendation import recommend
from ascar.outcome import TrialState
from ascar.space import preset
from ascar.testing import grid, tiny


@pytest.mark.parametrize("method", ["random", "latin-hypercube"])
def test_start_configurations_come_first_and_count(method):
    space = grid()
    start = tuple(dict.fromkeys(space.sample(np.random.default_rng(1), 3)))
    drawn = initial(space, np.random.default_rng(2), 10, method, start)
    assert tuple(drawn[:3]) == start
    assert 8 <= len(drawn) <= 10
    assert len(set(drawn)) == len(drawn)
    assert all(space.is_valid(one) for one in drawn)
    assert initial(space, np.random.default_rng(2), 2, method, start) == list(start)


def test_a_latin_hypercube_is_even_where_random_sampling_follows_the_constraints():
    # Cao 9.5: Storage V3's constraints favour large blocks; 972 : 1,458 : 1,458.
    space = preset("storage-v3")
    (block,) = (name for name in space.names if "block_size" in name)
    even = Counter(one[block] for one in initial(space, np.random.default_rng(1), 300, "latin-hypercube"))
    plain = Counter(one[block] for one in initial(space, np.random.default_rng(1), 300, "random"))
    assert max(even.values()) - min(even.values()) <= 30
    assert min(plain.values()) / sum(plain.values()) == pytest.approx(972 / 3888, abs=0.06)


def told(configuration, loss, state=TrialState.COMPLETE):
    return Evaluation(configuration, state, loss)


def test_without_a_posterior_the_lowest_mean_is_recommended():
    one, two, three, *_ = tiny().enumerate()
    optimizer = RandomSearch(tiny())
    history = [
        told(one, 1.0),
        told(one, 5.0),
        told(two, 2.5),
        told(three, 0.1),
        told(three, None, TrialState.FAILED),
    ]
    found = recommend(optimizer, history)
    assert found is not None
    assert (found.configuration, found.loss, found.standard_error) == (two, 2.5, None)
    assert recommend(optimizer, []) is None
    assert recommend(optimizer, [told(one, None, TrialState.FAILED)]) is None
