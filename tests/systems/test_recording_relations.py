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
from ascar.systems.recording_relations import relations_of


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


def test_a_sum_below_a_cap_is_told_and_no_group():
    rows = [one for one in product(range(4), range(4), range(4), range(3)) if sum(one[:3]) <= 5]
    table = recorded([(*one, on) for one in rows for on in range(6)], ("a", "b", "c", "d", "e"))
    (relation,) = table.space.constraints
    assert isinstance(relation, Relation)
    assert relation.names == ("a", "b", "c")
    assert table.complete
    assert not table.space.grouping.groups


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
    found = relations_of(pl.DataFrame(columns), domains)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [relation.names for relation in found] == [tuple(columns)[:20]]
    assert time.process_time() - began_s < 60
    assert peak < 30 * 8 * count * 2
