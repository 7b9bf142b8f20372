"""A change budget is kept, and used."""

from __future__ import annotations

import pytest
from ask_and_tell import run

from ascar.errors import Exhausted, SpaceError
from ascar.optimizers import Evaluation
from ascar.optimizers.gp import GaussianSearch
from ascar.optimizers.random import RandomSearch
from ascar.optimizers.rationing import Rationed
from ascar.results.trial import TrialState
from ascar.space import ChangeCost, Space, categorical, change_budget, change_costs_s, ordinal
from ascar.space.study_table import space_from_table

SLOW, QUICK = ChangeCost.REFORMAT_RESTORE, ChangeCost.DYN_KERNEL
GAIN = {"ext4": 0.0, "xfs": -3.0, "btrfs": 2.0, "f2fs": 1.0}


def space():
    return Space(
        (
            categorical("fs", list(GAIN), default="ext4", cost=SLOW),
            ordinal("block", [1, 2, 4], default=4, cost=SLOW, when='fs != "btrfs"'),
            ordinal("ahead", list(range(1, 17)), default=4, cost=QUICK),
            ordinal("ratio", [5, 10, 20, 40], default=10, cost=QUICK),
            categorical("scheduler", ["none", "bfq", "kyber"], default="none", cost=QUICK),
        ),
        name="disk",
    )


def loss(one):
    return GAIN[one["fs"]] + 0.1 * abs(one["ahead"] - 8) + 0.01 * one["ratio"] + (one["scheduler"] == "bfq")


def opened(limit=4, kind=GaussianSearch):
    return Rationed(lambda space: kind(space, seed=3), space(), {SLOW: limit})


def changes(history):
    held, count = space().default(), 0
    for one in history:
        count += any(one.configuration.get(name) != held.get(name) for name in ("fs", "block"))
        held = one.configuration
    return count


@pytest.mark.parametrize("limit", [2, 3, 5, 12])
@pytest.mark.parametrize("kind", [RandomSearch, GaussianSearch])
def test_no_more_changes_are_made_than_allowed_and_all_are_valid(limit, kind):
    history = run(opened(limit, kind), loss, 90)
    assert 1 <= changes(history) <= limit
    assert all(space().validate(one.configuration) == one.configuration for one in history)
    assert len({one.configuration for one in history}) == len(history)


def test_several_values_are_tried_and_it_ends_at_the_best():
    history = run(opened(6), loss, 120)
    tried = {one.configuration["fs"] for one in history}
    assert len(tried) >= 3
    best = min(history, key=lambda one: one.loss).configuration
    assert history[-1].configuration["fs"] == best["fs"]
    assert opened(6).recommend() is None


def test_it_recommends_the_best_of_all_it_tried():
    optimizer = opened(6, RandomSearch)
    history = run(optimizer, loss, 80)
    assert optimizer.recommend().configuration == min(history, key=lambda one: one.loss).configuration


def test_told_its_history_it_keeps_to_the_budget_that_is_left():
    history = run(opened(4), loss, 45)
    resumed = opened(4)
    for one in history:
        resumed.tell(one)
    assert resumed.recommend() is not None
    assert changes(history + run(resumed, loss, 45)) <= 4


def test_cheap_parameters_change_freely():
    history = run(opened(2), loss, 30)
    assert len({one.configuration["ahead"] for one in history}) >= 4


def test_what_is_left_within_the_budget_is_exhausted():
    optimizer = opened(2, RandomSearch)
    with pytest.raises(Exhausted, match="change budget"):
        run(optimizer, loss, 10_000)


def test_failures_do_not_hold_it_up():
    optimizer = opened(4, RandomSearch)
    for _ in range(40):
        one = optimizer.ask()
        optimizer.tell(Evaluation(one, TrialState.FAILED, None))
    history = [Evaluation(one, TrialState.FAILED, None) for one in optimizer._order]
    assert changes(history) <= 4


@pytest.mark.parametrize(
    ("budget", "message"),
    [
        ({"reformat": 2}, "is not a change cost"),
        ({"reformat-restore": 1}, "from 2 to 1000000"),
        ({"reformat-restore": True}, "from 2 to 1000000"),
        ({"reformat-restore": "2"}, "from 2 to 1000000"),
    ],
)
def test_a_wrong_budget_is_refused(budget, message):
    with pytest.raises(SpaceError, match=message):
        space_from_table({"change_budget": budget}, space())


def test_a_budget_is_read():
    assert change_budget({"change_budget": {"reformat-restore": 2}}) == {SLOW: 2}
    assert change_budget({}) == {}
    assert space_from_table({"change_budget": {"reformat-restore": 2}}, space()).names == space().names


@pytest.mark.parametrize(
    ("costs", "message"),
    [
        ({"reformat": 2}, "space.change_cost_s: 'reformat' is not a change cost"),
        ({"remount": -1}, "space.change_cost_s.remount = -1: must be seconds from 0 to 1e.09"),
        ({"remount": float("nan")}, "must be seconds"),
        ({"remount": 10**400}, "must be seconds"),
        ({"remount": True}, "must be seconds"),
        ({"remount": "1 h"}, "must be seconds"),
        ([3600], "must be a table"),
    ],
)
def test_wrong_costs_of_changes_are_refused(costs, message):
    with pytest.raises(SpaceError, match=message):
        space_from_table({"change_cost_s": costs}, space())


def test_costs_of_changes_are_read():
    assert change_costs_s({"change_cost_s": {"reformat-restore": 3600, "remount": 0.5}}) == {
        SLOW: 3600.0,
        ChangeCost.REMOUNT: 0.5,
    }
    assert change_costs_s({}) == {}
