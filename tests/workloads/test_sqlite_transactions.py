"""Small SQLite transactions, in a program of their own."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from contextlib import closing, contextmanager

import pytest

from ascar.errors import StageFailed, StudyError
from ascar.testing import WorkloadContract
from ascar.workloads import LoadTiming, open_workload
from ascar.workloads.sqlite_load import _instants, main
from ascar.workloads.sqlite_transactions import DATABASE_FILE, SqliteTransactions
from ascar.workspace import Workspace

SMALL = {"rows": 500}


def pace(load_max_s=0.6, may_end=lambda series: False):
    return LoadTiming(0.2, load_max_s, 0.1, may_end)


def ask(place, question):
    with closing(sqlite3.connect(place.directory / DATABASE_FILE)) as connection:
        return connection.execute(question).fetchone()[0]


class TestSqliteTransactionsContract(WorkloadContract):
    @pytest.fixture(autouse=True)
    def _directory(self, directory):
        self.directory = directory

    def make(self):
        return SqliteTransactions(SMALL)

    @contextmanager
    def place(self):
        yield Workspace(self.directory)


def test_it_is_the_kind_sqlite_transactions():
    assert isinstance(open_workload({"kind": "sqlite-transactions"}), SqliteTransactions)


def test_the_fill_makes_the_rows_and_a_run_keeps_their_number(place):
    load = SqliteTransactions(SMALL)
    load.prepare(place)
    assert ask(place, "SELECT count(*) FROM item") == 500
    size = (place.directory / DATABASE_FILE).stat().st_size
    assert load.describe()["dataset_bytes"] == size
    first = load.run(place, pace())
    assert ask(place, "SELECT count(*) FROM item") == 500
    # Each transaction replaces the oldest row, for good.
    assert ask(place, "SELECT min(id) FROM item") == 1 + first.metrics["operations"]
    load.run(place, pace())
    assert ask(place, "SELECT count(*) FROM item") == 500
    assert ask(place, "PRAGMA integrity_check") == "ok"


def test_readings_and_the_whole_agree(place, with_readings):
    load = SqliteTransactions(SMALL)
    load.prepare(place)
    readings = with_readings(2, lambda load_s: load.run(place, pace(load_s)))
    low, high = (
        min(readings.series["throughput_ops_per_s"].values),
        max(readings.series["throughput_ops_per_s"].values),
    )
    assert 0.5 * low <= readings.metrics["throughput_ops_per_s"] <= 1.5 * high
    ordered = [readings.metrics[f"latency_ms_{name}"] for name in ("p50", "p95", "p99", "p999", "max")]
    assert ordered == sorted(ordered)
    assert 0.9 <= readings.load_s < 60


def test_pragmas_of_the_workspace_are_in_force(place):
    (place.directory / "connect.sql").write_text("PRAGMA page_size = 8192;\nPRAGMA journal_mode = WAL;\n")
    load = SqliteTransactions(SMALL)
    load.prepare(place)
    assert ask(place, "PRAGMA page_size") == 8192
    assert ask(place, "PRAGMA journal_mode") == "wal"
    assert load.run(place, pace()).metrics["operations"] > 0


@pytest.mark.parametrize(
    "line", ["DROP TABLE item;", "PRAGMA x = 1; DROP TABLE item;", "ATTACH '/etc/x' AS y;", "x"]
)
def test_what_is_no_pragma_is_refused(place, line):
    (place.directory / "connect.sql").write_text(line + "\n")
    with pytest.raises(StageFailed, match="is not a pragma") as failed:
        SqliteTransactions(SMALL).prepare(place)
    assert failed.value.stage == "fill"


def test_a_run_without_a_fill_fails(place):
    with pytest.raises(StageFailed, match="no such table"):
        SqliteTransactions(SMALL).run(place, pace())


def test_a_damaged_database_fails_the_load(place):
    load = SqliteTransactions(SMALL)
    load.prepare(place)
    (place.directory / DATABASE_FILE).write_bytes(b"not a database" * 1000)
    with pytest.raises(StageFailed, match="file is not a database"):
        load.run(place, pace())


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"rows": 0}, "workload.rows = 0: must be from 1 to"),
        ({"rows": "many"}, "workload.rows = 'many'"),
        ({"row": 1}, "workload.row: unknown key"),
        ({"fill_limit": "x"}, "workload.fill_limit"),
    ],
)
def test_mistakes_are_named(options, problem):
    with pytest.raises(StudyError, match=problem):
        SqliteTransactions(options)


def test_the_program_prints_lines_of_json(directory):
    database = str(directory / "x.db")
    assert main(["--database", database, "fill", "--rows", "50"]) == 0
    argv = [sys.executable, "-m", "ascar.workloads.sqlite_load", "--database", database]
    done = subprocess.run(
        [*argv, "run", "--seconds", "1", "--reading", "0.1"], capture_output=True, check=True
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert all("reading" in line for line in lines[:-1])
    assert lines[-1]["whole"]["operations"] > 0


def test_the_program_says_what_is_wrong(directory, capsys):
    assert main(["--database", str(directory / "none" / "x.db"), "fill", "--rows", "5"]) == 1
    assert capsys.readouterr().err.startswith("sqlite_load: unable to open database file")


def test_a_transaction_that_stalls_counts_for_as_long_as_it_does():
    assert _instants(10.0, 10.3, 0.25) == pytest.approx([10.3])
    assert _instants(10.0, 12.0, 0.5) == pytest.approx([10.5, 11, 11.5, 12])
    assert _instants(10.0, 10.0, 0.25) == [10.0]
