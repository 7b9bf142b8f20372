"""Runs of the time when the kernel's settings had names of their own are kept, go on, and can be imported."""

from __future__ import annotations

import json
import sqlite3

import pytest
from msgspec.structs import replace

from ascar.errors import InputError
from ascar.history import History, exchange
from ascar.results.outcome import Outcome
from ascar.results.trial import Change
from ascar.results.verdict import Verdict
from ascar.space import preset
from ascar.space.document import space_to_document
from ascar.space.renamed import RENAMED, has_old_names
from ascar.space.study_table import study_space
from ascar.study import Study

TEXT = """
[study]
name = "renamed"
objective = "maximize throughput_ops_per_s"
budget = "10 min"
[target]
kind = "localfs"
[space]  # the I/O scheduler and read-ahead
preset = "storage-v5"
tuned = ["block_scheduler", "block_read_ahead_kb", "vm_dirty_ratio"]
constraints = ["vm_dirty_ratio <= 40", 'block_scheduler != "kyber"']
pinned.ext4_inode_readahead_blks = 8
[space.parameters.block_read_ahead_kb]
values = [128, 512]
"""
OLD = {new: old for old, new in RENAMED.items()}


def in_old_names(text: str) -> str:
    for new, old in OLD.items():
        text = text.replace(new, old)
    return text


@pytest.fixture
def kept(path, clock, make):
    """A study under present names; the configurations of its trials."""
    study = Study.parse(TEXT)
    space = study_space(study, preset("storage-v5"))
    default = space.default()
    found = space.validate({**default, "block_read_ahead_kb": 512, "block_scheduler": "bfq"})
    changed = Change(("block_read_ahead_kb", "block_scheduler"), 0, {"knobs": 0.1})
    with History(path, clock.moment()) as history, history.begin(study, space, {"kernel": "6.1"}) as run:
        trials = [make.complete(1, default, 100.0), make.complete(2, found, 200.0)]
        trials[1] = replace(trials[1], change=changed)
        for trial in trials:
            run.finish_trial(trial)
        verdict = Verdict("improved", 1.0, 0.9, 1.1, 0.001, 2, (1.0, 2.0), (1.5, 1.5))
        stopped = Outcome(
            run.id, run.name, trials[1], trials[0], found, verdict, {"load": 1.0}, {}, "done", run.machine
        )
        run.finish(stopped)
    return study, space, [default, found]


def check(history, run_id, kept) -> None:
    study, space, configurations = kept
    run = history.run(run_id)
    assert space_to_document(run.space) == space_to_document(space)
    assert run.text == study.text, "comments too"
    trials = run.trials()
    assert [trial.configuration for trial in trials] == configurations
    assert trials[1].change.parameters == ("block_read_ahead_kb", "block_scheduler")
    assert run.outcome().recommended == configurations[1]


def test_a_history_is_brought_up_to_date(path, clock, kept):
    with sqlite3.connect(path) as connection:
        for table, columns in (("run", ("text", "space", "outcome")), ("trial", ("configuration", "change"))):
            for rowid, *texts in connection.execute(
                f"SELECT rowid, {', '.join(columns)} FROM {table}"
            ).fetchall():
                new = ", ".join(f"{column} = ?" for column in columns)
                connection.execute(
                    f"UPDATE {table} SET {new} WHERE rowid = ?", (*map(in_old_names, texts), rowid)
                )
        connection.execute("UPDATE trial SET configuration_key = 'old'")
        connection.execute("UPDATE run SET digest = 'old', state = 'interrupted'")
        since = {"run": ("checksum", "imported"), "trial": ("checksum", "readings_checksum")}
        added = [(table, column) for table, columns in since.items() for column in columns]
        for table, column in added:
            connection.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
        connection.execute("UPDATE schema_version SET version = 4")
        old = "".join(connection.execute("SELECT text || space || outcome FROM run").fetchone())
        assert '"read_ahead_kb"' in old
        assert "block_read_ahead_kb" not in old
    connection.close()
    with History(path, clock.moment()) as history:
        check(history, 1, kept)
        study, _, configurations = kept
        with history.resume(study) as again:
            assert again.next_number() == 3
    with sqlite3.connect(path) as connection:
        keys = [key for (key,) in connection.execute("SELECT configuration_key FROM trial ORDER BY number")]
    connection.close()
    assert keys == [configuration.key() for configuration in configurations]


@pytest.mark.parametrize("suffix", [".json", ".parquet", ".csv"])
def test_an_older_export_is_imported(path, clock, kept, tmp_path, suffix, monkeypatch):
    plain = exchange.codec.dump
    monkeypatch.setattr(
        exchange.codec,
        "dump",
        lambda value, **options: in_old_names(plain(value, **options)).replace('"version":3', '"version":2'),
    )
    file = tmp_path / f"old{suffix}"
    with History(path, clock.moment()) as history:
        history.export([1], file)
    monkeypatch.undo()
    with History(tmp_path / "other.sqlite", clock.moment()) as other:
        (new,) = other.import_runs(file)
        check(other, new, kept)


def test_a_parameter_of_ones_own_keeps_its_name(path, clock, study, space, configuration, make):
    with History(path, clock.moment()) as history, history.begin(study, space, {}) as run:
        run.finish_trial(make.complete(1, configuration))
    with sqlite3.connect(path) as connection:
        since = {"run": ("checksum", "imported"), "trial": ("checksum", "readings_checksum")}
        added = [(table, column) for table, columns in since.items() for column in columns]
        for table, column in added:
            connection.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
        connection.execute("UPDATE schema_version SET version = 4")
    connection.close()
    with History(path) as history:
        assert history.run(study.name).trials()[0].configuration == configuration


@pytest.mark.parametrize("name", RENAMED)
def test_a_study_with_an_old_name_is_told_the_present_one(name):
    study = Study.parse(TEXT.replace('"vm_dirty_ratio"]', f'"{name}"]'))
    with pytest.raises(InputError, match=f"{name}.*its name is '{RENAMED[name]}' now"):
        study_space(study, preset("storage-v5"))


def test_the_present_names_are_those_of_the_presets():
    space = preset("storage-v5")
    for old, new in RENAMED.items():
        assert old not in space.names
        assert new == space[new].native.replace(".DEV", "").replace(".", "_")


def test_hostile_spaces_have_no_old_names():
    for hostile in (
        None,
        3,
        [],
        "storage-v5",
        {"name": "storage-v5"},
        {"name": "storage-v5", "parameters": [3, None]},
    ):
        assert not has_old_names(hostile)
    assert has_old_names(json.loads('{"name": "storage-v3", "parameters": [{"name": "scheduler"}]}'))
