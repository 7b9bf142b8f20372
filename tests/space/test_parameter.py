import pytest

from ascar.errors import SpaceError
from ascar.space import ChangeCost, Guarantee, boolean, categorical, floating, integer, ordinal

COST = ChangeCost.DYN_KERNEL


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ordinal("a b", (1,), default=1, cost=COST), "a name is a letter"),
        (lambda: ordinal("in", (1,), default=1, cost=COST), "none of and, false, if, in"),
        (lambda: ordinal("", (1,), default=1, cost=COST), "a name is a letter"),
        (lambda: ordinal("x" * 70, (1,), default=1, cost=COST), "up to 63"),
        (
            lambda: ordinal("x", (1, 2), default=3, cost=COST),
            "x: default 3 is not allowed; allowed: 1, 2",
        ),
        (lambda: ordinal("x", (), default=3, cost=COST), "parameter x: values: the list is empty"),
        (lambda: integer("x", (5, 1), default=3, cost=COST), "parameter x: low <= high"),
        (lambda: boolean("x", default=1, cost=COST), "default 1 is not allowed; allowed: False, True"),
        (lambda: boolean("x", default=True, cost=COST, when="a <"), "parameter x: when: formula 'a <'"),
        (
            lambda: boolean("x", default=True, cost=COST, weaker={"no": "durability"}),
            "'no' is not allowed",
        ),
        (
            lambda: boolean("x", default=True, cost=COST, weaker={False: "speed"}),
            "'speed' is not a guarantee",
        ),
        (lambda: boolean("x", default=True, cost=COST, weaker={False: ()}), "name what it weakens"),
        (
            lambda: boolean("x", default=True, cost=COST, weaker={True: "integrity"}),
            "weakens integrity; no",
        ),
        (
            lambda: ordinal("x", (1, 2), default=2, cost=COST, weaker={">1": "integrity"}),
            "weakens integrity",
        ),
        (
            lambda: integer("x", (1, 9), default=2, cost=COST, weaker={7: "integrity"}),
            "of the range, e.g. '>7'",
        ),
        (
            lambda: integer("x", (1, 9), default=2, cost=COST, special={"auto": "?"}),
            "must be a number outside",
        ),
    ],
)
def test_impossible_parameters_are_refused(make, message):
    with pytest.raises(SpaceError, match=message) as caught:
        make()
    assert "\n" not in caught.value.message


def test_kinds():
    assert boolean("x", default=True, cost=COST).kind == "boolean"
    assert categorical("x", ("a", "b"), default="a", cost=COST).kind == "categorical"
    assert ordinal("x", (1, 2), default=1, cost=COST).kind == "ordinal"
    assert integer("x", (1, 2), default=1, cost=COST).kind == "integer"
    assert floating("x", (1, 2), default=1, cost=COST).kind == "float"


def test_labels():
    x = ordinal("x", (1, 5, 15, 60), default=5, cost=COST, weaker={">5": "durability", 60: ["integrity"]})
    assert x.weakens(5) == frozenset()
    assert x.weakens(15) == {Guarantee.DURABILITY}
    assert x.weakens(60) == {Guarantee.DURABILITY, Guarantee.INTEGRITY}
    mode = categorical("m", ("a", ">5"), default="a", cost=COST, weaker={">5": "consistency"})
    assert mode.weakens(">5") == {Guarantee.CONSISTENCY}


def test_values_from_text():
    assert boolean("x", default=True, cost=COST).parse("false") is False
    assert ordinal("x", (1, 2.5, "n/a"), default=1, cost=COST).parse("2.5") == 2.5
    assert integer("x", (1, 9), default=1, cost=COST).parse(" 7 ") == 7
    assert floating("x", (1, 9), default=1, cost=COST).parse("7.5") == 7.5
    for wrong in ("ten", "", "10", "nan", "inf"):
        with pytest.raises(SpaceError, match="parameter x"):
            integer("x", (1, 9), default=1, cost=COST).parse(wrong)


def test_a_machines_value_becomes_the_default():
    x = ordinal("x", (1, 5, 60), default=5, cost=COST, weaker={">5": "durability"})
    there = x.with_default(30)
    assert there.default == 30
    assert there.domain.values == (1, 5, 30, 60)
    assert there.weakens(30) == frozenset()
    assert there.weakens(60) == {Guarantee.DURABILITY}
    assert x.with_default(60).weakens(60) == frozenset()
    assert x.with_default(1).weakens(5) == frozenset()
    off = boolean("b", default=True, cost=COST, weaker={False: "durability"}).with_default(False)
    assert off.default is False
    assert off.weakens(False) == frozenset()


@pytest.mark.parametrize("wrong", ["cfq", 5, None, True])
def test_a_machines_value_must_be_known(wrong):
    with pytest.raises(SpaceError, match="parameter scheduler"):
        categorical("scheduler", ("none", "bfq"), default="none", cost=COST).with_default(wrong)


def test_special_values_of_a_range_lie_outside_it():
    x = integer("x", (1, 100), default=0, cost=COST, special={0: "automatic", 100: "all of it"})
    assert x.domain.special == (0,)
    assert x.special == ((0, "automatic"), (100, "all of it"))
