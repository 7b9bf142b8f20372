"""Parameters that only change together: found in constraints, encoded as one parameter, and back."""

from __future__ import annotations

import time
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from space_strategies import brute_force, satisfiable, spaces

from ascar.errors import SpaceError
from ascar.space import ChangeCost, Space, boolean, categorical, integer, ordinal
from ascar.space.relation import Relation

COST, DEAR = ChangeCost.DYN_APP, ChangeCost.APP_RESTART


def switches(*names):
    return tuple(boolean(name, default=at == 0, cost=COST) for at, name in enumerate(names))


def one_of(names):
    return " + ".join(f"if({name}, 1, 0)" for name in names) + " == 1"


def found(space):
    return {group.names: len(group.rows) for group in space.grouping.groups.values()}


@pytest.mark.parametrize(
    "constraints",
    [
        (one_of("abc"),),
        ("not (a and b)", "not (a and c)", "not (b and c)", "a or b or c"),
        ("(a and not b and not c) or (not a and b and not c) or (not a and not b and c)",),
        ("if(a, 1, 0) == 1 - if(b, 1, 0) - if(c, 1, 0)",),
        ("not a or not (b or c)", "a or b or c", "b != c or a"),
        (Relation(("c", "a", "b"), ((True, False, False), (False, True, False), (False, False, True))),),
    ],
)
def test_one_of_several_switches_is_one_parameter_however_it_is_written(constraints):
    space = Space((*switches("a", "b", "c"), boolean("other", default=False, cost=COST)), constraints)
    assert found(space) == {("a", "b", "c"): 3}
    assert space.grouping.space.constraints == ()
    assert space.grouping.space.count() == space.count() == 6


def test_at_most_one_implications_and_equal_values_are_groups():
    assert found(Space(switches("a", "b", "c"), (one_of("abc").replace("==", "<="),))) == {("a", "b", "c"): 4}
    assert found(Space(switches("b", "a"), ("a or not b", "b or not a"))) == {("b", "a"): 2}
    chain = Space((*switches("a"), *switches("b"), *switches("c")), ("a or not b", "b or not c"))
    assert found(chain) == {("a", "b", "c"): 4}
    assert chain.grouping.space["group_a"].kind == "ordinal"
    sizes = [ordinal(name, (1, 2, 4, 8), default=1, cost=COST) for name in "ab"]
    equal = Space(tuple(sizes), ("a == b",))
    assert found(equal) == {("a", "b"): 4}
    assert equal.grouping.space["group_a"].kind == "ordinal"


def test_equal_ranges_keep_their_scale_and_are_not_listed():
    sizes = [integer(name, (16, 2**30), log=True, default=64, cost=COST) for name in "abc"]
    space = Space(tuple(sizes), ("a == b", "c - b == 0", "a <= 1024"))
    grouped = space.grouping.space
    assert grouped.names == ("a",)
    assert grouped.domain("a") == space.domain("a")
    assert [str(one) for one in grouped.constraints] == ["a <= 1024"]
    value = space.grouping.decode({"a": 512})
    assert dict(value) == {"a": 512, "b": 512, "c": 512}
    assert space.is_valid(value)


def test_what_forbids_less_is_no_group():
    caches = [integer(name, (1, 8), default=1, cost=COST) for name in "abc"]
    memory = Space(tuple(caches), ("a + b + c <= 12",))
    assert found(memory) == {}
    assert memory.grouping.space is memory
    kinds = [categorical(name, ("x", "y", "z"), default="x", cost=COST) for name in "ab"]
    assert found(Space(tuple(kinds)).forbid({"a": "x", "b": "y"})) == {}


def test_other_constraints_and_conditions_are_told_of_the_group():
    size = ordinal("size", (64, 128, 256), default=64, cost=COST)
    depth = integer("depth", (1, 4), default=1, cost=COST, when="b and min(size, 100) < 100")
    limit = "if(c, 2, 1) * size < 512"
    space = Space((*switches("a", "b", "c"), size, depth), (one_of("abc"), limit))
    grouping = space.grouping
    assert found(space) == {("a", "b", "c"): 3}
    assert {grouping.decode(one) for one in grouping.space.enumerate()} == set(space.enumerate())


def test_the_group_costs_what_its_most_expensive_parameter_does():
    cheap, dear = boolean("a", default=True, cost=COST), boolean("b", default=False, cost=DEAR)
    space = Space((cheap, dear), ("a != b",))
    assert space.grouping.space["group_a"].cost is DEAR
    assert space.grouping.space["group_a"].default == space.grouping.encode(space.default())["group_a"]


def test_pins_and_names_that_are_taken_are_heeded():
    space = Space(
        (*switches("a", "b", "c"), boolean("group_a", default=False, cost=COST)), (one_of("abc"),)
    ).pin({"c": False})
    assert found(space) == {("a", "b", "c"): 2}
    assert set(space.grouping.space.names) == {"_group_a", "group_a"}
    assert {space.grouping.decode(one) for one in space.grouping.space.enumerate()} == set(space.enumerate())


def test_values_that_do_not_stand_together_are_named():
    space = Space(switches("a", "b"), ("a != b",))
    with pytest.raises(SpaceError, match=r"^a = true, b = true: these values do not stand together; change"):
        space.grouping.encode({"a": True, "b": True})


@settings(max_examples=40)
@given(spaces().filter(satisfiable))
def test_every_valid_configuration_and_no_other_is_reached_through_groups(space):
    grouping = space.grouping
    valid = [dict(one) for one in space.enumerate()]
    assert sorted(valid, key=str) == sorted(brute_force(space), key=str)
    decoded = [grouping.decode(one) for one in grouping.space.enumerate()]
    assert sorted(map(dict, decoded), key=str) == sorted(valid, key=str)
    for one in valid:
        encoded = grouping.encode(one)
        assert grouping.space.is_valid(encoded)
        assert dict(grouping.decode(encoded)) == one
    for neighbour in space.neighbours(space.validate(valid[0])):
        assert space.is_valid(neighbour)


@settings(max_examples=50)
@given(
    st.lists(st.integers(-3, 3), min_size=2, max_size=4),
    st.sampled_from(["==", "!=", "<", "<=", ">", ">="]),
    st.integers(-4, 8),
)
def test_sums_in_the_diagram_allow_what_the_formula_does(factors, sign, limit):
    names = [f"p{at}" for at in range(len(factors))]
    formula = " + ".join(f"{factor} * {name}" for factor, name in zip(factors, names, strict=True))
    parameters = [integer(name, (0, 3), default=0, cost=COST) for name in names]
    space = Space(tuple(parameters), (f"{formula} {sign} {limit}",))
    fitting = [
        values
        for values in product(range(4), repeat=len(names))
        if space.constraints[0].holds(dict(zip(names, values, strict=True)))
    ]
    if fitting:
        assert space.count() == len(fitting)
        assert {tuple(one.values()) for one in space.enumerate()} == set(fitting)
    else:
        with pytest.raises(SpaceError, match="no configuration is valid: constraint .* cannot be satisfied"):
            space.count()


def test_sixty_switches_of_which_one_is_on_are_counted_and_drawn():
    names, rng = [f"s{at}" for at in range(60)], np.random.default_rng(1)
    space = Space(switches(*names), (one_of(names),))
    assert space.count() == 60
    assert {sum(one.values()) for one in space.sample(rng, 50)} == {1}
    assert found(space) == {tuple(names): 60}


def test_constraints_that_clash_are_named_in_one_line():
    names = [f"s{at}" for at in range(40)]
    space = Space(switches(*names), (one_of(names), "not s0 and not s1", "s0 or s1"))
    with pytest.raises(SpaceError, match="'not s0 and not s1', 's0 or s1' cannot be satisfied together") as e:
        space.check()
    assert "\n" not in e.value.message
    rows = Relation(("a", "b"), ((True, True), (False, False)))
    with pytest.raises(SpaceError, match=r"'\(a, b\) in 2 joint values', 'a != b'"):
        Space(switches("a", "b"), (rows, "a != b")).count()


@pytest.mark.parametrize("count", [100, pytest.param(1000, marks=pytest.mark.slow)])
def test_many_switches_take_seconds_and_little_memory(count):
    names, rng = [f"s{at}" for at in range(count)], np.random.default_rng(1)
    rows = tuple(tuple(at == on for at in range(count)) for on in range(count))
    began_s = time.process_time()
    space = Space(switches(*names), (Relation(tuple(names), rows),))
    assert space.count() == count
    assert found(space) == {tuple(names): count}
    assert [sum(one.values()) for one in space.sample(rng, 3)] == [1, 1, 1]
    one = space.grouping.decode({"group_s0": count - 1})
    assert space.grouping.encode(one)["group_s0"] == count - 1
    assert time.process_time() - began_s < 60


@pytest.mark.parametrize(
    ("names", "rows", "message"),
    [
        (("a",), ((True,),), "must be of two or more different parameters"),
        (("a", "a"), ((True, True),), "must be of two or more different parameters"),
        (("a", "b"), (), "0 rows; must be from 1 to 4096"),
        (("a", "b"), ((True, True),) * 4097, "4097 rows; must be from 1 to 4096"),
        (("a", "b"), ((True,),), "a row of 1 values; each must have 2"),
        (("a", "b"), ((True, None),), "must be a string, a number, true or false"),
        (("a", "z"), ((True, True),), "unknown parameter 'z'"),
        (("a", "b"), ((True, "x"),), "parameter b: 'x' is not allowed"),
        (("a", "c"), ((True, True),), "c has a condition; name parameters that always apply"),
    ],
)
def test_wrong_relations_are_refused(names, rows, message):
    conditional = boolean("c", default=False, cost=COST, when="a")
    with pytest.raises(SpaceError) as caught:
        Space((*switches("a", "b"), conditional), (Relation(names, rows),))
    assert message in caught.value.message
    assert "\n" not in caught.value.message
