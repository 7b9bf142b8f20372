"""The first configurations of a search, and what is recommended at its end."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import get_args

import numpy as np
import pytest

from ascar.optimizers import Evaluation
from ascar.optimizers.guided.columns import SpaceColumns
from ascar.optimizers.initialization import Method, initial
from ascar.optimizers.random import RandomSearch
from ascar.optimizers.recommendation import recommend
from ascar.results.trial import TrialState
from ascar.space import Guarantee, Space, integer, preset
from ascar.testing import grid, tiny
from ascar.testing.spaces import branching, continuous


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
    space = preset("storage-v3").permit_weaker(Guarantee)
    (block,) = (name for name in space.names if "block_size" in name)
    even = Counter(one[block] for one in initial(space, np.random.default_rng(1), 300, "latin-hypercube"))
    plain = Counter(one[block] for one in initial(space, np.random.default_rng(1), 300, "random"))
    assert max(even.values()) - min(even.values()) <= 30
    assert min(plain.values()) / sum(plain.values()) == pytest.approx(972 / 3888, abs=0.06)


def test_a_maximin_hypercube_leaves_its_configurations_farther_apart():
    def nearest(method, seed):
        rows = SpaceColumns.of(grid()).rows(initial(grid(), np.random.default_rng(seed), 10, method))
        return min(float(((one - two) ** 2).sum()) for one, two in combinations(rows, 2))

    seeds = range(6)
    assert all(nearest("maximin", seed) >= nearest("latin-hypercube", seed) for seed in seeds)
    assert sum(nearest("maximin", seed) for seed in seeds) > sum(
        nearest("latin-hypercube", seed) for seed in seeds
    )


@pytest.mark.parametrize("method", get_args(Method))
def test_every_method_counts_the_start_and_keeps_to_the_space(method):
    for space in (branching(), continuous(), grid(), tiny()):
        start = (space.default(),)
        found = initial(space, np.random.default_rng(5), 9, method, start)
        assert found[0] == space.default()
        assert len(found) <= 9
        assert len(set(found)) == len(found)
        assert all(space.validate(one) == one for one in found)
        assert initial(space, np.random.default_rng(5), 1, method, start) == [space.default()]


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


def test_a_design_near_the_default_keeps_half_of_its_values_and_is_valid():
    wide = Space(tuple(integer(f"p{at}", (0, 1_000), default=500) for at in range(20)), name="wide")
    space = wide.constrain("p0 + p1 <= 1200")
    drawn = initial(space, np.random.default_rng(3), 40, "near-known")
    assert len(set(drawn)) == 40
    for one in drawn:
        space.validate(dict(one))
    kept = np.mean([[one[name] == 500 for name in space.names] for one in drawn], axis=0)
    assert kept.mean() == pytest.approx(0.5, abs=0.06) and kept.min() > 0.2
    first = space.validate({f"p{at}": 7 for at in range(20)})
    near = initial(space, np.random.default_rng(3), 41, "near-known", (first,))
    assert near[0] == first and len(near) == 41
    kept = np.mean([[one[name] == 7 for name in space.names] for one in near[1:]])
    assert kept == pytest.approx(0.5, abs=0.06)
