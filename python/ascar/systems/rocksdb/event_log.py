"""What RocksDB writes to its LOG: flushes, compactions, stalls, and the files of each level.

Lines with `EVENT_LOG_v1` hold JSON (RocksDB wiki, "Logging in RocksDB"). A new LOG begins whenever the
database is opened; the ones before are LOG.old.TIME, and stay.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from ascar import typed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_EVENT = "EVENT_LOG_v1 "
_STALL = ("Stalling writes because", "Stopping writes because")
_BYTES_MAX = 64 << 20
_BEGUN, _ENDED = "flush_started", ("flush_finished", "compaction_finished")


class _LogEvent(msgspec.Struct, frozen=True):
    event: str = ""
    lsm_state: tuple[int, ...] = ()
    total_data_size: int = 0
    total_output_size: int = 0


@dataclass(slots=True)
class DatabaseEvents:
    """What happened in a database.

    Attributes:
        flushes: memtables that were flushed.
        flushed_bytes: their keys and values.
        compactions: compactions that ended.
        compacted_bytes: what they wrote.
        stalls: how often writes were slowed down or stopped.
        level0_files: the files of level 0 after the last flush or compaction. None: there was neither.
    """

    flushes: int = 0
    flushed_bytes: int = 0
    compactions: int = 0
    compacted_bytes: int = 0
    stalls: int = 0
    level0_files: int | None = None

    def hear(self, line: str) -> None:
        """Take a line; what is none of the above is passed over."""
        if any(word in line for word in _STALL):
            self.stalls += 1
        _, mark, text = line.partition(_EVENT)
        if not mark:
            return
        with suppress(msgspec.MsgspecError, UnicodeError):
            self._take(typed.decode(text.encode(), _LogEvent))

    def _take(self, told: _LogEvent) -> None:
        if told.event == _BEGUN:
            self.flushes += 1
            self.flushed_bytes += max(0, told.total_data_size)
        elif told.event in _ENDED:
            if told.lsm_state:
                self.level0_files = max(0, told.lsm_state[0])
            if told.event == "compaction_finished":
                self.compactions += 1
                self.compacted_bytes += max(0, told.total_output_size)


def events_of(database: Path) -> DatabaseEvents:
    """All that happened in a database, the oldest first."""
    found = DatabaseEvents()
    with suppress(OSError):
        for path in [*sorted(database.glob("LOG.old.*")), database / "LOG"]:
            for line in _lines(path):
                found.hear(line)
    return found


def log_bytes(database: Path) -> int:
    """The size of the logs of writes that are not in files yet."""
    total = 0
    with suppress(OSError):
        for path in database.glob("*.log"):
            with suppress(OSError):
                total += path.stat().st_size
    return total


def _lines(path: Path) -> Iterator[str]:
    with suppress(OSError), path.open("rb") as file:
        yield from file.read(_BYTES_MAX).decode("utf-8", "replace").splitlines()
