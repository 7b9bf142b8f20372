import time

import numpy as np
import pytest
from hypothesis import given, settings
from space_strategies import satisfiable, spaces

from ascar.errors import SpaceError
from ascar.space import (
    ChangeCost,
    Configuration,
    Guarantee,
    Space,
    boolean,
    floating,
    integer,
    ordinal,
    preset,
)

COST = ChangeCost.DYN_KERNEL


def definition(space, configuration):
    """Neighbours by the definition, tried out: change one value, activate defaults, drop what is inactive."""
    found = set()
    for name, value in configuration.items():
        for other in space.domain(name).each():
            if other == value:
                continue
            known = {}
            for parameter in space.parameters:
                active = parameter.condition is None or parameter.condition.holds(known) is True
                wanted = (
                    other if parameter.name == name else configuration.get(parameter.name, parameter.default)
                )
                known[parameter.name] = wanted if active else None
            values = {n: v for n, v in known.items() if v is not None}
            if name in values and space.is_valid(values):
                found.add(Configuration(values))
    return found


@given(spaces())
@settings(max_examples=40, deadline=None)
def test_neighbours_are_valid_differ_in_one_choice_and_none_is_missing(space):
    if not satisfiable(space):
        return
    for configuration in list(space.enumerate())[:15]:
        neighbours = space.neighbours(configuration)
        assert len(neighbours) == len(set(neighbours))
        assert configuration not in neighbours
        assert all(space.is_valid(neighbour) for neighbour in neighbours)
        # Beyond the definition there are only those that activate another value than a forbidden default.
        assert definition(space, configuration) <= set(neighbours)
        for neighbour in neighbours:
            both = [name for name in configuration if name in neighbour]
            assert sum(configuration[name] != neighbour[name] for name in both) == 1


def test_dependents_appear_with_their_defaults_and_disappear():
    space = preset("storage-v5").permit_weaker(Guarantee)
    ext4 = space.default()
    xfs = next(c for c in space.neighbours(ext4) if c["fs"] == "xfs")
    assert xfs["xfs_inode_size_bytes"] == 512
    assert xfs["block_size_bytes"] == ext4["block_size_bytes"]
    assert not [name for name in xfs if name.startswith(("ext", "btrfs"))]
    assert ext4 in space.neighbours(xfs)
    assert {c["fs"] for c in space.neighbours(ext4)} == {"ext2", "ext3", "ext4", "xfs", "btrfs"}


def test_a_default_that_a_constraint_forbids_gives_way_to_the_nearest():
    space = Space(
        (
            boolean("on", default=False, cost=COST),
            ordinal("y", (1, 2, 3), default=1, cost=COST, when="on"),
            ordinal("x", (1, 2, 3), default=1, cost=COST),
        ),
        ("x < y",),
    )
    (on,) = [c for c in space.neighbours(Configuration({"on": False, "x": 1})) if c["on"]]
    assert on == Configuration({"on": True, "y": 2, "x": 1})
    # x = 3 would have to change as well: there is no neighbour with "on".
    assert not [c for c in space.neighbours(Configuration({"on": False, "x": 3})) if c["on"]]


def test_pinned_and_weaker_values_are_no_neighbours():
    space = preset("storage-v5").permit_weaker([]).pin({"fs": "btrfs"})
    for neighbour in space.neighbours(space.default()):
        assert neighbour["fs"] == "btrfs"
        assert not space.weakened(neighbour)


def test_wide_ranges_have_near_neighbours():
    space = Space(
        (
            integer("x", (0, 10_000), default=500, cost=COST, special={-1: "automatic"}),
            floating("y", (1, 1000), log=True, default=10, cost=COST),
        )
    )
    neighbours = space.neighbours(space.default())
    assert {c["x"] for c in neighbours} == {500, -1, 499, 501, 400, 600, 0, 1500}
    factors = sorted(c["y"] / 10 for c in neighbours if c["y"] != 10)
    assert factors == pytest.approx([1000**-0.1, 1000**-0.01, 1000**0.01, 1000**0.1])
    away = space.neighbours(Configuration({"x": -1, "y": 10.0}))
    assert {c["x"] for c in away} == {-1, 0, 100, 1000}


def test_neighbours_meet_constraints_on_ranges():
    space = Space((floating("x", (0, 1), default=0.2, cost=COST),), ("x <= 0.205",))
    assert all(c["x"] <= 0.205 for c in space.neighbours(space.default()))
    assert space.neighbours(space.default())


def test_only_valid_configurations_have_neighbours():
    with pytest.raises(SpaceError, match="parameter fs: missing"):
        preset("storage-v3").permit_weaker(Guarantee).neighbours(Configuration({}))


def test_neighbours_of_storage_v5_are_fast():
    space = preset("storage-v5").permit_weaker(Guarantee)
    configurations = space.sample(np.random.default_rng(1), 30)
    start = time.perf_counter()
    number = sum(len(space.neighbours(configuration)) for configuration in configurations)
    assert (time.perf_counter() - start) / number < 5e-3  # a hundred times what it takes on a quiet machine
