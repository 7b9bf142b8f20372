"""Joint values of a space as rules of a session: what they forbid is what is not in a row."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from ascar.capes.session.joint_values import forbidden_by_relation
from ascar.capes.session.parameters import SessionParameter, forbidden_by
from ascar.errors import StudyError
from ascar.expression import parse
from ascar.space import ChangeCost, Space, boolean, categorical, integer
from ascar.space.relation import Relation

VALUES = {"depth": (1, 4, 64), "mode": ('it\'s "fast"', "slow"), "direct": (False, True)}


def forbids(formulas, values):
    found = [parse(formula).evaluate(values) for formula in formulas]
    assert all(isinstance(one, bool) for one in found)
    return any(found)


@pytest.mark.parametrize("seed", range(20))
def test_every_combination_but_the_rows_is_forbidden(seed):
    every = list(product(*VALUES.values()))
    rng = np.random.default_rng(seed)
    rows = tuple(every[at] for at in rng.choice(len(every), size=int(rng.integers(1, 12)), replace=False))
    relation = Relation(tuple(VALUES), rows)
    formulas = forbidden_by_relation(relation, {name: f"k_{name}" for name in VALUES}, {})
    for combination in every:
        values = dict(zip(VALUES, combination, strict=True))
        assert forbids(formulas, {f"k_{name}": value for name, value in values.items()}) is (
            not relation.holds(values)
        )


def test_what_a_session_does_not_set_has_its_value():
    relation = Relation(("depth", "direct"), ((1, True), (4, True), (64, False)))
    formulas = forbidden_by_relation(relation, {"depth": "depth"}, {"direct": True})
    assert [forbids(formulas, {"depth": depth}) for depth in (1, 4, 64)] == [False, False, True]


def test_true_is_not_one():
    relation = Relation(("a", "b"), ((1, 5), (True, 6)))
    formulas = forbidden_by_relation(relation, {"b": "b"}, {"a": True})
    assert [forbids(formulas, {"b": value}) for value in (5, 6)] == [True, False]


def test_more_values_than_a_rule_holds_are_refused():
    relation = Relation(("a", "b"), tuple((1, value) for value in range(1_000_000, 1_001_000)))
    with pytest.raises(StudyError, match=r"\(a, b\) in 1000 joint values: .* at most 4096 characters"):
        forbidden_by_relation(relation, {"a": "a", "b": "b"}, {})


def test_the_rules_of_a_space_have_those_of_its_relations():
    cost = {"cost": ChangeCost.DYN_APP}
    depth = integer("depth", (1, 8), default=1, **cost)
    mode = categorical("mode", ("fast", "slow"), default="slow", **cost)
    direct = boolean("direct", default=False, **cost)
    space = Space(
        (depth, mode, direct),
        ("depth <= 6", Relation(("mode", "direct"), (("slow", False), ("fast", True)))),
    )
    parameters = [SessionParameter(f"app.{one.name}", one, of_kernel=False) for one in (depth, mode, direct)]
    rules = forbidden_by(space, parameters, space.default())
    assert rules[0]["forbid"] == "not (app_depth <= 6)"
    forbidden = [rule["forbid"] for rule in rules[1:]]
    for one, other in product(("slow", "fast"), (False, True)):
        wrong = forbids(forbidden, {"app_mode": one, "app_direct": other})
        assert wrong is ((one == "fast") is not other)
    assert all("mode, direct" in rule["why"] for rule in rules[1:])
