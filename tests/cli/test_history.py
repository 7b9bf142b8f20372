from __future__ import annotations

import csv
import json
import re
import sqlite3
import sys
from contextlib import closing

import pytest
from msgspec.structs import replace

from ascar.history import History
from ascar.history.seal import seal_runs
from ascar.results.outcome import Outcome
from ascar.results.trial import Failure, Purpose, TrialState
from ascar.results.verdict import Verdict
from ascar.study import Study

TEXT = """
[study]
name = "mail"
objective = "maximize throughput_ops_per_s"
budget = "1 min"
[target]
kind = "simulated"
"""


@pytest.fixture
def filled(space, trial_of):
    """A history with a finished run, and one that was interrupted."""
    study = Study.parse(TEXT)
    machine = {
        "target": "localfs",
        "kernel": "6.1",
        "memory_bytes": 8 * 2**30,
        "workload": {"program": "fio"},
    }
    default, better = space.default(), space.validate({"fs": "xfs", "read_ahead_kb": 256})
    weaker = space.validate({"fs": "ext4", "mode": "writeback", "read_ahead_kb": 64})
    with History() as history:
        with history.begin(study, space, machine) as run:
            first = trial_of(1, default, 100.0, purpose=Purpose.DEFAULT)
            failure = Failure("load", "fio: killed", "out of memory\ndetails")
            best = trial_of(3, better, 150.0, metrics={"throughput_ops_per_s": 150.0, "latency_ms_p99": 2.5})
            trials = [first, trial_of(2, weaker, None, state=TrialState.FAILED, failure=failure), best]
            for trial in trials:
                run.start_trial(replace(trial, state=TrialState.RUNNING))
                run.finish_trial(trial)
            verdict = Verdict(
                "improved", 0.5, 0.42, 0.58, 2e-7, 5, (150.0, 151.0), (100.0, 99.0), note="Welch's t-test"
            )
            stage_s = {"change": 3.0, "load": 12.0, "other": 1.0}
            counts = {TrialState.COMPLETE: 2, TrialState.FAILED: 1}
            outcome = Outcome(
                run.id, "mail", best, first, better, verdict, stage_s, counts, "time is up", machine
            )
            run.finish(outcome)
        with history.begin(study, space, machine) as run:
            trial = trial_of(1, default, 90.0, purpose=Purpose.DEFAULT)
            run.start_trial(replace(trial, state=TrialState.RUNNING))
            run.finish_trial(trial)
            run.start_trial(replace(trial, number=2, state=TrialState.RUNNING))


def test_without_runs_it_says_how_to_get_some(ascar):
    done = ascar("history", "ls")
    assert done.status == 0
    assert "ascar init" in done.out
    assert ascar("history", "ls", "--json").document["runs"] == []


def test_ls_lists_the_latest_first(ascar, filled):
    lines = ascar("history", "ls").out.splitlines()
    assert lines[1].split()[:4] == ["2", "study", "mail", "interrupted"]
    assert lines[2].split()[:3] == ["1", "study", "mail"]
    runs = ascar("history", "ls", "--json").document["runs"]
    assert [run["run_id"] for run in runs] == [2, 1]
    assert runs[1]["best_score"] == 150.0
    assert runs[1]["counts"] == {"complete": 2, "failed": 1}
    assert (runs[1]["verdict"], runs[1]["gain_relative"]) == ("improved", 0.5)
    assert (runs[0]["verdict"], runs[0]["gain_relative"]) == (None, None)
    assert "50.0% more" in lines[2]
    assert "more" not in lines[1]


def test_ls_of_what_is_not_there_is_bad_input(ascar, filled):
    done = ascar("history", "ls", "nope")
    assert done.status == 2
    assert "'nope'" in done.error
    assert "mail" in done.error
    done = ascar("history", "ls", "1")
    assert done.status == 2
    assert "ascar history show 1" in done.error


def test_show_prints_the_verdict_the_change_and_the_time(ascar, filled):
    text = ascar("history", "show", "1").out
    assert (
        "improved: 50.0% more throughput_ops_per_s than the default (99% interval 42.0% to 58.0% more)"
        in text
    )
    assert re.search(r"default 99\.50.* throughput_ops_per_s, mean of 2 runs", text)
    assert re.search(r"best    150\.5.* throughput_ops_per_s, mean of 2 runs .*trial 3\)", text)
    assert "p < 0.0001, 5 runs a side" in text
    words = [line.split() for line in text.splitlines()]
    assert ["fs", "ext4", "xfs", "reformat-restore"] in words
    assert "n/a" not in text, "what does not apply is not shown"
    assert "fs=xfs read_ahead_kb=256" in text
    assert ["read_ahead_kb", "128", "256", "dyn-kernel"] in words
    load = next(line for line in text.splitlines() if line.strip().startswith("load"))
    assert "12 s" in load
    assert "75%" in load
    assert "3 trials: 2 complete, 1 failed" in text
    assert "kernel: 6.1" in text
    assert "memory: 8 GiB" in text
    assert "workload: program fio" in text
    assert "ascar apply 1 --dry-run" in text
    assert "ascar report 1" in text


def test_show_lists_as_many_of_the_best_as_are_wanted(ascar, filled):
    whole, one = (ascar("history", "show", "1", "--top", str(top)).out.splitlines() for top in (10, 1))
    assert len(whole) == len(one) + 1
    assert ascar("history", "show", "1", "--top", "0").status in (0, 2)


def test_show_of_an_interrupted_run_claims_nothing(ascar, filled):
    text = ascar("history", "show", "mail").out
    assert "not verified: no gain is claimed" in text
    assert "ascar apply" not in text


def test_show_one_trial_in_full(ascar, filled):
    text = ascar("history", "show", "1", "--trial", "2").out
    assert "failed in load: fio: killed" in text
    assert "out of memory\ndetails" in text
    assert "mode: writeback" in text
    text = ascar("history", "show", "1", "--trial", "3").out
    assert "latency_ms_p99: 2.5" in text


def test_show_as_json_has_every_trial(ascar, filled):
    document = ascar("history", "show", "1", "--json").document
    assert [trial["number"] for trial in document["trials"]] == [1, 2, 3]
    assert document["outcome"]["verdict"]["kind"] == "improved"
    assert document["trials"][1]["failure"]["stderr"] == "out of memory\ndetails"
    assert ascar("history", "show", "1", "--trial", "3", "--json").document["trials"][0]["number"] == 3


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["show", "3"], "'3'"),
        (["show", "nosuch"], "mail"),
        (["show", "1", "--trial", "9"], "it has 3"),
        (["show", "/nosuch/study.toml"], "ascar init"),
        (["export", "--out", "x.csv"], "no run is named"),
        (["export", "1", "--all", "--out", "x.csv"], "--all"),
        (["export", "1", "--out", "x.xlsx"], ".parquet"),
        (["import", "/nosuch.json"], "/nosuch.json"),
        (["purge", "1"], "--yes"),
        (["purge", "17", "--yes"], "17"),
    ],
)
def test_what_is_not_there_is_named(ascar, filled, arguments, named):
    done = ascar("history", *arguments)
    assert done.status == 2
    assert named in done.error


@pytest.mark.parametrize("suffix", [".csv", ".json", ".parquet"])
def test_what_was_exported_can_be_imported(ascar, filled, tmp_path, suffix, monkeypatch):
    file = tmp_path / f"runs{suffix}"
    assert ascar("history", "export", "--all", "--out", file, "--json").document["runs"] == [2, 1]
    before = ascar("history", "show", "1", "--json").document
    monkeypatch.setenv("ASCAR_HISTORY", str(tmp_path / "other.sqlite"))
    added = ascar("history", "import", file, "--json").document["runs"]
    names = [ascar("history", "show", run, "--json").document for run in added]
    same = next(run for run in names if run["state"] == "complete")
    assert same["trials"] == before["trials"]
    assert same["outcome"]["verdict"] == before["outcome"]["verdict"]


def test_a_table_has_a_row_a_trial_and_a_column_a_parameter(ascar, filled, tmp_path):
    file = tmp_path / "run.csv"
    assert "1 run written" in ascar("history", "export", "1", "--no-unit-readings", "--out", file).out
    rows = list(csv.DictReader(file.read_text().splitlines()))
    assert [row["fs"] for row in rows] == ["ext4", "ext4", "xfs"]
    assert rows[2]["throughput_ops_per_s"] == "150.0"


def test_purge_removes_what_was_named_and_nothing_else(ascar, filled):
    assert ascar("history", "purge", "1", "--yes", "--json").document["removed"] == 1
    assert [run["run_id"] for run in ascar("history", "ls", "--json").document["runs"]] == [2]


def test_a_history_of_a_newer_ascar_is_refused(ascar, tmp_path, monkeypatch):
    import sqlite3

    file = tmp_path / "newer.sqlite"
    connection = sqlite3.connect(file)
    connection.execute("CREATE TABLE schema_version (version INTEGER NOT NULL)")
    connection.execute("INSERT INTO schema_version VALUES (999)")
    connection.commit()
    connection.close()
    monkeypatch.setenv("ASCAR_HISTORY", str(file))
    done = ascar("history", "ls")
    assert done.status == 1
    assert "999" in done.error


def test_what_is_no_history_is_refused(ascar, tmp_path, monkeypatch):
    file = tmp_path / "garbage"
    file.write_bytes(b"not a database at all" * 100)
    monkeypatch.setenv("ASCAR_HISTORY", str(file))
    assert str(file) in ascar("history", "ls").error


@pytest.fixture
def several(space, trial_of):
    """A run with a fast, a quick and a useless configuration."""
    study = Study.parse(TEXT)
    default, fast = space.default(), space.validate({"fs": "xfs", "read_ahead_kb": 256})
    bad = space.validate({"fs": "xfs", "read_ahead_kb": 64})
    rows = [(default, 100.0, 2.0), (fast, 150.0, 3.0), (bad, 90.0, 4.0)]
    with History() as history, history.begin(study, space, {}) as run:
        for number, (one, rate, late) in enumerate(rows, 1):
            metrics = {"throughput_ops_per_s": rate, "latency_ms_p99": late}
            made = trial_of(number, one, rate, metrics=metrics)
            run.start_trial(replace(made, state=TrialState.RUNNING))
            run.finish_trial(made)


def test_the_pareto_set_of_a_run(ascar, several):
    done = ascar("history", "pareto", "mail", "--objective", "minimize latency_ms_p99", "--json")
    assert done.status == 0
    document = done.document
    assert document["objectives"] == ["maximize throughput_ops_per_s", "minimize latency_ms_p99"]
    assert document["configurations"] == 3
    assert [one["scores"] for one in document["points"]] == [[150.0, 3.0], [100.0, 2.0]]
    assert [one["is_default"] for one in document["points"]] == [False, True]
    assert document["default"] == document["points"][1]


def test_people_see_what_each_of_the_set_changes(ascar, several):
    two = ("--objective", "maximize throughput_ops_per_s", "--objective", "maximize latency_ms_p99")
    done = ascar("history", "pareto", "mail", *two)
    assert done.status == 0
    assert "2 configurations" in done.out
    assert "fs=xfs" in done.out
    assert "it is the default  (not in the set)" in done.out


@pytest.mark.parametrize(
    ("objective", "message"),
    [("latency_ms_p99", "must be 'maximize FORMULA'"), ("minimize watts", "needs the metric 'watts'")],
)
def test_an_objective_that_cannot_be_told_is_refused(ascar, several, objective, message):
    done = ascar("history", "pareto", "mail", "--objective", objective)
    assert done.status == 2
    assert message in done.err


def test_an_export_does_not_overwrite_unasked(ascar, filled, tmp_path):
    file = tmp_path / "runs.json"
    file.write_text("precious")
    done = ascar("history", "export", "1", "--out", file)
    assert done.status == 2
    assert "--force" in done.error
    assert file.read_text() == "precious"
    assert ascar("history", "export", "1", "--out", file, "--force").status == 0
    assert file.read_text() != "precious"


def test_an_unreadable_run_is_left_out_and_named(ascar, filled, tmp_path, own_state):
    with closing(sqlite3.connect(own_state / "ascar" / "history.sqlite")) as connection, connection:
        connection.execute("UPDATE run SET space = '{}' WHERE id = 2")
    done = ascar("history", "export", "--all", "--out", tmp_path / "runs.json", "--json")
    assert done.status == 0
    assert (done.document["runs"], done.document["left_out"]) == ([1], [2])
    assert "run 2 is left out" in done.err
    assert ascar("history", "export", "2", "--out", tmp_path / "other.json").status == 1


def test_a_label_of_a_value_that_a_parameter_does_not_have_is_passed_over(ascar, filled, own_state):
    with closing(sqlite3.connect(own_state / "ascar" / "history.sqlite")) as connection, connection:
        (text,) = connection.execute("SELECT space FROM run WHERE id = 1").fetchone()
        space = json.loads(text)
        (mode,) = [one for one in space["parameters"] if one["name"] == "mode"]
        mode["weaker"]["journal"] = "integrity"
        connection.execute("UPDATE run SET space = ? WHERE id = 1", [json.dumps(space)])
    with History() as history, history._database.write() as writing:
        seal_runs(writing, [1])
    assert ascar("history", "show", "1").status == 0


def test_a_command_that_reads_makes_no_history(ascar, own_state, tmp_path, monkeypatch):
    assert ascar("history", "ls").status == 0
    assert not own_state.exists()
    assert ascar("report", "1", "--out", tmp_path / "report").status == 2
    mistyped = tmp_path / "no" / "such.sqlite"
    monkeypatch.setenv("ASCAR_HISTORY", str(mistyped))
    for command in (["history", "ls"], ["history", "show", "1"], ["export", "1"], ["apply", "1"]):
        done = ascar(*command)
        assert done.status == 2
        assert str(mistyped) in done.error
    assert not mistyped.parent.exists()


def test_a_driver_that_is_not_installed_is_named(ascar, monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    monkeypatch.setenv("ASCAR_HISTORY", "postgresql+psycopg://somebody@localhost/nothing")
    done = ascar("history", "ls")
    assert done.status == 2
    assert "psycopg cannot be imported; install it with: pip install 'ascar[postgres]'" in done.error


def test_purging_the_last_run_removes_its_lock_file(ascar, filled, own_state):
    lock = own_state / "ascar" / "history.sqlite.locks" / "mail.lock"
    assert ascar("history", "purge", "1", "--yes").status == 0
    assert lock.exists(), "another run of this study is there"
    assert ascar("history", "purge", "2", "--yes").status == 0
    assert not lock.exists()


def test_a_finished_run_is_not_passed_over_for_an_older_one(ascar, filled, space):
    """Run 2 is unfinished; once a later run is complete, that one goes on."""
    study = Study.parse(TEXT)
    with History() as history:
        with history.begin(study, space, {}) as run:
            outcome = history.run(1).outcome()
            run.finish(replace(outcome, run_id=run.id))
        with history.resume(study) as again:
            assert again.id == run.id
