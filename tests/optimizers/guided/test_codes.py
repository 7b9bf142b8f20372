"""Codes: there and back, and variations that are always valid."""

from __future__ import annotations

import numpy as np
import pytest

from ascar.optimizers.guided.codes import Codes
from ascar.space import ChangeCost, Space, integer
from ascar.testing import branching, continuous, grid, tiny


@pytest.mark.parametrize("make", [branching, continuous, grid, tiny])
def test_free_variations_are_valid_configurations_and_differ(make):
    space = make()
    codes, rng = Codes.of(space), np.random.default_rng(1)
    likes = space.sample(rng, 200)
    rows = codes.rows(likes)
    varied = codes.vary(rows, np.ones(len(codes.genes)), rng, 2.0)
    free = [gene.name for gene in codes.genes if gene.free]
    for like, row in zip(likes, varied, strict=True):
        configuration = codes.configuration(row, like)
        assert space.validate(configuration) == configuration
        assert set(space.change(like, configuration).parameters) <= set(free)
        same = codes.configuration(codes.rows([like])[0], like)
        assert same == like
    movable = np.array(
        [any(name in like and space.domain(name).size != 1 for name in free) for like in likes]
    )
    changed = np.array(
        [(one != two).any() for one, two in zip(np.nan_to_num(rows), np.nan_to_num(varied), strict=True)]
    )
    assert (changed == movable).all()


def test_genes_change_by_their_weights():
    space = grid()
    codes, rng = Codes.of(space), np.random.default_rng(2)
    rows = np.repeat(codes.rows([space.default()]), 4000, axis=0)
    weights = np.array([1.0, 1.0, 1.0, 1.0, 16.0])
    changed = codes.vary(rows, weights, rng, 1.0) != rows
    assert changed.sum(1).tolist() == [1] * 4000
    assert changed.mean(0) == pytest.approx(weights / weights.sum(), abs=0.03)


def test_the_number_of_changed_genes_has_the_mean_asked_for():
    space = grid()
    codes, rng = Codes.of(space), np.random.default_rng(3)
    rows = np.repeat(codes.rows([space.default()]), 4000, axis=0)
    changed = (codes.vary(rows, np.ones(5), rng, 2.0) != rows).sum(1)
    assert changed.min() == 1
    assert changed.mean() == pytest.approx(2.0, abs=0.1)


def test_every_value_of_a_small_domain_is_reached():
    space = grid()
    codes, rng = Codes.of(space), np.random.default_rng(4)
    rows = np.repeat(codes.rows([space.default()]), 3000, axis=0)
    varied = codes.vary(rows, np.ones(5), rng, 2.0)
    assert [len(np.unique(varied[:, at])) for at in range(5)] == [5, 5, 3, 2, 4]


def test_special_values_are_coded_and_reached():
    space = Space(
        (
            integer(
                "ahead",
                (1, 4096),
                log=True,
                default=8,
                cost=ChangeCost.DYN_APP,
                special={"0": "off", "-1": "auto"},
            ),
        )
    )
    codes, rng = Codes.of(space), np.random.default_rng(5)
    assert sorted(codes.rows([space.validate({"ahead": value}) for value in (0, -1)])[:, 0]) == [-2.0, -1.0]
    rows = np.repeat(codes.rows([space.default()]), 600, axis=0)
    varied = codes.vary(rows, np.ones(1), rng, 1.0)
    reached = {codes.configuration(row, space.default())["ahead"] for row in varied}
    assert {0, -1} < reached
    assert len(reached) > 100
    back = codes.vary(np.full((200, 1), -1.0), np.ones(1), rng, 1.0)
    assert (back >= -2).all()
    assert (back >= 0).mean() > 0.5
