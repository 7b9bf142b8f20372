"""Exports for people and other programs; imports of what anyone may have put into a file."""

from __future__ import annotations

import json
import sqlite3

import polars as pl
import pytest
from msgspec.structs import replace

from ascar.errors import HistoryError, InputError
from ascar.history import History
from ascar.history.table import trials_table
from ascar.results.encode import json_ready
from ascar.results.outcome import Outcome
from ascar.results.trial import Failure, TrialState
from ascar.results.verdict import Verdict
from ascar.space import Configuration

SUFFIXES = [".json", ".parquet", ".csv"]


@pytest.fixture
def full(history, study, space, configuration, make):
    """A finished run of five trials, one of them failed, and an empty one."""
    ext4 = Configuration({"fs": "ext4", "read_ahead_kb": 128})
    with history.begin(study, space, {"kernel": "6.1"}) as run:
        for number, setting in enumerate([ext4, configuration, ext4, configuration], start=1):
            run.finish_trial(make.complete(number, setting, 100.0 * number))
        failure = Failure("change", "mkfs: bytes that are no text: \udcff, and a \0", "a,\"b\"\n'c'")
        failed = replace(make.running(5, configuration), state=TrialState.FAILED, failure=failure)
        run.finish_trial(failed)
        trials = run.trials()
        verdict = Verdict("default-is-fine", 0.0, -0.1, 0.1, 0.9, 2, (1.0, 2.0), (1.5, 1.5))
        counts = {TrialState.COMPLETE: 4, TrialState.FAILED: 1}
        run.finish(
            Outcome(
                run.id,
                run.name,
                trials[3],
                trials[0],
                ext4,
                verdict,
                {"load": 1.0},
                counts,
                "done",
                run.machine,
            )
        )
    with history.begin(study, space, {"kernel": "6.2"}) as empty:
        pass
    return run.id, empty.id


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_several_runs_and_an_empty_one(history, full, tmp_path, suffix, same):
    file = tmp_path / f"runs{suffix}"
    history.export(full, file)
    with History(tmp_path / "other.sqlite") as other:
        new = other.import_runs(file)
        assert len(new) == 2
        for old_id, new_id in zip(full, new, strict=True):
            old, copy = history.run(old_id), other.run(new_id)
            assert same(tuple(copy.trials()), tuple(old.trials()))
            assert copy.state is old.state
            assert {**json_ready(copy.outcome()), "run_id": 0} == {**json_ready(old.outcome()), "run_id": 0}
            assert copy.machine == old.machine
        with pytest.raises(InputError, match="exists already as run"):
            other.import_runs(file)
        assert len(other.runs()) == 2


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_an_export_of_an_import_is_the_same_file(history, full, tmp_path, suffix):
    first, second = tmp_path / f"a{suffix}", tmp_path / f"b{suffix}"
    history.export(full, first)
    with History(tmp_path / "other.sqlite") as other:
        other.export(other.import_runs(first), second)
    assert first.read_bytes() == second.read_bytes()


def test_checksums_from_before_imports_were_noted_still_fit(history, full, path):
    history.close()
    with sqlite3.connect(path) as connection:
        connection.execute("ALTER TABLE run DROP COLUMN imported")
        connection.execute("UPDATE schema_version SET version = 6")
    connection.close()
    with History(path) as migrated:
        assert migrated.damaged() == []
        assert [migrated.run(number).imported for number in full] == [None] * len(full)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_without_readings(history, full, tmp_path, suffix):
    file = tmp_path / f"runs{suffix}"
    history.export(full, file, readings=False)
    with History(tmp_path / "other.sqlite") as other:
        trials = other.run(other.import_runs(file)[0]).trials()
    assert all(not trial.series for trial in trials)
    assert trials[0].metrics == history.run(full[0]).trials()[0].metrics


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_a_table_is_one_that_other_programs_can_use(history, full, tmp_path, suffix):
    file = tmp_path / f"runs{suffix}"
    history.export(full[:1], file)
    frame = pl.read_parquet(file) if suffix == ".parquet" else pl.read_csv(file)
    assert frame["fs"].to_list() == ["ext4", "xfs", "ext4", "xfs", "xfs"]
    assert frame["agcount"].to_list() == [None, 8, None, 8, 8]
    assert frame["throughput_ops_per_s"].to_list() == [100.0, 200.0, 300.0, 400.0, None]
    assert frame["trial.state"].to_list()[-1] == "failed"
    assert frame["trial.ci_low"].to_list()[0] == 99.0
    assert frame["trial.change_category"].to_list()[:2] == [3, 3]


def test_columns_whose_values_are_of_several_kinds(make):
    mixed = [Configuration({"x": value}) for value in (True, 1, 1.5, "auto", 2**70)]
    table = trials_table([make.complete(n, setting) for n, setting in enumerate(mixed, start=1)])
    assert table["x"].to_list() == ["true", "1", "1.5", "auto", str(2**70)]
    for values, kind in (([True, False], pl.Boolean), ([1, 2], pl.Int64), ([1, 2.5], pl.Float64)):
        settings = [Configuration({"x": value}) for value in values]
        table = trials_table([make.complete(n, setting) for n, setting in enumerate(settings, start=1)])
        assert table["x"].dtype == kind
    huge = trials_table([make.complete(1, Configuration({"x": 2**70}))])
    assert huge["x"].to_list() == [str(2**70)]
    assert trials_table([]).height == 0


def test_a_metric_named_like_something_else(make):
    trial = replace(make.complete(1, Configuration({"fs": "xfs"})), metrics={"fs": 1.0, "trial.score": 2.0})
    table = trials_table([trial])
    assert table["fs"].to_list() == ["xfs"]
    assert table["metric.fs"].to_list() == [1.0]
    assert table["trial.score"].to_list() == [100.0]
    assert table["metric.trial.score"].to_list() == [2.0]


def test_endings(history, full, tmp_path):
    for name in ("runs", "runs.xlsx", "runs.json.gz"):
        with pytest.raises(InputError, match=r"\.json, \.parquet, \.csv"):
            history.export(full, tmp_path / name)
        with pytest.raises(InputError, match=r"\.json, \.parquet, \.csv"):
            history.import_runs(tmp_path / name)
    assert not list(tmp_path.glob("runs*"))


def test_nothing_to_export(history, full, tmp_path):
    with pytest.raises(InputError, match="names no run"):
        history.export([], tmp_path / "x.json")
    with pytest.raises(InputError, match="99"):
        history.export([full[0], 99], tmp_path / "x.json")
    assert not (tmp_path / "x.json").exists()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_cannot_be_written_leaves_nothing(history, full, tmp_path, suffix):
    (tmp_path / "file").touch()
    with pytest.raises(HistoryError):
        history.export(full, tmp_path / "file" / f"x{suffix}")
    with pytest.raises(HistoryError):
        history.export(full, tmp_path / "nowhere" / f"x{suffix}")
    (tmp_path / f"taken{suffix}").mkdir()
    with pytest.raises(HistoryError):
        history.export(full, tmp_path / f"taken{suffix}")
    assert not list(tmp_path.glob(".*.part"))


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"[1, 2", b"{}", b"a,b\n1,2\n", b"[" * 100_000])
def test_files_that_are_no_export(history, tmp_path, suffix, content):
    file = tmp_path / f"x{suffix}"
    file.write_bytes(content)
    with pytest.raises(InputError) as refused:
        history.import_runs(file)
    assert "\n" not in refused.value.message
    assert str(file) in refused.value.message
    assert history.runs() == []


def test_a_file_that_is_not_there(history, tmp_path):
    for suffix in SUFFIXES:
        with pytest.raises(InputError, match="cannot be read|no such file"):
            history.import_runs(tmp_path / f"x{suffix}")


def _set(path: str, value: object):
    """A change at a path such as "runs.0.trials.1.number"."""

    def change(document: dict) -> None:
        *parents, last = path.split(".")
        place = document
        for part in parents:
            place = place[int(part)] if isinstance(place, list) else place[part]
        place[last] = value

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_set("runs", 3), "is not an export"),
        (_set("runs", [3]), "is not an export"),
        (_set("runs.0.format", "other"), "is not an export"),
        (_set("runs.0.version", 4), "newer ascar"),
        (_set("runs.0.version", "1"), "version '1'"),
        (_set("runs.0.name", "../../etc/passwd"), "is not a name of a study"),
        (_set("runs.0.name", 7), "name"),
        (_set("runs.0.seed", "x"), "seed"),
        (_set("runs.0.objective", "enjoy x"), "objective"),
        (_set("runs.0.space", {}), "space"),
        (_set("runs.0.space.parameters.0.name", "else"), "parameter"),
        (_set("runs.0.outcome", {"verdict": {"kind": "great"}}), "great"),
        (_set("runs.0.outcome.recommended", {"fs": "zfs"}), "zfs"),
        (_set("runs.0.trials.1.number", 1), "twice"),
        (_set("runs.0.trials.1.number", -1), "above zero"),
        (_set("runs.0.trials.1.state", "running"), "ended"),
        (_set("runs.0.trials.1.state", "asleep"), "state"),
        (_set("runs.0.trials.1.score", "nan"), "finite"),
        (_set("runs.0.trials.1.score", [1]), "score"),
        (_set("runs.0.trials.1.configuration", {"fs": "zfs"}), "zfs"),
        (_set("runs.0.trials.1.configuration", {"nosuch": 1}), "nosuch"),
        (_set("runs.0.trials.1.configuration", {}), "missing"),
        (_set("runs.0.trials.1.series", {"x": {"seconds": [1], "values": []}}), "1 instants, 0 readings"),
        (_set("runs.0.trials.1.metrics", {"x": None}), "metrics"),
    ],
)
def test_exports_that_someone_changed(history, full, tmp_path, change, said):
    file = tmp_path / "x.json"
    history.export(full, file)
    document = json.loads(file.read_text())
    change(document)
    file.write_text(json.dumps(document))
    with History(tmp_path / "other.sqlite") as other:
        with pytest.raises(InputError) as refused:
            other.import_runs(file)
        assert said in refused.value.message
        assert "\n" not in refused.value.message
        assert other.runs() == []


def test_a_run_that_was_under_way_comes_in_as_interrupted(history, study, space, tmp_path):
    with history.begin(study, space, {}) as run:
        history.export([run.id], tmp_path / "x.json")
    with History(tmp_path / "other.sqlite") as other:
        other.import_runs(tmp_path / "x.json")
        assert other.runs()[0].state.value == "interrupted"
        with other.resume(study) as again:
            assert again.next_number() == 1


def test_a_table_whose_rows_were_reordered(history, full, tmp_path):
    file = tmp_path / "x.csv"
    history.export(full[:1], file)
    frame = pl.read_csv(file, infer_schema=False)
    frame.reverse().write_csv(file)
    with pytest.raises(InputError, match="do not sort it"):
        history.import_runs(file)
