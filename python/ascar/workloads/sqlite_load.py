"""A small transactional load on an SQLite database, as a program of its own.

    python -m ascar.workloads.sqlite_load --database FILE fill --rows 20000
    python -m ascar.workloads.sqlite_load --database FILE run --seconds 4 --reading 0.25

Each transaction reads some rows, rewrites some, replaces the oldest by a new one, and commits. `run` prints a
line of JSON a reading, and one more at the end with what holds for the whole run; SIGINT ends it early. The
pragmas that the file connect.sql beside the database names are in force on the connection.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import sqlite3
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType

CONNECT_FILE = "connect.sql"
_PRAGMA = re.compile(r"PRAGMA ([a-z_]+) = (-?[A-Za-z0-9_]+);")
_VALUE_BYTES = 200
_OWNERS = 1000
_READS = 4
_WRITES = 4
_LATENCIES_MAX = 1_000_000


def connect(database: Path) -> sqlite3.Connection:
    """A connection with the pragmas of the connect.sql beside the database.

    Raises:
        ValueError: a line of it is not a pragma.
    """
    connection = sqlite3.connect(database, isolation_level=None, timeout=30)
    pragmas = database.parent / CONNECT_FILE
    lines = pragmas.read_text("ascii").splitlines() if pragmas.exists() else []
    for line in lines:
        if not _PRAGMA.fullmatch(line):
            raise ValueError(
                f"{pragmas}: {line[:80]!r} is not a pragma; write e.g. 'PRAGMA synchronous = FULL;'"
            )
        connection.execute(line)
    return connection


def fill(connection: sqlite3.Connection, rows: int, seed: int) -> None:
    """Make the table with so many rows."""
    chance = random.Random(seed)  # noqa: S311 - reproducible, not secret
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(
        "CREATE TABLE item (id INTEGER PRIMARY KEY, owner INTEGER NOT NULL, value BLOB NOT NULL)"
    )
    connection.executemany(
        "INSERT INTO item (owner, value) VALUES (?, ?)",
        ((chance.randrange(_OWNERS), chance.randbytes(_VALUE_BYTES)) for _ in range(rows)),
    )
    connection.execute("CREATE INDEX item_owner ON item (owner)")
    connection.execute("COMMIT")


@dataclass(slots=True)
class _Tally:
    """Transactions since some instant."""

    start_s: float
    latencies_s: list[float] = field(default_factory=list[float])
    count: int = 0

    def add(self, latency_s: float) -> None:
        self.count += 1
        if len(self.latencies_s) < _LATENCIES_MAX:
            self.latencies_s.append(latency_s)

    def report(self, now_s: float) -> dict[str, float]:
        """Throughput and latencies until now."""
        ordered = sorted(self.latencies_s)
        told = {"throughput_ops_per_s": self.count / (now_s - self.start_s)}
        if ordered:
            told["latency_ms_mean"] = 1000 * sum(ordered) / len(ordered)
            for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("p999", 0.999), ("max", 1.0)):
                rank = max(0, min(len(ordered) - 1, int(share * len(ordered))))
                told[f"latency_ms_{name}"] = 1000 * ordered[rank]
        return told


class _Ends:
    """Whether somebody asked for the end."""

    asked = False

    def __call__(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        self.asked = True


def run(connection: sqlite3.Connection, seconds: float, reading_s: float, seed: int) -> None:
    """Do transactions for so many seconds, and print what they come to."""
    ends = _Ends()
    signal.signal(signal.SIGINT, ends)
    chance = random.Random(seed)  # noqa: S311 - reproducible, not secret
    oldest, newest = connection.execute("SELECT min(id), max(id) FROM item").fetchone()
    start_s = now_s = time.monotonic()
    whole, recent = _Tally(start_s), _Tally(start_s)
    while now_s < start_s + seconds and not ends.asked:
        began_s = now_s
        _transaction(connection, chance, oldest, newest)
        oldest, newest = oldest + 1, newest + 1
        now_s = time.monotonic()
        whole.add(now_s - began_s)
        recent.add(now_s - began_s)
        if now_s >= recent.start_s + reading_s:
            for at_s in _instants(recent.start_s, now_s, reading_s):
                _say({"second": at_s - start_s, "reading": recent.report(now_s)})
            recent = _Tally(now_s)
    if whole.count:
        _say({"whole": {**whole.report(now_s), "operations": whole.count}})


def _instants(start_s: float, end_s: float, reading_s: float) -> list[float]:
    """When the readings of some time ended: a transaction that stalls counts for as long as it does."""
    count = max(1, round((end_s - start_s) / reading_s))
    return [start_s + (end_s - start_s) * at / count for at in range(1, count + 1)]


def _transaction(connection: sqlite3.Connection, chance: random.Random, oldest: int, newest: int) -> None:
    """One transaction on the rows with ids from `oldest` to `newest`; both move on by one."""
    execute = connection.execute
    execute("BEGIN IMMEDIATE")
    for _ in range(_READS):
        owner = chance.randrange(_OWNERS)
        execute("SELECT count(*), max(length(value)) FROM item WHERE owner = ?", (owner,)).fetchone()
    for _ in range(_WRITES):
        value = chance.randbytes(_VALUE_BYTES)
        execute("UPDATE item SET value = ? WHERE id = ?", (value, chance.randint(oldest, newest)))
    row = (newest + 1, chance.randrange(_OWNERS), chance.randbytes(_VALUE_BYTES))
    execute("INSERT INTO item (id, owner, value) VALUES (?, ?, ?)", row)
    execute("DELETE FROM item WHERE id = ?", (oldest,))
    execute("COMMIT")


def _say(document: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(document) + "\n")
    sys.stdout.flush()


def main(arguments: Sequence[str] | None = None) -> int:
    """The program."""
    parser = argparse.ArgumentParser(
        prog="sqlite_load", description=__doc__.splitlines()[0] if __doc__ else ""
    )
    parser.add_argument("--database", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    commands = parser.add_subparsers(dest="command", required=True)
    filling = commands.add_parser("fill")
    filling.add_argument("--rows", type=int, required=True)
    running = commands.add_parser("run")
    running.add_argument("--seconds", type=float, required=True)
    running.add_argument("--reading", type=float, required=True)
    given = parser.parse_args(arguments)
    try:
        connection = connect(given.database)
        try:
            if given.command == "fill":
                fill(connection, given.rows, given.seed)
            else:
                run(connection, given.seconds, given.reading, given.seed)
                # As if it went on: closing would move a write-ahead log into the database, in nobody's time.
                os._exit(0)
        finally:
            connection.close()
    except (sqlite3.Error, OSError, ValueError, TypeError) as error:
        sys.stderr.write(f"sqlite_load: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
