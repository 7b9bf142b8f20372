"""Distances between encoded configurations mean what the module says."""

from __future__ import annotations

import numpy as np
import pytest

from ascar.optimizers.guided.columns import SpaceColumns
from ascar.testing import branching, continuous, grid


def squared(space, a, b):
    columns = SpaceColumns.of(space)
    rows = columns.rows([space.validate(a), space.validate(b)])
    difference = (rows[0] - rows[1]) ** 2
    return {name: difference[columns.groups == index].sum() for index, name in enumerate(columns.names)}


BTRFS = {"fs": "btrfs", "compress": False, "ahead_kb": 128}
EXT = {"fs": "ext", "block": 4096, "inode": 256, "ahead_kb": 128}


def test_categories_are_one_apart():
    assert squared(branching(), EXT, BTRFS)["fs"] == pytest.approx(1.0)
    default = dict(grid().default())
    assert squared(grid(), default, default | {"sync": False})["sync"] == pytest.approx(1.0)


def test_numbers_are_apart_by_their_scale():
    one, two = {"ratio": 0.25, "rate": 1e-3, "mode": "fast"}, {"ratio": 0.75, "rate": 1.0, "mode": "fast"}
    apart = squared(continuous(), one, two)
    assert apart["ratio"] == pytest.approx(0.25)
    assert apart["rate"] == pytest.approx(0.25)
    assert apart["mode"] == 0.0


def test_ordered_values_are_apart_by_rank():
    default = dict(grid().default())
    assert squared(grid(), default | {"block": 1}, default | {"block": 8})["block"] == pytest.approx(9 / 16)


def test_a_parameter_that_does_not_apply_is_a_point_of_its_own():
    for inode in (128, 512, 4096):
        assert 0.7499 <= squared(branching(), EXT | {"inode": inode}, BTRFS)["inode"] <= 1.0
    assert squared(branching(), BTRFS, BTRFS | {"ahead_kb": 4})["inode"] == 0.0


def test_special_values_are_apart_from_all_numbers():
    for number in (4, 128, 4096):
        assert (
            0.7499
            <= squared(branching(), BTRFS | {"ahead_kb": 0}, BTRFS | {"ahead_kb": number})["ahead_kb"]
            <= 1.0
        )


def test_pinned_parameters_have_no_columns():
    space = grid().pin({"cache": 8, "sync": True})
    assert SpaceColumns.of(space).names == ("block", "scheduler", "depth")
    assert SpaceColumns.of(grid().pin(dict(grid().default()))).width == 0


def test_different_configurations_have_different_rows():
    space = branching()
    configurations = space.sample(np.random.default_rng(1), 300)
    rows = SpaceColumns.of(space).rows(configurations)
    assert len({row.tobytes() for row in rows}) == len(set(configurations))
