"""Recorded tables as targets: drawing, snapping, failing, and every way in which a file can be wrong."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

from ascar.errors import SpaceError, StageFailed, StudyError
from ascar.space import Choices, Configuration, Range
from ascar.systems import Target
from ascar.systems.recording import MeasurementTable
from ascar.systems.recording_columns import TableColumns, name_of
from ascar.systems.table import RecordedTable
from ascar.testing import TargetContract, WorkloadContract
from ascar.workloads import LoadTiming, Workload

PACE = LoadTiming(1.0, 2.0, 0.1, lambda series: False)

ROWS = """fs,block,on,repetition,speed,lat(ms),took_s
ext,1024,true,1,10,1.0,5
ext,1024,true,2,12,1.1,6
ext,1024,true,3,14,1.2,7
ext,4096,true,1,20,1.3,5
ext,4096,true,2,22,,5
xfs,1024,false,1,40,1.4,5
"""
OPTIONS = {
    "parameters": ["fs", "block", "on"],
    "ignore": ["repetition"],
    "metrics": ["speed"],
    "seconds": "took_s",
}


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(ROWS)
    return path


@pytest.fixture
def table(file):
    def make(**options):
        return RecordedTable(
            {"file": str(file), "parameters": ["fs", "block", "on"], "metrics": ["speed"]} | options
        )

    return make


def draw(target, configuration, n):
    with target:
        target.apply(Configuration(configuration))
        return [target.run(target.workspace, PACE) for _ in range(n)]


EXT = {"fs": "ext", "block": 1024, "on": True}


class TestTableTarget(TargetContract):
    @pytest.fixture(autouse=True)
    def _file(self, table):
        self.make = table


class TestTableWorkload(WorkloadContract):
    @pytest.fixture(autouse=True)
    def _file(self, table):
        def make():
            target = table()
            target.apply(Configuration(EXT))
            return target

        self.make = make


def test_it_is_target_and_workload_at_once(table):
    assert isinstance(table(), Target)
    assert isinstance(table(), Workload)


def test_the_space_is_what_the_columns_hold(table):
    space = table().space
    assert space.names == ("fs", "block", "on")
    assert space.domain("fs") == Choices(("ext", "xfs"))
    assert space.domain("block") == Choices((1024, 4096), ordered=True)
    assert space.domain("on") == Choices((False, True))
    assert space.count() == 8
    assert dict(space.default()) == EXT
    assert dict(table(default={"fs": "xfs", "on": False}).space.default()) == {
        "fs": "xfs",
        "block": 1024,
        "on": False,
    }


def test_replicates_come_each_once_before_any_twice(table):
    drawn = [one.metrics["speed"] for one in draw(table(), EXT, 9)]
    for start in (0, 3, 6):
        assert sorted(drawn[start : start + 3]) == [10, 12, 14]


def test_draws_depend_on_the_seed_alone(table):
    one, two = ([run.metrics["speed"] for run in draw(table(seed=seed), EXT, 30)] for seed in (1, 1))
    assert one == two
    assert one != [run.metrics["speed"] for run in draw(table(seed=2), EXT, 30)]


def test_noise_is_relative_and_gaussian(table):
    drawn = np.array([one.metrics["speed"] for one in draw(table(noise_relative_sd=0.1), EXT, 3000)])
    ratio = drawn / 12
    assert ratio.mean() == pytest.approx(1.0, abs=0.02)
    assert ratio.std() == pytest.approx(np.hypot(0.1, np.std([10, 12, 14]) / 12), rel=0.05)


def test_the_recorded_time_passes(table):
    target = table(seconds="took_s")
    runs = draw(target, EXT, 3)
    assert sorted(one.load_s for one in runs) == [5, 6, 7]
    assert target.clock() == 18
    assert [one.load_s for one in draw(table(), EXT, 1)] == [1.0]


def test_what_was_not_measured_is_the_nearest_or_refused(table):
    assert draw(table(), {"fs": "xfs", "block": 4096, "on": False}, 1)[0].metrics["speed"] == 40
    assert draw(table(), {"fs": "ext", "block": 4096, "on": False}, 1)[0].metrics["speed"] in (20, 22)
    target = table(unknown="refuse")
    with pytest.raises(StageFailed, match="was not measured"):
        draw(target, {"fs": "xfs", "block": 4096, "on": False}, 1)
    target.recording.nearest(Configuration({"fs": "xfs", "block": 4096, "on": False}))
    with pytest.raises(StageFailed, match="was not measured"):
        draw(target, {"fs": "xfs", "block": 4096, "on": False}, 1)


def test_a_row_without_its_metric_is_a_failed_evaluation(table):
    target = table(metrics=["lat(ms)"])
    with target:
        target.apply(Configuration(EXT | {"block": 4096}))
        outcomes = []
        for _ in range(2):
            try:
                outcomes.append(target.run(target.workspace, PACE).metrics["lat_ms_"])
            except StageFailed as failure:
                outcomes.append(failure.message)
    assert min(map(str, outcomes)) == "1.3"
    assert "failed: it has no lat_ms_" in max(map(str, outcomes))


def test_metrics_or_parameters_are_enough(file):
    by_metrics = RecordedTable(
        {"file": str(file), "metrics": ["speed"], "ignore": ["repetition", "lat(ms)", "took_s"]}
    )
    assert by_metrics.space.names == ("fs", "block", "on")
    by_parameters = RecordedTable({"file": str(file), "parameters": ["fs", "block", "on"]})
    assert set(by_parameters.recording.values) == {"repetition", "speed", "lat_ms_", "took_s"}


def test_parquet_is_read_alike(file, tmp_path):
    pl.read_csv(file).write_parquet(tmp_path / "rows.parquet")
    target = RecordedTable({"file": str(tmp_path / "rows.parquet"), **OPTIONS})
    assert [one.load_s for one in draw(target, EXT, 3)] == [
        one.load_s for one in draw(RecordedTable({"file": str(file), **OPTIONS}), EXT, 3)
    ]


def test_truth_is_the_mean_of_the_rows_that_succeeded(file):
    recording = MeasurementTable.read(
        file, TableColumns(parameters=("fs", "block"), metrics=("speed", "lat(ms)"))
    )
    assert recording.truth("speed") == pytest.approx([12, 21, 40])
    assert recording.truth("lat_ms_") == pytest.approx([1.1, 1.3, 1.4])
    assert not recording.complete
    assert len(recording) == 3


def test_many_numbers_are_a_range_and_snapping_takes_the_nearest(tmp_path):
    path = tmp_path / "wide.csv"
    path.write_text("x,y,m\n" + "\n".join(f"{i * i},{i / 7:.3f},{i}" for i in range(100)))
    recording = MeasurementTable.read(path, TableColumns(metrics=("m",)))
    assert recording.space.domain("x") == Range(0, 99 * 99, integer=True)
    assert isinstance(recording.space.domain("y"), Range)
    assert recording.nearest(Configuration({"x": 2500, "y": 50 / 7})) == 50
    assert recording.nearest(Configuration({"x": 2510, "y": 7.1})) == 50
    assert (
        MeasurementTable.read(path, TableColumns(metrics=("m",)), listed_max=200).space.domain("x").size
        == 100
    )


def test_names_that_formulas_cannot_write_are_changed():
    assert [name_of(column) for column in ("$<time", "PERF-", "99th", "", "a b")] == [
        "__time",
        "PERF_",
        "_99th",
        "_",
        "a_b",
    ]


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("", {}, "cannot be read"),
        ("a,b\n", {}, "has no rows"),
        ("a,b\n1,2\n", {}, "name the metrics or the parameters"),
        ("a,b\n1,2\n", {"metrics": ["c"]}, "target.metrics: 'c' is not a column; the table has a, b"),
        ("a,b\n1,2\n", {"metrics": ["b"], "ignore": ["b"]}, "'b' is given two roles"),
        ("a,b\n1,2\n", {"metrics": ["b"]}, "target.parameters: no column is left"),
        ("a,b\n1,x\n2,y\n", {"parameters": ["a"]}, "target.metrics: no column is left"),
        ("a,b\n1,x\n2,y\n", {"metrics": ["b"]}, "must be numeric"),
        ("a,b\n1,2\n,3\n", {"metrics": ["b"]}, "column 'a' has no value in row 2"),
        ("a,b\n1.5,2\ninf,3\n", {"metrics": ["b"]}, "column 'a' has no value in row 2"),
        ("a b,a-b\n1,2\n", {"metrics": ["a b"]}, "same name in formulas"),
        ("a,b\n1,2\n3,4\n", {"metrics": ["b"], "seed": -1}, "target.seed"),
        ("a,b\n1,2\n3,4\n", {"metrics": ["b"], "noise_relative_sd": -0.1}, "target.noise_relative_sd"),
        ("a,b\n1,2\n3,4\n", {"metrics": ["b"], "unknown": "guess"}, "target.unknown"),
        ("a,b\n1,2\n3,4\n", {"metrics": ["b"], "change_s": [1]}, "target.change_s"),
        ("a,b\n1,2\n3,4\n", {"metric": ["b"]}, "did you mean 'metrics'"),
    ],
)
def test_mistakes_are_named(tmp_path, text, options, message):
    path = tmp_path / "table.csv"
    path.write_text(text)
    with pytest.raises(StudyError, match=message):
        RecordedTable({"file": str(path)} | options)


def test_a_wrong_default_is_named(table):
    with pytest.raises(SpaceError, match="fs"):
        table(default={"fs": "ntfs"})


@pytest.mark.parametrize(
    "content", [b"\xff\xfe\x00binary\x00\x01", b"PAR1garbage", b'a,b\n1,2,3,4\n5\n"unclosed']
)
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_what_is_no_table_is_refused(tmp_path, content, suffix):
    path = tmp_path / f"hostile{suffix}"
    path.write_bytes(content)
    with pytest.raises(StudyError):
        RecordedTable({"file": str(path), "metrics": ["b"]})


def test_a_missing_file_or_a_directory_is_refused(tmp_path):
    for path in (tmp_path / "absent.csv", tmp_path):
        with pytest.raises(StudyError, match="no such file|is not a file"):
            RecordedTable({"file": str(path), "metrics": ["b"]})


def test_a_table_of_ascars_own_knows_what_was_set(tmp_path):
    """What `ascar sweep --out` writes: columns on the trials, parameters, metrics, and the run itself."""
    run = json.dumps({"space": {"parameters": [{"name": "depth"}, {"name": "mode"}]}}).replace('"', '""')
    file = tmp_path / "dataset.csv"
    file.write_text(
        "trial.number,trial.failure,depth,mode,change_s,ops_per_s,trial.run\n"
        f'1,,1,a,0.1,10,"{run}"\n2,broken,2,a,0.2,,\n3,,2,b,0.3,30,\n'
    )
    recording = MeasurementTable.read(file, TableColumns(metrics=("ops_per_s",)))
    assert recording.space.names == ("depth", "mode")
    assert list(recording.values) == ["ops_per_s"]
    recording = MeasurementTable.read(file, TableColumns(parameters=("depth", "mode")))
    assert list(recording.values) == ["change_s", "ops_per_s"]
    assert MeasurementTable.read(file, TableColumns(("depth",), ("trial.number",))).space.names == ("depth",)


def test_messages_name_columns_as_the_file_does(tmp_path):
    file = tmp_path / "table.csv"
    file.write_text("queue depth,ops/s\n1,2\n,3\n")
    with pytest.raises(StudyError, match="column 'queue depth' has no value in row 2"):
        MeasurementTable.read(file, TableColumns(metrics=("ops/s",)))
