"""SQLite's pragmas as a target; everything here is real and needs no root."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from ascar.errors import StageFailed, StudyError
from ascar.space import Guarantee
from ascar.systems import open_target, sqlite_log
from ascar.systems.sqlite import CONNECT_FILE, SqliteDatabase, sqlite_space
from ascar.testing import TargetContract
from ascar.workloads import LoadTiming, open_workload
from ascar.workloads.sqlite_load import CONNECT_FILE as LOADS_CONNECT_FILE
from ascar.workloads.sqlite_load import connect

PACE = LoadTiming(0.2, 0.4, 0.1, lambda series: False)


@pytest.fixture
def target(tmp_path):
    with SqliteDatabase({"directory": str(tmp_path)}) as entered:
        yield entered


class TestSqliteContract(TargetContract):
    @pytest.fixture(autouse=True)
    def _directory(self, tmp_path):
        self.directory = str(tmp_path)

    def make(self):
        return SqliteDatabase({"directory": self.directory})


def test_it_is_the_kind_sqlite_with_a_load_of_its_own():
    target = open_target({"kind": "sqlite"})
    assert isinstance(target, SqliteDatabase)
    assert open_workload({}, target.default_workload)


def test_target_and_load_mean_the_same_file():
    assert CONNECT_FILE == LOADS_CONNECT_FILE


def test_the_default_is_what_sqlite_does_unasked(tmp_path):
    default = sqlite_space(exclusive=False).default()
    with closing(sqlite3.connect(tmp_path / "x.db")) as connection:

        def ask(pragma):
            return connection.execute(f"PRAGMA {pragma}").fetchone()[0]

        assert ask("page_size") == default["page_size_bytes"]
        assert ask("journal_mode").upper() == default["journal_mode"]
        assert ask("synchronous") == 2
        assert default["synchronous"] == "FULL"
        assert ask("cache_size") == -int(default["cache_size_kib"])
        assert ask("auto_vacuum") == 0
        assert ask("temp_store") == 0
        assert ask("locking_mode").upper() == default["locking_mode"]
        assert ask("wal_autocheckpoint") == 1000
        assert ask("cell_size_check") == 0


def test_every_value_is_really_put_in_force(target):
    space = sqlite_space(exclusive=True)
    names = {"NONE": 0, "FULL": 1, "INCREMENTAL": 2}
    synchronous = {"OFF": 0, "NORMAL": 1, "FULL": 2, "EXTRA": 3}
    for configuration in space.latin_hypercube(np.random.default_rng(1), 24):
        target.apply(configuration)
        database = target.workspace.directory / "database.db"
        with closing(connect(database)) as connection:
            connection.execute("CREATE TABLE x (y)")

            def ask(pragma, connection=connection):
                return connection.execute(f"PRAGMA {pragma}").fetchone()[0]

            assert ask("page_size") == configuration["page_size_bytes"]
            assert ask("auto_vacuum") == names[configuration["auto_vacuum"]]
            assert ask("journal_mode").upper() == configuration["journal_mode"]
            assert ask("synchronous") == synchronous[configuration["synchronous"]]
            assert ask("cache_size") == -configuration["cache_size_kib"]
            assert ask("locking_mode").upper() == configuration["locking_mode"]
            assert ask("cell_size_check") == configuration["cell_size_check"]
            if "wal_autocheckpoint_pages" in configuration:
                assert ask("wal_autocheckpoint") == configuration["wal_autocheckpoint_pages"]


def test_what_may_lose_commits_is_named():
    space = sqlite_space(exclusive=False)
    for name, values in {"synchronous": ["NORMAL", "OFF"], "journal_mode": ["MEMORY", "OFF"]}.items():
        for value in values:
            assert Guarantee.DURABILITY in space[name].weakens(value)
    safe = space.permit_weaker([])
    for configuration in safe.sample(np.random.default_rng(1), 200):
        assert configuration["synchronous"] in ("FULL", "EXTRA")
        assert configuration["journal_mode"] in ("DELETE", "TRUNCATE", "PERSIST", "WAL")
        assert configuration["locking_mode"] == "NORMAL"


def test_each_trial_has_a_new_database(target):
    load = open_workload({"kind": "sqlite-transactions", "rows": 200})
    for configuration in (target.space.default(), target.space.default()):
        change = target.apply(configuration)
        assert not change.filled
        assert [path.name for path in target.workspace.directory.iterdir()] == [CONNECT_FILE]
        load.prepare(target.workspace)
        target.settle()
        assert load.run(target.workspace, PACE).metrics["operations"] > 0


def test_the_lines_for_an_administrator_work_in_the_shell(target):
    configuration = target.space.nearest({"journal_mode": "WAL", "page_size_bytes": 8192})
    chosen = target.space.departures(configuration)
    assert target.commands(configuration, chosen)["shell"] == [
        "PRAGMA page_size = 8192;",
        "PRAGMA journal_mode = WAL;",
    ]
    lines = target.commands(configuration, target.space.names)["shell"]
    assert lines[0] == "PRAGMA page_size = 8192;"
    assert "PRAGMA cache_size = -2000;" in lines
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript("\n".join(lines))


def test_leaving_removes_everything(tmp_path):
    with SqliteDatabase({"directory": str(tmp_path)}) as target:
        target.apply(target.space.default())
        assert list(tmp_path.iterdir())
    assert list(tmp_path.iterdir()) == []


def test_two_at_once_do_not_meet(tmp_path):
    with (
        SqliteDatabase({"directory": str(tmp_path)}) as one,
        SqliteDatabase({"directory": str(tmp_path)}) as two,
    ):
        for target in (one, two):
            target.apply(target.space.default())
        assert one.workspace.directory != two.workspace.directory


def test_without_a_directory_it_goes_to_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with SqliteDatabase({}) as target:
        target.apply(target.space.default())
        assert Path(tmp_path / "cache" / "ascar") in target.workspace.directory.parents


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"directory": "/proc/absent/x"}, "target.directory = '/proc/absent/x': is not a directory; make it"),
        ({"directory": ""}, "target.directory = '': must be a path"),
        ({"directory": "a\0b"}, "must be a path"),
        ({"directory": 5}, "target.directory = 5: must be"),
        ({"exclusive": "yes"}, "target.exclusive = 'yes': must be"),
        ({"file": "x"}, "target.file: unknown key"),
    ],
)
def test_mistakes_are_named(options, problem):
    with pytest.raises(StudyError, match=problem) as error:
        SqliteDatabase(options)
    assert "\n" not in error.value.message


def test_a_place_that_cannot_be_written_is_named():
    with pytest.raises(StudyError, match=r"target\.directory = '/proc'"):
        SqliteDatabase({"directory": "/proc"}).__enter__()


def test_a_log_that_is_not_checkpointed_is_deferred_work_and_draining_moves_it(tmp_path):
    with SqliteDatabase({"directory": str(tmp_path)}) as target:
        configuration = target.space.default().replaced(journal_mode="WAL", wal_autocheckpoint_pages=16000)
        target.apply(target.space.validate(configuration))
        load = open_workload({"rows": 2000}, target.default_workload)
        load.prepare(target.workspace)
        target.settle()
        assert target.sample().deferred == {"wal_bytes": 0.0}
        load.run(target.workspace, PACE)
        left = target.sample()
        assert left.deferred["wal_bytes"] > 0
        assert left.gauges["wal_checkpoints"] == 0
        metrics = {"load_s": 0.4, "wal_checkpoints": 0.0, "deferred_wal_bytes": left.deferred["wal_bytes"]}
        pages = left.deferred["wal_bytes"] / 4096
        assert target.cycle_s(configuration, metrics) == pytest.approx(0.4 * 16000 / pages)
        rows = rows_of(target)
        target.drain(60)
        assert target.sample().deferred == {"wal_bytes": 0.0}
        assert rows_of(target) == rows


def test_checkpoints_of_the_load_are_counted_and_give_the_cycle(target):
    configuration = target.space.default().replaced(journal_mode="WAL", wal_autocheckpoint_pages=100)
    target.apply(target.space.validate(configuration))
    load = open_workload({"rows": 2000}, target.default_workload)
    load.prepare(target.workspace)
    target.settle()
    load.run(target.workspace, LoadTiming(1.5, 2.0, 0.1, lambda series: False))
    found = target.sample()
    assert found.gauges["wal_checkpoints"] > 1
    assert found.deferred["wal_bytes"] < 200 * 4096
    metrics = {"load_s": 2.0, **found.gauges}
    assert target.cycle_s(configuration, metrics) == 2 / found.gauges["wal_checkpoints"]


def test_without_a_log_a_synced_database_defers_nothing(target):
    default = target.space.default()
    assert target.cycle_s(default, {}) == 0
    assert target.cycle_s(default.replaced(synchronous="OFF"), {}) > 0


def test_a_database_in_use_is_not_drained_and_that_is_said(target):
    configuration = target.space.default().replaced(journal_mode="WAL", wal_autocheckpoint_pages=16000)
    target.apply(target.space.validate(configuration))
    open_workload({"rows": 2000}, target.default_workload).prepare(target.workspace)
    with closing(connect(target.workspace.directory / "database.db")) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM item").fetchone()
        with closing(connect(target.workspace.directory / "database.db")) as writer:
            writer.execute("UPDATE item SET owner = 1")
        start_s = time.monotonic()
        with pytest.raises(StageFailed, match=r"another program uses it|did not end within 0.5 s|locked"):
            target.drain(0.5)
        assert time.monotonic() - start_s < 20


@pytest.mark.parametrize("content", [b"", b"x" * 31, b"\xff" * 4096, bytes(4096)])
def test_no_log_is_too_broken_to_be_measured(tmp_path, content):
    (tmp_path / "database.db-wal").write_bytes(content)
    (tmp_path / "database.db-shm").write_bytes(content)
    (log,) = sqlite_log.logs(tmp_path)
    assert sqlite_log.pending_bytes(log) >= 0
    assert sqlite_log.checkpoints(log) >= 0


def rows_of(target):
    """The rows as another connection sees them."""
    with closing(sqlite3.connect(target.workspace.directory / "database.db")) as connection:
        return connection.execute("SELECT count(*), max(id), sum(length(value)) FROM item").fetchone()
