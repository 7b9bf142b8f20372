from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from ascar.analysis.spectra import (
    TableRoles,
    best_values,
    evaluated,
    fixed_values,
    importance,
    observations_of,
    sampled_rows,
)
from ascar.errors import InputError
from ascar.space import ChangeCost, Space, categorical, ordinal


def frame(rows=4000, seed=0):
    rng = np.random.default_rng(seed)
    fs = rng.choice(["ext4", "xfs"], rows)
    size, flag = rng.uniform(1, 1000, rows), rng.random(rows) < 0.5
    mode = np.where(fs == "ext4", rng.choice(["ordered", "journal"], rows), None)
    rate = 1000 + 400 * (fs == "xfs") + 0.2 * size - 50 * (mode == "journal") + rng.normal(0, 5, rows)
    return pl.DataFrame({"fs": fs, "size": size, "flag": flag, "mode": mode.tolist(), "rate": rate})


def test_the_order_of_known_effects_is_found_in_a_frame():
    found = importance(frame(), "rate")
    assert found.selected[:2] == ("fs", "size")
    assert [one.parameter for one in found.ranking][-1] == "flag"


def test_numbers_are_cut_into_ranges_of_equally_many_rows():
    size = observations_of(frame(), "rate", TableRoles()).factor("size")
    assert len(size.labels) == 8
    assert np.bincount(size.codes) == pytest.approx([500] * 8, abs=5)
    assert observations_of(frame(), "rate", TableRoles(bins_max=3)).factor("size").codes.max() == 2


def test_what_is_null_does_not_apply_and_few_numbers_are_values():
    table = pl.DataFrame(
        {"a": [1, 2, 1, 2, None], "b": [0.5, 0.5, None, 1.0, float("nan")], "y": [1, 2, 3, 4, 5]}
    )
    read = observations_of(table, "y", TableRoles())
    assert read.factor("a").codes.tolist() == [0, 1, 0, 1, -1]
    assert read.factor("b").codes.tolist() == [0, 0, -1, 1, -1]


def test_a_column_without_any_value_is_no_parameter():
    table = frame(50).with_columns(none=pl.lit(None), text=pl.lit(None, pl.String))
    assert {one.name for one in observations_of(table, "rate", TableRoles()).factors} == {
        "fs",
        "size",
        "flag",
        "mode",
    }


def test_a_column_that_is_nearly_constant_is_split_all_the_same():
    table = pl.DataFrame({"a": [0] * 90 + list(range(1, 11)), "y": [1.0] * 90 + [2.0] * 10})
    assert observations_of(table, "y", TableRoles()).factor("a").codes.tolist() == [0] * 90 + [1] * 10


def test_failed_trials_are_left_out():
    table = frame(50).with_columns(
        pl.when(pl.int_range(50) < 5).then(None).otherwise(pl.col("rate")).alias("rate")
    )
    assert len(observations_of(table, "rate", TableRoles()).values) == 45


def test_a_sample_of_a_grid_holds_every_value_equally_often():
    grid = pl.DataFrame(
        [(a, b, c) for a in range(2) for b in range(4) for c in range(8) for _ in range(5)],
        ["a", "b", "c"],
        orient="row",
    ).with_columns(y=pl.int_range(320))
    read = observations_of(grid, "y", TableRoles())
    rows = sampled_rows(read, 32, np.random.default_rng(0))
    assert len(set(rows.tolist())) == 32
    for name, times in (("a", 16), ("b", 8), ("c", 4)):
        assert np.abs(np.bincount(read.factor(name).codes[rows]) - times).max() <= 2
    assert sorted(sampled_rows(read, 1000, np.random.default_rng(0)).tolist()) == list(range(320))


def test_a_live_system_is_sampled_and_ranked():
    space = Space(
        (
            categorical("fs", ["ext4", "xfs"], default="ext4", cost=ChangeCost.REFORMAT_RESTORE),
            categorical(
                "mode",
                ["ordered", "journal"],
                default="ordered",
                cost=ChangeCost.REMOUNT,
                when='fs == "ext4"',
            ),
            ordinal("size", [1, 2, 4, 8], default=1, cost=ChangeCost.DYN_KERNEL),
        )
    )

    def measure(configuration):
        if configuration == space.default():
            return None
        return 100.0 + 50 * (configuration["fs"] == "xfs") + configuration["size"]

    made = evaluated(space, measure, 32)
    assert made.height == 32 and made["mode"].null_count() == 16
    found = importance(made, "objective")
    assert found.selected[:2] == ("fs", "size")


def test_what_fixing_values_leaves():
    table = pl.DataFrame({"a": ["x", "x", "y", "y"], "b": [1, 2, 1, 2], "y": [9, 11, 30, 30]})
    read = observations_of(table, "y", TableRoles())
    x, y = fixed_values(read, ["a"], 1)
    assert x.values == (("a", "x"),) and x.mean == 10 and x.rsd == pytest.approx(2**0.5 / 10)
    assert y.rows == 2 and y.rsd == 0
    assert len(fixed_values(read, ["a", "b"], 1)) == 4
    assert fixed_values(read, ["a", "b"], 2) == []  # one row each
    assert best_values(read, ["a"], maximize=True) == {"a": "y"}
    assert best_values(read, ["a", "b"], maximize=False) == {"a": "x", "b": "1"}


def test_bad_frames_are_refused():
    with pytest.raises(InputError, match="'none'"):
        importance(frame(10), "none")
    with pytest.raises(InputError, match="no rows"):
        importance(frame(10).head(0), "rate")
    with pytest.raises(InputError, match="every trial in the table failed"):
        importance(frame(10).with_columns(rate=pl.lit(None, pl.Float64)), "rate")
    with pytest.raises(InputError, match="objective and a parameter"):
        importance(frame(10), "rate", sheet=TableRoles(("rate",)))
    with pytest.raises(InputError, match="a parameter must hold numbers or text"):
        importance(frame(10).with_columns(fs=pl.Series([object()] * 10)), "rate")
