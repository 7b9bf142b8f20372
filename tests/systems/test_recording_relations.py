"""What the rows of a table tell of constraints that it does not state."""

from __future__ import annotations

import time
import tracemalloc
from itertools import product

import numpy as np
import polars as pl
import pytest

from ascar.space import Choices
from ascar.space.relation import Relation
from ascar.systems.recording import MeasurementTable
from ascar.systems.recording_columns import TableColumns
from ascar.systems.recording_relations import constraints_of


def recorded(rows, names):
    frame = pl.DataFrame([dict(zip(names, row, strict=True)) | {"value": 1.0} for row in rows])
    return MeasurementTable.of(frame, TableColumns(tuple(names), ("value",)))


def test_columns_of_which_one_is_on_and_equal_ones_are_told():
    on = [tuple(at == chosen for at in range(5)) for chosen in range(5)]
    rows = [(*one, size, depth, 2 * size) for one, size, depth in product(on, (4, 8, 16), range(4))]
    names = ("a", "b", "c", "d", "e", "size", "depth", "double")
    table = recorded(rows, names)
    assert {relation.names for relation in table.space.constraints} == {names[:5], ("size", "double")}
    assert table.complete
    assert len(table.space.grouping.space) == 3


def summed(allowed, levels=range(4)):
    """The table of three columns whose joint values are those allowed, and of two others."""
    rows = [one for one in product(levels, levels, levels, range(3)) if allowed(one[:3])]
    return recorded([(*one, on) for one in rows for on in range(6)], ("a", "b", "c", "d", "e"))


@pytest.mark.parametrize(
    ("allowed", "text"),
    [(lambda one: sum(one) <= 5, "a + b + c <= 5"), (lambda one: sum(one) >= 4, "a + b + c >= 4")],
)
def test_a_sum_with_a_limit_is_told_as_such_and_no_group(allowed, text):
    table = summed(allowed)
    (constraint,) = table.space.constraints
    assert str(constraint) == text
    assert table.complete
    assert table.space.count() == len(table.configurations)
    assert not table.space.grouping.groups


@pytest.mark.parametrize(
    "table",
    [
        lambda: summed(lambda one: sum(one) <= 5 and one != (0, 1, 2)),
        lambda: summed(lambda one: sum(one) <= 2.5, (0.0, 0.5, 1.0, 1.5)),
        lambda: summed(lambda one: one[0] + 2 * one[1] + one[2] <= 6),
    ],
    ids=["but one", "not whole", "weighted"],
)
def test_joint_values_that_are_no_plain_sum_are_listed(table):
    (relation,) = table().space.constraints
    assert isinstance(relation, Relation)
    assert relation.names == ("a", "b", "c")


@pytest.mark.parametrize("seed", range(5))
def test_rows_at_random_tell_nothing(seed):
    rng = np.random.default_rng(seed)
    rows = {tuple(rng.integers(0, size, len(range(6))).tolist()) for size in [3] for _ in range(60)}
    assert recorded(sorted(rows), "abcdef").space.constraints == ()


def test_few_rows_and_missing_values_tell_nothing():
    few = recorded([(True, False), (False, True)], ("a", "b"))
    assert few.space.constraints == ()
    rows = [(on, None if on else "x", at) for on in (True, False) for at in range(20)]
    assert recorded(rows, ("a", "b", "c")).space.constraints == ()


@pytest.mark.parametrize("count", [50_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_many_rows_take_seconds_and_bounded_memory(count):
    rng = np.random.default_rng(1)
    chosen = rng.integers(0, 20, count)
    columns = {f"s{at}": chosen == at for at in range(20)}
    columns |= {f"n{at}": rng.integers(0, 6, count) for at in range(6)}
    domains = {name: Choices((False, True)) for name in columns if name[0] == "s"}
    domains |= {name: Choices(tuple(range(6)), ordered=True) for name in columns if name[0] == "n"}
    began_s = time.process_time()
    tracemalloc.start()
    found = constraints_of(pl.DataFrame(columns), domains)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [relation.names for relation in found] == [tuple(columns)[:20]]
    assert time.process_time() - began_s < 60
    assert peak < 30 * 8 * count * 2
