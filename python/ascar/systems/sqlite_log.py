"""The write-ahead logs of SQLite databases: what is not yet in the database, and how often it was moved.

Of the log's header are read the page size, the number of checkpoints after which the log began anew, and
the salts, which frames of this round share (sqlite.org/fileformat2.html, section 4.1); of the index beside
it, how many frames are in the database already (walformat.html, section 2.1).
"""

from __future__ import annotations

import os
import sqlite3
import struct
import threading
from contextlib import closing
from typing import TYPE_CHECKING

from ascar.errors import StageFailed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_HEADER = struct.Struct(">8x4sI8s8x")
_FRAME = struct.Struct(">8x8s8x")
_FRAMES_DONE_AT = 96  # nBackfill in the index, in the machine's byte order
_SUFFIX = "-wal"


def logs(directory: Path) -> Iterator[Path]:
    """The logs of the databases of a directory."""
    return directory.glob(f"*{_SUFFIX}")


def pending_bytes(log: Path) -> int:
    """Bytes of pages that the next checkpoint has to move; 0 where there is no log."""
    try:
        with log.open("rb", buffering=0) as file:
            header = file.read(_HEADER.size)
            if len(header) < _HEADER.size:
                return 0
            page, _, salts = _HEADER.unpack(header)
            page_bytes = int.from_bytes(page, "big")
            frames = _frames(file.fileno(), page_bytes, salts)
    except OSError:
        return 0
    return max(0, frames - _frames_done(log)) * page_bytes


def checkpoints(log: Path) -> int:
    """How often the log was moved into the database and began anew; 0 where there is none."""
    try:
        with log.open("rb") as file:
            header = file.read(_HEADER.size)
    except OSError:
        return 0
    return int(_HEADER.unpack(header)[1]) if len(header) == _HEADER.size else 0


def drain(directory: Path, limit_s: float) -> None:
    """Move every log into its database, and write all files of the directory back.

    Raises:
        StageFailed: it takes longer, a database is in use, or a file cannot be written.
    """
    failed: list[Exception] = []

    def work() -> None:
        try:
            for log in sorted(logs(directory)):
                _checkpoint(log.with_name(log.name.removesuffix(_SUFFIX)), limit_s)
            for path in directory.iterdir():
                if path.is_file():
                    with path.open("rb") as file:
                        os.fsync(file.fileno())
        except (OSError, sqlite3.Error, StageFailed) as error:
            failed.append(error)

    # Neither a checkpoint nor an fsync can be interrupted: what takes too long is left to itself.
    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    worker.join(limit_s)
    if worker.is_alive():
        raise StageFailed("drain", f"the checkpoint and the write-back did not end within {limit_s:g} s")
    for error in failed:
        raise error if isinstance(error, StageFailed) else StageFailed("drain", str(error)) from error


def _checkpoint(database: Path, limit_s: float) -> None:
    with closing(sqlite3.connect(database, timeout=limit_s)) as connection:
        busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    if busy:
        raise StageFailed("drain", f"{database.name}: another program uses it, so that its log stays")


def _frames(file: int, page_bytes: int, salts: bytes) -> int:
    """Frames from the start of the log that belong to its present round."""
    frames, at = 0, _HEADER.size
    while page_bytes:
        frame = os.pread(file, _FRAME.size, at)
        if len(frame) < _FRAME.size or _FRAME.unpack(frame)[0] != salts:
            break
        frames, at = frames + 1, at + _FRAME.size + page_bytes
    return frames


def _frames_done(log: Path) -> int:
    """Frames that are in the database already; 0 without an index, as in exclusive locking."""
    index = log.with_name(log.name.removesuffix(_SUFFIX) + "-shm")
    try:
        with index.open("rb") as file:
            file.seek(_FRAMES_DONE_AT)
            found = file.read(4)
    except OSError:
        return 0
    return int(struct.unpack("=I", found)[0]) if len(found) == 4 else 0
