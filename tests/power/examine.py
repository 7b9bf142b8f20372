"""Prints as JSON how the guest stands: what is left of a study or a session, and what its history says."""

import hashlib
import json
import sqlite3
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path

from ascar.errors import AscarError
from ascar.history import History

DISK = Path("/mnt")
KNOBS = (
    *("vm/dirty_ratio", "vm/dirty_background_ratio", "vm/dirty_expire_centisecs", "vm/vfs_cache_pressure"),
    *("vm/page-cluster", "vm/swappiness"),
)
OWN_PROCESSES = {"ascar", "ascard", "fio", "load.sh", "nats-server"}


def machine() -> dict[str, object]:
    """Knobs, mounts, loops, cgroups, processes, the user's files, journals."""
    loops = subprocess.run(["losetup", "--all", "--noheadings"], capture_output=True, text=True, check=True)
    mounts = Path("/proc/mounts").read_text().splitlines()
    processes: list[str] = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            processes.append(entry.read_text().replace("\0", " "))
    return {
        "knobs": {name: Path("/proc/sys", name).read_text() for name in KNOBS},
        "mounts": sorted(line.split()[1] for line in mounts),
        "loops": loops.stdout,
        "cgroups": sorted(str(path) for path in Path("/sys/fs/cgroup").glob("**/ascar*/")),
        "processes": [
            one for one in processes if OWN_PROCESSES & {Path(word).name for word in one.split(" ")}
        ],
        "files": {
            str(path): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted((DISK / "work").rglob("*"))
            if path.is_file()
        },
        "journals": sorted(
            str(path)
            for folder in ("lib/ascar/journal", "home/.local/state/ascar/journal")
            for path in (DISK / folder).glob("*.jsonl")
        ),
    }


def trials() -> list[list[object]]:
    """Run, number, and state of each trial, read as ascar reads them; a complete one has its score."""
    file = DISK / "history" / "history.sqlite"
    if not file.exists():
        return []
    found: list[list[object]] = []
    try:
        with History(file) as history:
            for listed in history.runs():
                for trial in history.run(listed.id).trials():
                    whole = trial.state != "complete" or trial.score is not None
                    state = trial.state.value if whole else "without a score"
                    found.append([listed.id, trial.number, state])
        check(file)
    except (AscarError, sqlite3.Error) as error:
        return [[0, 0, f"damaged: {error}"]]
    return found


def ticks() -> list[object]:
    """The ticks in the replay database."""
    file = DISK / "session" / "replay.sqlite"
    if not file.exists():
        return []
    try:
        check(file)
        with closing(sqlite3.connect(file)) as database:
            return [row[0] for row in database.execute("SELECT DISTINCT tick FROM metrics")]
    except sqlite3.Error as error:
        return [f"damaged: {error}"]


def check(file: Path) -> None:
    """See that a database is whole."""
    with closing(sqlite3.connect(file)) as database:
        (said,) = database.execute("PRAGMA integrity_check").fetchone()
    if said != "ok":
        raise sqlite3.DatabaseError(said)


document = {"machine": machine(), "trials": trials(), "ticks": ticks()}
sys.stdout.write(f"examined {json.dumps(document)}\n")
