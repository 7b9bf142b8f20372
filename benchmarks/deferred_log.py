"""Transactions on an SQLite database that is much larger than its log: few pages change twice in a cycle.

    python benchmarks/deferred_log.py DIRECTORY fill
    python benchmarks/deferred_log.py DIRECTORY SECONDS

Each changes eight rows at random and commits. It ends as a service does that is killed: the log stays.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from pathlib import Path

from ascar.workloads.sqlite_load import connect

ROWS, ROW_BYTES, CHANGES, READING_S = 100_000, 2000, 8, 1.0


def main() -> None:
    """Fill the database, or run."""
    directory, what = sys.argv[1:]
    chance = random.Random(1)
    database = connect(Path(directory) / "database.db")
    if what == "fill":
        database.execute("BEGIN")
        database.execute("CREATE TABLE item (id INTEGER PRIMARY KEY, value BLOB NOT NULL)")
        database.executemany(
            "INSERT INTO item (value) VALUES (?)", ((chance.randbytes(ROW_BYTES),) for _ in range(ROWS))
        )
        database.execute("COMMIT")
        database.close()
        return
    start_s = now_s = last_s = time.monotonic()
    done = 0
    while now_s < start_s + float(what):
        database.execute("BEGIN IMMEDIATE")
        for _ in range(CHANGES):
            value, row = chance.randbytes(ROW_BYTES), chance.randint(1, ROWS)
            database.execute("UPDATE item SET value = ? WHERE id = ?", (value, row))
        database.execute("COMMIT")
        done += 1
        now_s = time.monotonic()
        if now_s >= last_s + READING_S:
            # A stall counts as long as it lasts: a line for each second of it.
            for _ in range(round((now_s - last_s) / READING_S)):
                print(json.dumps({"throughput_ops_per_s": done / (now_s - last_s)}), flush=True)
            last_s, done = now_s, 0
    os._exit(0)


if __name__ == "__main__":
    main()
