"""sysbench, the usual benchmark of MySQL and MariaDB: transactions of its OLTP tests on tables of its own.

sysbench counts the latencies of all transactions in logarithmic buckets, 1.8% apart, and prints them at its
end. It ends at a time that is set beforehand. So the test runs inside a script that also ends it when a file
appears: a load that has told enough ends early, with its buckets.
"""

from __future__ import annotations

import math
import re
import shutil
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from ascar.errors import EnvironmentLacks, StageFailed, StudyError
from ascar.program import Harvest, Program, run_program
from ascar.program.extraction import Pattern
from ascar.program.said import said_by
from ascar.results.measurement import Readings
from ascar.study import check_limits, convert, duration
from ascar.workloads.latencies import REPORTED, SHARES
from ascar.workloads.open_loop import loop_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ascar.program import ProgramExit
    from ascar.workloads import LoadTiming
    from ascar.workspace import Workspace

_LIMITS = {"tables": (1, 1000), "rows": (1, 1_000_000_000), "clients": (1, 10_000), "seed": (0, 2**31 - 2)}
_RATE_MAX_PER_S = 1_000_000
_BYTES_PER_ROW = 230
_STOP = "sysbench.stop"
_SCRIPT = """require("{test}")
local ffi = require("ffi")
ffi.cdef("int access(const char *path, int mode);")
local one = event
function event(thread)
  one(thread)
  if ffi.C.access("{stop}", 0) == 0 then return true end
end
"""
# sysbench says what is wrong on standard output or on standard error. The script is constant, and the
# command comes as positional arguments, so no shell ever parses a user's string.
_HEARD = ("/bin/sh", "-c", 'exec "$@" 2>&1', "sh")
_PROGRESS = {"throughput_ops_per_s": Pattern(re.compile(r"^\[ [0-9.]+s \] .* tps: ([0-9.]+) "))}
_SECOND = Pattern(re.compile(r"^\[ ([0-9.]+)s \]"))
_BUCKET = re.compile(r"^ *([0-9.]+) \|[ *]* ([0-9]+)$", re.MULTILINE)
_TRANSACTIONS = re.compile(r"^ *transactions: +([0-9]+) ", re.MULTILINE)
_TIME = re.compile(r"^ *(?:total time|time elapsed): +([0-9.]+)s", re.MULTILINE)
_MEAN = re.compile(r"^ *avg: +([0-9.]+)", re.MULTILINE)
_MOST = re.compile(r"^ *max: +([0-9.]+)", re.MULTILINE)
_OUTPUT_BYTES_MAX = 16 << 20


class SysbenchOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[workload]` of kind "sysbench".

    Attributes:
        test: the transactions, by sysbench's own name.
        tables: the tables.
        rows: the rows of each table, of about 230 bytes.
        clients: the concurrent connections.
        distribution: how rows are drawn; "special" mostly draws a twentieth of them.
        rate_per_s: transactions that arrive a second at random times; latencies count from the arrival.
            None: each client begins one as soon as its last has ended.
        seed: the seed of random numbers.
        fill_limit: the fill is killed when it takes longer.
        overrun_limit: the load is killed when it runs so much longer than it should.
    """

    test: Literal[
        "oltp_read_write",
        "oltp_read_only",
        "oltp_write_only",
        "oltp_point_select",
        "oltp_update_index",
        "oltp_update_non_index",
        "oltp_insert",
        "oltp_delete",
        "select_random_points",
        "select_random_ranges",
    ] = "oltp_read_write"
    tables: int = 4
    rows: int = 100_000
    clients: int = 8
    distribution: Literal["uniform", "special", "pareto", "zipfian", "gaussian"] = "uniform"
    rate_per_s: int | None = None
    seed: int = 0
    fill_limit: str = "30 min"
    overrun_limit: str = "60 s"


class Sysbench:
    """The load.

    Args:
        options: the `[workload]` table without its kind.

    Raises:
        StudyError: a key is wrong.
        EnvironmentLacks: sysbench is not installed.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.options = convert(options, SysbenchOptions, "workload")
        check_limits("workload", self.options, _LIMITS)
        rate = self.options.rate_per_s
        if rate is not None and not 1 <= rate <= _RATE_MAX_PER_S:
            raise StudyError(f"workload.rate_per_s = {rate!r}: must be from 1 to {_RATE_MAX_PER_S}")
        self._fill_limit_s = duration("workload.fill_limit", self.options.fill_limit)
        self._overrun_limit_s = duration("workload.overrun_limit", self.options.overrun_limit)
        found = shutil.which("sysbench")
        if found is None:
            raise EnvironmentLacks("sysbench is not installed; install the package sysbench")
        self._program = found

    def describe(self) -> Mapping[str, Any]:
        """The version of sysbench, its options, and about how large the data is."""
        names = ("test", "tables", "rows", "clients", "distribution", "rate_per_s", "seed")
        return {
            "kind": "sysbench",
            "program": "sysbench",
            "version": _version(self._program),
            **{name: getattr(self.options, name) for name in names},
            "loop": loop_of(self.options.rate_per_s),
            "dataset_bytes": self.options.tables * self.options.rows * _BYTES_PER_ROW,
        }

    @property
    def reported(self) -> frozenset[str]:
        """Rates and latencies of transactions."""
        return REPORTED

    def prepare(self, workspace: Workspace) -> None:
        """Make the tables and their rows.

        Raises:
            StageFailed: the server refuses them, e.g. since the disk is full.
        """
        words = [self._program, self.options.test, *self._shared(workspace)]
        words += [f"--threads={min(self.options.tables, self.options.clients)}", "prepare"]
        self._run(Program("fill", [*_HEARD, *words], self._fill_limit_s), workspace, Harvest({}))

    def run(self, workspace: Workspace, pace: LoadTiming) -> Readings:
        """Do transactions.

        Raises:
            StageFailed: sysbench fails, e.g. since it cannot reach the server.
        """
        readings, enough = Harvest(_PROGRESS, time=_SECOND), False
        stop = workspace.directory / _STOP
        stop.unlink(missing_ok=True)
        script = workspace.directory / "sysbench.lua"
        script.write_text(_SCRIPT.format(test=self.options.test, stop=_STOP))
        script.chmod(0o644)
        said = bytearray()

        def hear(chunk: bytes, seconds: float) -> bool:
            nonlocal enough
            said.extend(chunk[: _OUTPUT_BYTES_MAX - len(said)])
            fresh = readings.feed(chunk, seconds)
            if fresh and not enough and pace.asks(seconds) and pace.may_end(readings.series()):
                enough = True
                stop.touch()
            return False

        given = self.options
        words = [self._program, str(script), *self._shared(workspace), f"--threads={given.clients}"]
        words += [f"--time={max(1, math.ceil(pace.load_max_s))}", "--events=0", "--histogram=on"]
        words += [f"--report-interval={max(1, round(pace.reading_s))}", f"--rand-seed={given.seed + 1}"]
        words += [f"--rand-type={given.distribution}", f"--rate={given.rate_per_s or 0}", "run"]
        program = Program("load", [*_HEARD, *words], pace.load_max_s + self._overrun_limit_s)
        self._run(program, workspace, readings, hear)
        metrics, load_s = _of_report(bytes(said).decode("utf-8", "replace"))
        return Readings(readings.series(), metrics, load_s, "enough" if enough else "time")

    def _shared(self, workspace: Workspace) -> list[str]:
        """The options of the fill and of the load."""
        known = workspace.environment
        if not {"MYSQL_UNIX_PORT", "MYSQL_HOST"} & known.keys():
            raise StageFailed(
                "load", "sysbench: the target has no MariaDB server; it needs target.kind = 'mariadb'"
            )
        if "MARIADB_DATABASE" not in known:
            raise StageFailed(
                "load",
                "sysbench: has tables of its own, which a server that people use has not; leave out "
                "target.server, or [workload], for its clients are the load, or name a command",
            )
        return [
            "--db-driver=mysql",
            f"--mysql-socket={known['MYSQL_UNIX_PORT']}",
            f"--mysql-user={known['MARIADB_USER']}",
            f"--mysql-db={known['MARIADB_DATABASE']}",
            f"--tables={self.options.tables}",
            f"--table-size={self.options.rows}",
        ]

    def _run(self, program: Program, workspace: Workspace, heard: Harvest, hear: Any = None) -> ProgramExit:
        """Run sysbench; its first complaint is why it failed."""
        ended = run_program(
            program, workspace, hear or (lambda chunk, seconds: heard.feed(chunk, seconds) and False)
        )
        if ended.status != 0:
            said = heard.tail()
            raise StageFailed(program.stage, f"sysbench: {_complaint(said)}", "\n".join(said))
        return ended


def _complaint(lines: Sequence[str]) -> str:
    fatal = [line.removeprefix("FATAL: ") for line in lines if line.startswith("FATAL: ")]
    return ((fatal or list(lines)[-1:]) or ["failed"])[0][:300]


def _of_report(text: str) -> tuple[dict[str, float], float]:
    """The metrics of all transactions, and their time.

    Raises:
        StageFailed: no transaction ended.
    """
    count, seconds = _number(_TRANSACTIONS, text), _number(_TIME, text)
    buckets = [(float(found[1]), int(found[2])) for found in _BUCKET.finditer(text)]
    if not count or not seconds or not buckets:
        raise StageFailed("load", "sysbench: no transaction ended", text[-2000:])
    metrics = {
        "operations": count,
        "throughput_ops_per_s": count / seconds,
        "latency_ms_mean": _number(_MEAN, text),
        **{f"latency_ms_{name}": _quantile(buckets, share) for name, share in SHARES},
        "latency_ms_max": _number(_MOST, text),
    }
    return metrics, seconds


def _quantile(buckets: Sequence[tuple[float, int]], share: float) -> float:
    wanted, seen = share * sum(count for _, count in buckets), 0
    for latency_ms, count in buckets:
        seen += count
        if seen >= wanted:
            return latency_ms
    return buckets[-1][0]


def _number(pattern: re.Pattern[str], text: str) -> float:
    found = pattern.search(text)
    return float(found[1]) if found else 0.0


@cache
def _version(program: str) -> str:
    return said_by(program, "--version").out.strip().removeprefix("sysbench ")
