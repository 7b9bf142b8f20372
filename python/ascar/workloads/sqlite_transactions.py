"""Small transactions on an SQLite database: the load for the sqlite target, which needs no root."""

from __future__ import annotations

import sqlite3
import sys
from typing import TYPE_CHECKING, Any

import msgspec

from ascar.errors import StageFailed, StudyError
from ascar.program import Harvest, JsonPath, Program, check, run_program
from ascar.results.measurement import Readings
from ascar.study import convert, duration

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ascar.workloads import LoadTiming
    from ascar.workspace import Workspace

DATABASE_FILE = "database.db"
_ROWS_MAX = 100_000_000
_METRICS = (
    "throughput_ops_per_s",
    *(f"latency_ms_{name}" for name in ("mean", "p50", "p95", "p99", "p999", "max")),
)


class SqliteTransactionsOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[workload]` of kind "sqlite-transactions".

    Attributes:
        rows: the number of rows in the table, about 250 bytes each.
        seed: the seed that chooses the rows of transactions.
        fill_limit: the fill is killed when it takes longer.
        overrun_limit: the load is killed when it runs so much longer than it should.
    """

    rows: int = 20_000
    seed: int = 0
    fill_limit: str = "10 min"
    overrun_limit: str = "60 s"


class SqliteTransactions:
    """Transactions of a few reads, updates, an insert and a delete, one after the other.

    Args:
        options: the `[workload]` table without its kind.

    Raises:
        StudyError: a key is wrong.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.options = convert(options, SqliteTransactionsOptions, "workload")
        if not 1 <= self.options.rows <= _ROWS_MAX:
            raise StudyError(f"workload.rows = {self.options.rows!r}: must be from 1 to {_ROWS_MAX}")
        if not 0 <= self.options.seed < 2**63:
            raise StudyError(f"workload.seed = {self.options.seed!r}: must be from 0 to 2^63 - 1")
        self._fill_limit_s = duration("workload.fill_limit", self.options.fill_limit)
        self._overrun_limit_s = duration("workload.overrun_limit", self.options.overrun_limit)
        self._dataset_bytes: int | None = None

    def describe(self) -> Mapping[str, Any]:
        """SQLite's version, the options, and the database's size once it is filled."""
        return {
            "kind": "sqlite-transactions",
            "program": "sqlite",
            "version": sqlite3.sqlite_version,
            "rows": self.options.rows,
            "seed": self.options.seed,
            "loop": "closed",
            "dataset_bytes": self._dataset_bytes,
        }

    @property
    def reported(self) -> frozenset[str]:
        """What `run` of the load tells of the whole run."""
        return frozenset({*_METRICS, "operations"})

    def prepare(self, workspace: Workspace) -> None:
        """Make the database and its rows."""
        program = self._program(
            "fill", workspace, self._fill_limit_s, ["fill", "--rows", str(self.options.rows)]
        )
        check(program, run_program(program, workspace))
        if workspace.node is None:
            self._dataset_bytes = (workspace.directory / DATABASE_FILE).stat().st_size

    def run(self, workspace: Workspace, pace: LoadTiming) -> Readings:
        """Do transactions."""
        readings = Harvest(
            {name: JsonPath(("reading", name)) for name in ("throughput_ops_per_s", "latency_ms_mean")},
            time=JsonPath(("second",)),
        )
        whole = Harvest({name: JsonPath(("whole", name)) for name in (*_METRICS, "operations")})

        def hear(chunk: bytes, seconds: float) -> bool:
            whole.feed(chunk, seconds)
            fresh = readings.feed(chunk, seconds)
            return fresh and pace.asks(seconds) and pace.may_end(readings.series())

        program = self._program(
            "load",
            workspace,
            pace.load_max_s + self._overrun_limit_s,
            ["run", "--seconds", str(pace.load_max_s), "--reading", str(pace.reading_s)],
        )
        ended = run_program(program, workspace, hear)
        check(program, ended)
        metrics = whole.metrics()
        if "throughput_ops_per_s" not in metrics:
            raise StageFailed("load", "sqlite_load: no transaction ended", ended.stderr)
        load_s = metrics["operations"] / metrics["throughput_ops_per_s"]
        return Readings(readings.series(), metrics, load_s, "enough" if ended.interrupted else "time")

    def _program(self, stage: str, workspace: Workspace, time_limit_s: float, command: list[str]) -> Program:
        database = workspace.directory / DATABASE_FILE
        options = ["--database", str(database), "--seed", str(self.options.seed)]
        argv = [sys.executable, "-P", "-m", "ascar.workloads.sqlite_load", *options, *command]
        return Program(stage, argv, time_limit_s)
