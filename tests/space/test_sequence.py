"""Low-discrepancy sequences: valid, even over the valid configurations, different from seed to seed."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from space_strategies import satisfiable, spaces

from ascar.space import ChangeCost, Guarantee, Space, floating, integer, preset

COST = ChangeCost.DYN_KERNEL
KINDS = ("sobol", "halton")


@given(spaces())
@settings(max_examples=25, deadline=None)
def test_every_one_of_them_is_valid(space):
    if not satisfiable(space):
        return
    for kind in KINDS:
        found = space.sequence(np.random.default_rng(1), 9, kind)
        assert len(found) == 9
        assert all(space.validate(one) == one for one in found)


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_even_over_the_valid_configurations(kind):
    # Cao 9.5: Storage V3 has 972, 1,458 and 1,458 valid configurations by block size.
    space = preset("storage-v3").permit_weaker(Guarantee)
    (block,) = (name for name in space.names if "block_size" in name)
    counts = Counter(one[block] for one in space.sequence(np.random.default_rng(4), 256, kind))
    assert counts[1024] == pytest.approx(64, abs=3)
    assert counts[2048] == pytest.approx(96, abs=3)


@pytest.mark.parametrize("kind", KINDS)
def test_a_range_is_covered_more_evenly_than_by_chance(kind):
    space = Space(
        (floating("x", (0.0, 1.0), default=0.5, cost=COST), integer("y", (1, 4), default=1, cost=COST))
    )
    places = sorted(one["x"] for one in space.sequence(np.random.default_rng(2), 64, kind))
    assert max(np.diff([0.0, *places, 1.0])) < 0.06  # by chance about ln(64) / 64 = 0.065, often 0.1


def test_seeds_differ_and_repeat():
    space = preset("storage-v3").permit_weaker(Guarantee)

    def drawn(seed):
        return space.sequence(np.random.default_rng(seed), 8)

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)


def test_a_constraint_on_a_wide_range_turns_points_down_and_the_next_takes_its_place():
    space = Space(
        (
            floating("x", (0.0, 1.0), default=0.1, cost=COST),
            floating("y", (0.0, 1.0), default=0.1, cost=COST),
        )
    ).constrain("x + y < 0.3")
    found = space.sequence(np.random.default_rng(3), 20)
    assert len(found) == 20
    assert all(one["x"] + one["y"] < 0.3 for one in found)
