"""Optimizers of spaces with groups and sums: only valid proposals, everything reached, exchanges."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascar.errors import Exhausted, SpaceError
from ascar.optimizers import Evaluation, open_optimizer
from ascar.optimizers.genes import Genes, listed
from ascar.optimizers.grouped import GroupedSearch
from ascar.optimizers.recommendation import recommend
from ascar.optimizers.remaining import RemainingGains
from ascar.results.trial import TrialState
from ascar.space import ChangeCost, Choices, Range, Space, boolean, integer, ordinal

COST = ChangeCost.DYN_APP
KINDS = ("random", "annealing", "genetic", "gp", "trees", "dqn", "auto")


def grouped_space():
    switches = [boolean(f"s{at}", default=at == 0, cost=COST) for at in range(4)]
    sizes = [ordinal(name, (4, 8, 16), default=4, cost=COST) for name in ("block", "stripe")]
    one_on = "if(s0, 1, 0) + if(s1, 1, 0) + if(s2, 1, 0) + if(s3, 1, 0) == 1"
    return Space((*switches, *sizes), (one_on, "block == stripe"))


def memory():
    caches = [integer(name, (1, 8), default=1, cost=COST) for name in ("data", "index", "log")]
    return Space(tuple(caches), ("data + index + log <= 12",))


def told(optimizer, count, loss):
    asked = []
    for _ in range(count):
        try:
            asked.append(optimizer.ask())
        except Exhausted:
            break
        optimizer.tell(Evaluation(asked[-1], TrialState.COMPLETE, loss(asked[-1])))
    return asked


@pytest.mark.parametrize("kind", KINDS)
def test_every_optimizer_sees_groups_and_proposes_all_that_is_valid(kind):
    space = grouped_space()
    options = {"remeasure": False} if kind == "auto" else {}
    optimizer = open_optimizer({"kind": kind, **options}, space, 1)
    assert isinstance(optimizer, GroupedSearch)
    asked = told(optimizer, 30, lambda one: one["block"] + 10.0 * one["s2"] + 1)
    assert set(asked) == set(space.enumerate())
    best = recommend(optimizer, [Evaluation(one, TrialState.COMPLETE, 1.0) for one in asked[:1]])
    assert best is not None
    assert space.is_valid(best.configuration)


@pytest.mark.parametrize("kind", ["annealing", "auto"])
def test_starts_are_proposed_and_reasons_and_generations_are_told(kind):
    space = grouped_space()
    start = space.validate({**dict.fromkeys(("s0", "s1", "s2"), False), "s3": True, "block": 8, "stripe": 8})
    optimizer = open_optimizer({"kind": kind}, space, 1, (start,))
    assert optimizer.ask() == start
    assert getattr(optimizer, "reason", "") == ("design" if kind == "auto" else "")
    with pytest.raises(SpaceError, match="is broken by"):
        open_optimizer({"kind": kind}, space, 1, (start.replaced(stripe=4),))


def test_a_genetic_search_tells_its_generations():
    optimizer = open_optimizer({"kind": "genetic"}, grouped_space(), 1)
    told(optimizer, 10, lambda one: float(one["block"]))
    assert optimizer.generations[0].size == 8


def test_a_space_without_groups_gets_the_optimizer_itself():
    assert not isinstance(open_optimizer({"kind": "auto"}, memory(), 1), GroupedSearch)


def test_remaining_gains_know_groups():
    space = grouped_space()
    remaining = RemainingGains(space, 1)
    for one in space.sample(np.random.default_rng(1), 40):
        remaining.tell(Evaluation(one, TrialState.COMPLETE, float(one["block"])))
    assert remaining.draws() is not None


@given(st.integers(0, 2**32), st.sampled_from(["data", "index", "log"]))
@settings(max_examples=50)
def test_a_change_of_a_summand_is_valid_and_often_an_exchange(seed, name):
    rng = np.random.default_rng(seed)
    genes = Genes.of(memory())
    one = genes.space.sample(rng, 1)[0]
    child = genes.mutate(one, name, rng)
    assert genes.space.is_valid(child)
    exchanged = genes.exchanges.exchanged(one, name, child[name], rng)
    if exchanged is not None:
        moves = sorted((exchanged[key] > one[key]) - (exchanged[key] < one[key]) for key in one)
        assert moves == [-1, 0, 1], "one up, one down, the third as it was"
        assert genes.space.is_valid(exchanged)


def test_numbers_that_are_compared_move_the_same_way():
    sizes = [integer(name, (1, 64), log=True, default=4, cost=COST) for name in ("inode", "block")]
    genes = Genes.of(Space(tuple(sizes), ("inode <= block",)))
    one = genes.space.validate({"inode": 8, "block": 8})
    child = genes.exchanges.exchanged(one, "inode", 16, np.random.default_rng(1))
    assert child is not None
    assert dict(child) == {"inode": 16, "block": 16}


def test_a_full_sum_is_left_by_an_exchange_and_never_in_an_invalid_way():
    genes, rng = Genes.of(memory()), np.random.default_rng(1)
    full = genes.space.validate({"data": 2, "index": 4, "log": 6})
    domain = genes.domains["data"]
    assert not isinstance(domain, Choices)
    children = {genes.mutate(full, "data", rng, lambda *_: 3) for _ in range(20)}
    assert all(sum(child.values()) <= 12 and child["data"] == 3 for child in children)
    assert {(3, 3, 6), (3, 4, 5)} <= {tuple(child.values()) for child in children}


def test_auto_finds_the_corner_of_a_sum():
    space = memory()
    best = max(one["data"] * one["log"] ** 2 for one in space.enumerate())
    optimizer = open_optimizer({"kind": "auto"}, space, 2)
    asked = told(optimizer, 40, lambda one: -float(one["data"] * one["log"] ** 2))
    assert max(one["data"] * one["log"] ** 2 for one in asked) == best


@pytest.mark.parametrize("kind", ["auto", "gp", "trees"])
def test_a_search_takes_the_same_way_through_a_range_and_a_list_of_the_same_values(kind):
    names, limit = ("data", "index", "log"), ("data + index + log <= 12",)
    lists = Space(tuple(ordinal(name, tuple(range(1, 9)), default=1, cost=COST) for name in names), limit)
    others = tuple(ordinal(name, tuple(range(4)), default=0, cost=COST) for name in ("depth", "batch"))
    ways = [
        told(
            open_optimizer({"kind": kind}, Space((*space.parameters, *others), limit), 4),
            16,
            lambda one: float(one["depth"] - one["data"] * one["log"] ** 2) + 0.1 * one["batch"],
        )
        for space in (memory(), lists)
    ]
    assert ways[0] == ways[1]


@pytest.mark.parametrize(
    ("domain", "values"),
    [
        (Range(1, 4, integer=True), (1, 2, 3, 4)),
        (Range(0, 63, integer=True), tuple(range(64))),
        (Range(0, 1, step=0.25), (0.0, 0.25, 0.5, 0.75, 1.0)),
    ],
)
def test_a_short_linear_range_is_searched_as_a_list(domain, values):
    assert listed(domain) == Choices(values, ordered=True)


@pytest.mark.parametrize(
    "domain",
    [
        Range(0, 64, integer=True),  # one value too many
        Range(1, 8, integer=True, log=True),
        Range(1, 8, integer=True, special=(0,)),
        Range(0.0, 1.0),
        Choices((1, 2, 3)),
    ],
)
def test_other_values_are_searched_as_they_are(domain):
    assert listed(domain) is domain
