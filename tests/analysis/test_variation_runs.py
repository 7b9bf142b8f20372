from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from ascar.analysis.variation import relative_range, relative_standard_deviation
from ascar.analysis.variation_runs import FrameLayout, runs_of
from ascar.analysis.variation_summary import deviation_of, grouped, groups_of, linked, spread_of
from ascar.errors import InputError


def table():
    return pl.DataFrame(
        {
            "fs": ["xfs", "ext4", "xfs", "ext4", "ext4", "xfs", None, None],
            "mode": [None, "a", None, "a", "b", None, "c", "c"],
            "rate": [10.0, 20.0, 12.0, 22.0, 1.0, float("nan"), 0.0, 0.0],
            "at": [3, 2, 1, 4, 5, 6, 7, 8],
        }
    )


def test_runs_are_sorted_by_configuration_and_time():
    runs = runs_of(table(), FrameLayout("rate", ("fs", "mode"), "at"))
    assert len(runs) == 2 and runs.failed == 1 and runs.alone == 1 and runs.zero == 1
    by_fs = {runs.configuration(place)["fs"]: runs.scores[runs.of(place)].tolist() for place in range(2)}
    assert by_fs == {"xfs": [12.0, 10.0], "ext4": [20.0, 22.0]}
    assert runs.configuration(0) == {"fs": "xfs"}
    assert runs.first(2).scores.tolist() == runs.scores.tolist()


def test_without_parameters_all_rows_are_one_configuration():
    runs = runs_of(pl.DataFrame({"y": [1.0, 2, 3]}), FrameLayout("y"))
    assert len(runs) == 1 and runs.counts.tolist() == [3]


def test_nan_does_not_apply():
    frame = pl.DataFrame({"a": [1.0, float("nan"), None, 1.0], "y": [1.0, 2, 3, 4]})
    runs = runs_of(frame, FrameLayout("y", ("a",)))
    assert [runs.configuration(place) for place in range(2)] == [{"a": 1.0}, {}]


def test_instants_sort_too():
    frame = pl.DataFrame(
        {"a": [1, 1], "y": [1.0, 2.0], "at": ["2030-01-02T00:00:00Z", "2030-01-01T23:00:00+00:00"]}
    )
    runs = runs_of(frame, FrameLayout("y", ("a",), "at"))
    assert runs.scores.tolist() == [2.0, 1.0]
    assert runs.clock and np.ptp(runs.at) == 3600


@pytest.mark.parametrize(
    ("columns", "layout", "said"),
    [
        ({"a": [1, 2], "y": [1.0, 2.0]}, FrameLayout("y", ("a",)), "none of 2 configurations was measured"),
        ({"a": [1, 1], "y": ["fast", "slow"]}, FrameLayout("y", ("a",)), "row 1 holds 'fast'"),
        ({"a": [1, 1], "y": [1.0, 2.0]}, FrameLayout("z", ("a",)), "column 'z': does not exist"),
        ({"a": [1, 1], "y": [1.0, 2.0]}, FrameLayout("y", ("a", "y")), "it can be one of them"),
        ({"a": [1, 1], "y": [None, None]}, FrameLayout("y", ("a",)), "column 'y'"),
        ({"a": [1, 1], "y": [1e300, 1.0]}, FrameLayout("y", ("a",)), "use a larger unit"),
        ({"a": [1, 1], "y": [0.0, 0.0]}, FrameLayout("y", ("a",)), "its mean is 0 everywhere"),
        ({"a": [[1], [1]], "y": [1.0, 2.0]}, FrameLayout("y", ("a",)), "a parameter is a number or a text"),
        ({"a": [1, 1], "y": [1.0, 2.0], "t": ["soon", "late"]}, FrameLayout("y", ("a",), "t"), "or instants"),
        ({"a": [1, 1], "y": [1.0, 2.0], "t": [1, None]}, FrameLayout("y", ("a",), "t"), "runs have none"),
    ],
)  # fmt: skip
def test_bad_tables_are_refused(columns, layout, said):
    with pytest.raises(InputError, match=said):
        runs_of(pl.DataFrame(columns, strict=False), layout)


def test_spreads_are_those_of_the_measures():
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({"a": np.repeat(np.arange(20), 4), "y": rng.normal(100, 7, 80)})
    runs = runs_of(frame, FrameLayout("y", ("a",)))
    spread = spread_of(runs)
    for place in range(20):
        values = runs.scores[runs.of(place)]
        assert spread.rsd[place] == pytest.approx(relative_standard_deviation(values).value)
        assert spread.range[place] == pytest.approx(relative_range(values))
        assert deviation_of(runs, place).value == pytest.approx(spread.rsd[place])


def test_runs_that_do_not_differ_have_no_variation():
    spread = spread_of(
        runs_of(pl.DataFrame({"a": [1, 1, 1], "y": [0.1, 0.1, 0.1]}), FrameLayout("y", ("a",)))
    )
    assert spread.rsd.tolist() == [0.0] and spread.range.tolist() == [0.0]


def varied(configurations=60, seed=0):
    """ext4 varies ten times as much as xfs; the size makes no difference."""
    rng = np.random.default_rng(seed)
    rows = [
        (("ext4", "xfs")[c % 2], c, 1000 * rng.normal(1, (0.1, 0.01)[c % 2]))
        for c in range(configurations)
        for _ in range(4)
    ]
    return runs_of(pl.DataFrame(rows, ["fs", "size", "y"], orient="row"), FrameLayout("y", ("fs", "size")))


def test_groups_and_what_variation_goes_with():
    runs = varied()
    spread = spread_of(runs)
    names, of = grouped(runs, "fs")
    ext4, xfs = groups_of(names, of, runs, spread)
    assert (ext4.name, xfs.name, ext4.configurations) == ("ext4", "xfs", 30)
    assert ext4.rsd[0] == pytest.approx(0.1, rel=0.3) and xfs.rsd[0] == pytest.approx(0.01, rel=0.3)
    assert ext4.runs == (4, 4) and ext4.coverage == pytest.approx(0.248, abs=0.01)
    assert ext4.large > 0.7 and xfs.large == 0
    first, second = linked(runs, spread)
    assert (first.parameter, second.parameter) == ("fs", "size")
    assert first.p_adjusted < 1e-6 and second.p_adjusted > 0.05


def test_numbers_are_grouped_by_range_and_what_does_not_apply_by_itself():
    frame = pl.DataFrame({"a": [*range(20), None] * 2, "y": np.arange(1.0, 43)})
    runs = runs_of(frame, FrameLayout("y", ("a",)))
    names, of = grouped(runs, "a")
    assert names[-1] == "n/a" and 2 < len(names) <= 9 and len(of) == 21


def test_a_group_is_a_parameter_of_few_values():
    with pytest.raises(InputError, match="parameters are fs, size"):
        grouped(varied(), "nothing")
    frame = pl.DataFrame({"name": [f"n{i}" for i in range(50)] * 2, "y": np.arange(1.0, 101)})
    with pytest.raises(InputError, match="has 50 values"):
        grouped(runs_of(frame, FrameLayout("y", ("name",))), "name")
