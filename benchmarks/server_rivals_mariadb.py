"""MariaDB among rivals: sysbench's mixed transactions and writes, and the advice of MySQLTuner.

MySQLTuner is what Debian 12 packages as mysqltuner 1.9.9; it looks at a server that has just had the load.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import TYPE_CHECKING, Any, ClassVar

from ascar.systems.mariadb import MariaDB

from .server_rivals_testbed import CLIENTS, FillKept, RivalServer
from .server_rivals_turns import Contender

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ascar.space import Space, Value

    from .server_rivals_testbed import Scale, Testbed

MYSQLTUNER = "MySQLTuner"
_TABLES = 4
_BYTES_PER_ROW = 240
_LIMIT_S = 120.0
_ADJUST = "Variables to adjust:"
_LINE = re.compile(
    r"(?P<name>[a-z_]+) ?(?:should be )?(?:\((?P<in>[<>=~]+ ?[0-9.]+[KMG]?B?)\b[^)]*\)|= ?(?P<out>\w+))"
)
_VALUE = re.compile(r"(?P<sign>[<>=~]+) ?(?P<number>[0-9.]+)(?P<unit>[KMG]?)B?")
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}


class FilledMariaDB(FillKept, MariaDB):
    """MariaDB whose fill is kept for the next study."""

    kind = "mariadb-filled"


class RivalMariaDB(RivalServer):
    """MariaDB under transactions that read and write, and under writes alone."""

    name, kind, filled = "MariaDB", "mariadb", FilledMariaDB
    loads = ("mixed", "writes")
    # MySQLTuner divides by the size of a chunk, which MariaDB 10.11 has as 0, by itself, unless it is set.
    options: ClassVar[Mapping[str, Any]] = {
        "max_connections": 20,
        "settings": {"innodb_buffer_pool_chunk_size": "2M"},
    }

    def workload(self, load: str, scale: Scale, directory: Path) -> dict[str, Any]:  # noqa: ARG002 - no files
        """Sysbench on tables that both loads share."""
        rows = scale.data_mib * 2**20 // (_TABLES * _BYTES_PER_ROW)
        test = "oltp_read_write" if load == "mixed" else "oltp_write_only"
        return {"kind": "sysbench", "test": test, "tables": _TABLES, "rows": rows, "clients": CLIENTS}

    def ask(self, bed: Testbed, load: str) -> dict[str, Any] | None:
        """What MySQLTuner says of a server with the default configuration that has just had the load.

        Raises:
            RuntimeError: it is not installed, or fails.
        """
        program = shutil.which("mysqltuner")
        if program is None:
            raise RuntimeError("mysqltuner is missing: apt install mysqltuner")
        with bed.bench(load) as bench:
            trial = bench.attempt(bench.prepared.space.default())
            if trial.failure is not None:
                raise RuntimeError(trial.failure.message)
            socket = bench.prepared.target.workspace.environment["MYSQL_UNIX_PORT"]
            login = bed.directory / "mysqltuner.cnf"
            login.write_text(f"[client]\nuser = root\nsocket = {socket}\n")
            words = [program, "--nocolor", "--defaults-file", str(login), "--skippassword"]
            words += ["--forcemem", str(bed.scale.memory_mib), "--forceswap", "0"]
            done = subprocess.run(
                words, capture_output=True, text=True, check=False, timeout=_LIMIT_S, stdin=subprocess.DEVNULL
            )
        if done.returncode != 0:
            raise RuntimeError(f"mysqltuner: {(done.stderr or done.stdout).strip()[-300:]}")
        return {"lines": lines_of(done.stdout)}

    def advised(
        self,
        space: Space,
        scale: Scale,  # noqa: ARG002
        load: str,  # noqa: ARG002
        told: Mapping[str, Any] | None,
    ) -> list[Contender]:
        """MySQLTuner's advice, once it was asked."""
        if told is None:
            return []
        return [Contender.advised(MYSQLTUNER, space, advice_of(told["lines"], space.default()))]


def lines_of(said: str) -> list[str]:
    """The variables that MySQLTuner wants adjusted, a line each."""
    lines = said.partition(_ADJUST)[2].splitlines()
    return [line.strip() for line in lines if line.startswith("    ") and line.strip()]


def advice_of(lines: list[str], default: Mapping[str, Value]) -> dict[str, Value]:
    """The advice as values; `> X` is twice of it, as people who follow it go on until it says no more.

    Args:
        lines: as MySQLTuner prints them.
        default: the values in force; a line that cannot be read, or has no number, is left out.
    """
    advice: dict[str, Value] = {}
    for line in lines:
        found = _LINE.match(line)
        if found is None:
            continue
        name, text = found["name"], found["in"] or f"= {found['out']}"
        value = _VALUE.fullmatch(text.strip())
        if value is None:
            if found["out"] in ("ON", "OFF") and isinstance(default.get(name), bool):
                advice[name] = found["out"] == "ON"
            continue
        number = float(value["number"]) * _UNITS[value["unit"]]
        number *= 2 if value["sign"] == ">" else 1
        advice[name] = int(number)
    return advice
