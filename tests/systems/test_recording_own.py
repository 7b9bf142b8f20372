"""Tables of ascar's own: their space, parameters that do not apply, trials that came to no end."""

import json

import numpy as np
import polars as pl
import pytest

from ascar.errors import StudyError
from ascar.expression import parse
from ascar.space import ChangeCost, Choices, Parameter, Space
from ascar.space.document import space_to_document
from ascar.systems.recording import MeasurementTable
from ascar.systems.recording_columns import TableColumns


def parameter(name, values, cost, when=None, *, ordered=False):
    condition = None if when is None else parse(when)
    return Parameter(
        name=name, domain=Choices(values, ordered), default=values[0], cost=cost, condition=condition
    )


SPACE = Space(
    (
        parameter("fs", ("ext4", "xfs"), ChangeCost.REFORMAT_RESTORE),
        parameter("mode", ("ordered", "journal"), ChangeCost.UMOUNT_MOUNT, 'fs == "ext4"'),
        parameter("groups", (4, 8), ChangeCost.REFORMAT_RESTORE, 'fs == "xfs"', ordered=True),
        parameter("barrier", (True, False), ChangeCost.REMOUNT),
    ),
    name="small",
)
ROWS = [
    # state, fs, mode, groups, barrier, ops_per_s
    ("interrupted", "ext4", "ordered", None, True, None),
    ("complete", "ext4", "ordered", None, True, 10.0),
    ("complete", "ext4", "ordered", None, True, 12.0),
    ("failed", "ext4", "journal", None, True, None),
    ("complete", "xfs", None, 4, True, 20.0),
    ("complete", "xfs", None, 8, True, 30.0),
    ("complete", "xfs", None, 8, False, 40.0),
]


def written(path, rows=ROWS, spaces=(SPACE,)):
    """The rows as an export has them; the space of each run in its first row."""
    names = ["trial.state", "fs", "mode", "groups", "barrier", "ops_per_s"]
    frame = pl.DataFrame(rows, schema=names, orient="row").cast({"groups": pl.Int64})
    runs = [json.dumps({"space": space_to_document(space)}) for space in spaces]
    runs += [None] * (len(rows) - len(runs))
    frame = frame.with_columns(pl.Series("trial.run", runs, pl.String))
    if path.suffix == ".csv":
        frame.write_csv(path)
    else:
        frame.write_parquet(path)
    return path


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_the_space_is_the_one_that_was_measured(tmp_path, suffix):
    recording = MeasurementTable.read(written(tmp_path / f"t.{suffix}"), TableColumns(metrics=("ops_per_s",)))
    assert recording.space.names == SPACE.names
    assert recording.space.count() == 8
    assert recording.space["fs"].cost is ChangeCost.REFORMAT_RESTORE
    assert not recording.complete
    assert dict(recording.configurations[0]) == {"fs": "ext4", "mode": "ordered", "barrier": True}
    truth = recording.truth("ops_per_s")
    assert truth[[0, 2, 3, 4]].tolist() == [11.0, 20.0, 30.0, 40.0]
    assert np.isnan(truth[1]), "a failed trial is known to fail"


def test_interrupted_trials_tell_nothing(tmp_path):
    recording = MeasurementTable.read(written(tmp_path / "t.parquet"), TableColumns(metrics=("ops_per_s",)))
    assert recording.rows(0) == slice(0, 2)
    only = [(*row[:5], 1.0) for row in ROWS if row[0] == "interrupted"]
    with pytest.raises(StudyError, match="no trial in it has ended"):
        MeasurementTable.read(written(tmp_path / "none.parquet", only), TableColumns(metrics=("ops_per_s",)))


def test_what_was_not_measured_is_the_nearest_of_its_own_kind(tmp_path):
    recording = MeasurementTable.read(written(tmp_path / "t.parquet"), TableColumns(metrics=("ops_per_s",)))
    wanted = recording.space.validate({"fs": "xfs", "groups": 4, "barrier": False})
    nearest = recording.configurations[recording.nearest(wanted)]
    assert nearest["fs"] == "xfs", "parameters that apply to one of the two alone count as different"


def test_named_parameters_make_every_combination_askable(tmp_path):
    """For optimizers that know no conditions: what does not apply makes no difference."""
    columns = TableColumns(("fs", "mode", "groups", "barrier"), ("ops_per_s",))
    recording = MeasurementTable.read(written(tmp_path / "t.parquet"), columns)
    assert recording.space.count() == 16
    assert all(parameter.condition is None for parameter in recording.space.parameters)
    for mode in ("ordered", "journal"):
        wanted = recording.space.validate({"fs": "xfs", "mode": mode, "groups": 8, "barrier": False})
        assert recording.truth("ops_per_s")[recording.nearest(wanted)] == 40.0
    for groups in (4, 8):
        wanted = recording.space.validate(
            {"fs": "ext4", "mode": "ordered", "groups": groups, "barrier": True}
        )
        assert recording.truth("ops_per_s")[recording.nearest(wanted)] == 11.0


def test_a_parameter_that_never_applies_is_refused_when_named(tmp_path):
    rows = [(*row[:3], None, *row[4:]) for row in ROWS]
    with pytest.raises(StudyError, match="column 'groups' has no value"):
        MeasurementTable.read(
            written(tmp_path / "t.parquet", rows), TableColumns(("fs", "groups"), ("ops_per_s",))
        )


def test_parameters_that_applied_to_none_so_far_are_of_the_space_all_the_same(tmp_path):
    rows = [row for row in ROWS if row[1] == "ext4"]
    frame = pl.read_parquet(written(tmp_path / "t.parquet", rows)).drop("groups")
    frame.write_parquet(tmp_path / "begun.parquet")
    recording = MeasurementTable.read(tmp_path / "begun.parquet", TableColumns(metrics=("ops_per_s",)))
    assert recording.space.count() == 8
    assert len(recording) == 2
    frame.drop("barrier").write_parquet(tmp_path / "less.parquet")
    recording = MeasurementTable.read(tmp_path / "less.parquet", TableColumns(metrics=("ops_per_s",)))
    assert recording.space.name == "table"


def test_runs_of_one_space_are_one_table(tmp_path):
    file = written(tmp_path / "t.parquet", spaces=(SPACE, SPACE))
    assert MeasurementTable.read(file, TableColumns(metrics=("ops_per_s",))).space.count() == 8


def test_runs_of_two_spaces_have_none_in_common(tmp_path):
    file = written(tmp_path / "t.parquet", spaces=(SPACE, SPACE.pin({"barrier": True})))
    recording = MeasurementTable.read(file, TableColumns(metrics=("ops_per_s",)))
    assert recording.space.name == "table"


def test_rows_that_are_not_of_the_space_are_refused(tmp_path):
    rows = [*ROWS, ("complete", "ext4", "ordered", 8, True, 1.0)]
    with pytest.raises(StudyError, match="row 7: parameter groups"):
        MeasurementTable.read(written(tmp_path / "t.parquet", rows), TableColumns(metrics=("ops_per_s",)))
    rows = [*ROWS, ("complete", "zfs", None, None, True, 1.0)]
    with pytest.raises(StudyError, match="row 7: parameter fs"):
        MeasurementTable.read(written(tmp_path / "t.parquet", rows), TableColumns(metrics=("ops_per_s",)))


@pytest.mark.parametrize("run", ["", "{", "[]", '{"space": 1}', '{"space": {"format": "x"}}', "[" * 100_000])
def test_a_damaged_run_leaves_an_ordinary_table(tmp_path, run):
    frame = pl.read_parquet(written(tmp_path / "t.parquet")).drop("mode", "groups")
    frame = frame.with_columns(pl.Series("trial.run", [run] + [None] * 6, pl.String))
    frame.write_parquet(tmp_path / "damaged.parquet")
    recording = MeasurementTable.read(tmp_path / "damaged.parquet", TableColumns(metrics=("ops_per_s",)))
    assert recording.space.name == "table"
