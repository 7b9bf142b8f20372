"""Old files, made by SQL as the old version made them, are brought up to date; newer ones are refused."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateIndex, CreateTable

from ascar.errors import HistoryError
from ascar.history import SCHEMA_VERSION, History, RunKind
from ascar.history.migration import MIGRATIONS
from ascar.history.schema import metadata
from ascar.results.trial import TrialState
from ascar.space import Configuration
from ascar.space.document import space_to_json

if TYPE_CHECKING:
    from pathlib import Path

# The schema as version 1 created it.
VERSION_1 = """
CREATE TABLE schema_version (version INTEGER NOT NULL);
CREATE TABLE machine (
    id INTEGER NOT NULL, digest TEXT NOT NULL, description TEXT NOT NULL, PRIMARY KEY (id), UNIQUE (digest));
CREATE TABLE study (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, digest TEXT NOT NULL,
    state TEXT NOT NULL, objective TEXT NOT NULL, seed BIGINT NOT NULL, text TEXT NOT NULL,
    space TEXT NOT NULL, versions TEXT NOT NULL, machine_id INTEGER NOT NULL, started_at TEXT NOT NULL,
    finished_at TEXT NOT NULL, outcome TEXT, FOREIGN KEY(machine_id) REFERENCES machine (id));
CREATE INDEX ix_study_name ON study (name);
CREATE TABLE trial (
    study_id INTEGER NOT NULL, number INTEGER NOT NULL, configuration_key TEXT NOT NULL,
    configuration TEXT NOT NULL, purpose TEXT NOT NULL, state TEXT NOT NULL, score FLOAT,
    duration_s FLOAT NOT NULL, measurement TEXT, change TEXT, stage_s TEXT NOT NULL, unmet TEXT NOT NULL,
    failure TEXT, boot_id TEXT NOT NULL, started_at TEXT NOT NULL, PRIMARY KEY (study_id, number),
    FOREIGN KEY(study_id) REFERENCES study (id) ON DELETE CASCADE);
CREATE INDEX trial_by_configuration ON trial (study_id, configuration_key);
CREATE INDEX trial_by_score ON trial (study_id, state, number, purpose, score, duration_s);
CREATE TABLE metric (
    study_id INTEGER NOT NULL, number INTEGER NOT NULL, name TEXT NOT NULL, value FLOAT,
    PRIMARY KEY (study_id, number, name),
    FOREIGN KEY(study_id, number) REFERENCES trial (study_id, number) ON DELETE CASCADE) WITHOUT ROWID;
CREATE TABLE reading (
    study_id INTEGER NOT NULL, number INTEGER NOT NULL, name TEXT NOT NULL, count INTEGER NOT NULL,
    seconds_f64 BLOB NOT NULL, values_f64 BLOB NOT NULL, PRIMARY KEY (study_id, number, name),
    FOREIGN KEY(study_id, number) REFERENCES trial (study_id, number) ON DELETE CASCADE);
INSERT INTO schema_version VALUES (1);
"""


@pytest.fixture
def old(path: Path, study, space, configuration) -> Path:
    path.parent.mkdir()
    with sqlite3.connect(path) as connection:
        connection.executescript(VERSION_1)
        connection.execute("INSERT INTO machine VALUES (1, 'd', '{\"kernel\":\"5.10\"}')")
        values = (study.name, study.digest, "interrupted", "maximize throughput_ops_per_s", 0, study.text)
        connection.execute(
            "INSERT INTO study VALUES (1, ?, ?, ?, ?, ?, ?, ?, '{}', 1, '2025', '', NULL)",
            (*values, space_to_json(space)),
        )
        failures = (
            (1, "complete", None),
            (2, "interrupted", '{"message":"down","stage":"machine","stderr":""}'),
            (3, "interrupted", None),
            (4, "failed", '{"message":"bad","stage":"load","stderr":"x"}'),
        )
        for number, state, failure in failures:
            connection.execute(
                "INSERT INTO trial VALUES (1, ?, ?, ?, 'search', ?, ?, 2.0, NULL, NULL, '{\"load\":2.0}', "
                "'[]', ?, 'boot', '2025')",
                (
                    number,
                    configuration.key(),
                    configuration.text,
                    state,
                    5.0 if number == 1 else None,
                    failure,
                ),
            )
        connection.execute("INSERT INTO metric VALUES (1, 1, 'x', 5.0)")
        numbers = np.array([1.5, 2.5]).tobytes()
        connection.execute("INSERT INTO reading VALUES (1, 1, 'x', 2, ?, ?)", (numbers, numbers))
    connection.close()
    return path


def version_of(path: Path) -> int:
    connection = sqlite3.connect(path)
    (version,) = connection.execute("SELECT version FROM schema_version").fetchone()
    connection.close()
    return version


def columns_of(path: Path) -> dict[str, list[tuple[str, str, int]]]:
    connection = sqlite3.connect(path)
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    found = {
        table: [row[1:4] for row in connection.execute(f"PRAGMA table_info({table})")]
        for table in sorted(tables)
    }
    connection.close()
    return found


def test_a_file_of_version_1_is_brought_up_to_date(old, clock, study, configuration):
    with History(old, clock.moment()) as history:
        run = history.run(study.name)
        trials = run.trials()
        assert [trial.state for trial in trials] == [
            TrialState.COMPLETE,
            TrialState.INTERRUPTED,
            TrialState.INTERRUPTED,
            TrialState.FAILED,
        ]
        assert trials[0].series["x"].values.tolist() == [1.5, 2.5]
        assert trials[0].metrics == {"x": 5.0}
        assert isinstance(trials[0].configuration, Configuration)
        assert run.crash_count(configuration) == 1
        assert run.machine == {"kernel": "5.10"}
        assert run.kind is RunKind.STUDY
        assert [trial.origin for trial in trials] == [None] * 4, "nobody kept who proposed them"
        with history.resume(study) as again:
            assert again.next_number() == 5
    assert version_of(old) == SCHEMA_VERSION


def test_a_migrated_file_is_like_a_new_one(old, tmp_path):
    History(old).close()
    History(tmp_path / "new.sqlite").close()
    assert columns_of(old) == columns_of(tmp_path / "new.sqlite")


def test_there_is_a_step_from_every_version():
    assert sorted(MIGRATIONS) == list(range(1, SCHEMA_VERSION))


def test_a_step_that_fails_leaves_the_file_as_it_was(old, monkeypatch):
    before = columns_of(old)
    step = MIGRATIONS[1]

    def failing(connection):
        step(connection)
        connection.exec_driver_sql("INSERT INTO nowhere VALUES (1)")

    monkeypatch.setitem(MIGRATIONS, 1, failing)
    with pytest.raises(HistoryError, match="nowhere"):
        History(old)
    assert version_of(old) == 1
    assert columns_of(old) == before


def test_a_newer_file_is_refused_naming_both_versions(old):
    newer = SCHEMA_VERSION + 7
    with sqlite3.connect(old) as connection:
        connection.execute("UPDATE schema_version SET version = ?", (newer,))
    connection.close()
    with pytest.raises(HistoryError) as refused:
        History(old)
    assert f"version {newer}" in refused.value.message
    assert f"up to {SCHEMA_VERSION}" in refused.value.message
    assert version_of(old) == newer


@pytest.mark.parametrize("change", ["DELETE FROM schema_version", "INSERT INTO schema_version VALUES (1)"])
def test_a_file_without_one_version_is_refused(old, change):
    with sqlite3.connect(old) as connection:
        connection.execute(change)
    connection.close()
    with pytest.raises(HistoryError, match="one version"):
        History(old)


def test_many_processes_open_a_new_file_at_once(path):
    code = (
        "import sys; from pathlib import Path; from ascar.history import History; "
        "sys.stdin.readline(); History(Path(sys.argv[1])).close()"
    )
    opening = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    for process in opening:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in opening:
        _, stderr = process.communicate(timeout=200)
        assert process.returncode == 0, stderr
    assert version_of(path) == SCHEMA_VERSION


def test_the_schema_can_be_said_to_postgresql():
    dialect = postgresql.dialect()
    said = "\n".join(str(CreateTable(table).compile(dialect=dialect)) for table in metadata.sorted_tables)
    said += "\n".join(
        str(CreateIndex(index).compile(dialect=dialect))
        for table in metadata.sorted_tables
        for index in table.indexes
    )
    assert "SERIAL" in said
    assert "BYTEA" in said
    assert "FLOAT(53)" in said
