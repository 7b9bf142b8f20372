"""An SQLite database and its pragmas: a storage system that needs no root to be tuned.

Each trial has a new database. The configuration is written to connect.sql beside it, one pragma a line, and a
load puts it in force when it connects (`sqlite3 -init connect.sql database.db` does so too).
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec

from ascar.errors import StageFailed, StudyError
from ascar.quoting import sql_word
from ascar.results.trial import Change
from ascar.space import ChangeCost, Guarantee, Space, boolean, categorical, ordinal
from ascar.study import convert
from ascar.systems import Sample, Target, sqlite_log
from ascar.systems.catalogue import KnownParameter, catalogue_of
from ascar.systems.counters import Counters, counter_names
from ascar.systems.dirty_pages import write_back_cycle_s
from ascar.systems.machine import backing_of, describe_machine, file_system_of
from ascar.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from types import TracebackType

    from ascar.space import Configuration, Value

CONNECT_FILE = "connect.sql"
_KIB = 1024
_MIB = 1024 * _KIB
_PAGE_BYTES, _CHECKPOINT_PAGES = 4096, 1000
"""What SQLite does unasked."""

# In the order in which they have to be given: the page size before the first page, the journal mode before
# what depends on it.
_ORDER = (
    "page_size_bytes",
    "auto_vacuum",
    "locking_mode",
    "journal_mode",
    "synchronous",
    "cache_size_kib",
    "mmap_size_bytes",
    "temp_store",
    "wal_autocheckpoint_pages",
    "cell_size_check",
)

# SQLite reads these back as numbers.
_WORDS = {
    "auto_vacuum": ("NONE", "FULL", "INCREMENTAL"),
    "synchronous": ("OFF", "NORMAL", "FULL", "EXTRA"),
    "temp_store": ("DEFAULT", "FILE", "MEMORY"),
}


def sqlite_space(*, exclusive: bool) -> Space:
    """The pragmas that make a difference to speed (sqlite.org/pragma.html), with SQLite's own defaults.

    With synchronous = FULL a commit is durable in every journal mode. NORMAL can lose the last commits in WAL
    mode and, on some file systems, damage the database in the others; OFF does both. A journal that is off or
    in memory cannot undo a transaction that a crash cut off.

    Args:
        exclusive: whether the application may be the only one to open the database.
    """
    modes = ("NORMAL", "EXCLUSIVE") if exclusive else ("NORMAL",)
    parameters = (
        ordinal(
            "page_size_bytes",
            (1024, 2048, 4096, 8192, 16384, 32768, 65536),
            default=4096,
            cost=ChangeCost.REFORMAT_RESTORE,
            unit="bytes",
            description="an existing database takes it at the next VACUUM",
            native="page_size",
        ),
        categorical(
            "auto_vacuum",
            ("NONE", "FULL", "INCREMENTAL"),
            default="NONE",
            cost=ChangeCost.REFORMAT_RESTORE,
            description="give pages back to the file system",
            native="auto_vacuum",
        ),
        categorical(
            "journal_mode",
            ("DELETE", "TRUNCATE", "PERSIST", "WAL", "MEMORY", "OFF"),
            default="DELETE",
            cost=ChangeCost.APP_RESTART,
            weaker={"MEMORY": ("durability", "consistency"), "OFF": ("durability", "consistency")},
            description="to and from WAL nobody else may have the database open",
            native="journal_mode",
        ),
        categorical(
            "synchronous",
            ("EXTRA", "FULL", "NORMAL", "OFF"),
            default="FULL",
            cost=ChangeCost.DYN_APP,
            weaker={"NORMAL": ("durability", "consistency"), "OFF": ("durability", "consistency")},
            description="when to wait for the disk",
            native="synchronous",
        ),
        ordinal(
            "cache_size_kib",
            (512, 2000, 8192, 32768, 131072),
            default=2000,
            cost=ChangeCost.DYN_APP,
            unit="KiB",
            description="pages in the application's memory",
            native="cache_size",
        ),
        ordinal(
            "mmap_size_bytes",
            (0, 16 * _MIB, 256 * _MIB),
            default=0,
            cost=ChangeCost.DYN_APP,
            special={0: "read without mapping"},
            unit="bytes",
            description="how much of the file is read through a memory map",
            native="mmap_size",
        ),
        categorical(
            "temp_store",
            ("DEFAULT", "FILE", "MEMORY"),
            default="DEFAULT",
            cost=ChangeCost.DYN_APP,
            description="where temporary tables and indexes lie",
            native="temp_store",
        ),
        categorical(
            "locking_mode",
            modes,
            default="NORMAL",
            cost=ChangeCost.APP_RESTART,
            description="EXCLUSIVE keeps every other connection out",
            native="locking_mode",
        ),
        ordinal(
            "wal_autocheckpoint_pages",
            (100, 1000, 4000, 16000),
            default=1000,
            cost=ChangeCost.DYN_APP,
            when='journal_mode == "WAL"',
            unit="pages",
            description="move the log into the database from so many pages on",
            native="wal_autocheckpoint",
        ),
        boolean(
            "cell_size_check",
            default=False,
            cost=ChangeCost.DYN_APP,
            description="look for damage in each page read",
            native="cell_size_check",
        ),
    )
    return Space(parameters, name="sqlite", allow_weaker=tuple(Guarantee))


_NATIVE = {one.name: one.native for one in sqlite_space(exclusive=True).parameters}


class SqliteOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[target]` of kind "sqlite".

    Attributes:
        directory: the directory in which a new directory is made for the database. None: ~/.cache/ascar.
        exclusive: whether the application may be the only one to open the database (locking_mode).
    """

    directory: str | None = None
    exclusive: bool = False


class SqliteDatabase(Target):
    """The target of kind "sqlite".

    Args:
        options: the `[target]` table without its kind.

    Raises:
        StudyError: a key is wrong.
    """

    default_workload: str | None = "sqlite-transactions"
    changes_while_working = frozenset()
    """A connection keeps what it began with; the load connects once a run."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.options = convert(options, SqliteOptions, "target")
        self.space = sqlite_space(exclusive=self.options.exclusive)
        self._directory = _directory(self.options)
        self._place: Path | None = None
        self._counters: Counters | None = None
        self._current: Configuration | None = None

    def __enter__(self) -> SqliteDatabase:
        """Make the directory.

        Raises:
            StudyError: it cannot be made.
        """
        key = f"target.directory = {self.options.directory!r}" if self.options.directory else "~/.cache/ascar"
        try:
            if self.options.directory is None:
                self._directory.mkdir(parents=True, exist_ok=True)
            self._place = Path(tempfile.mkdtemp(prefix="sqlite-", dir=self._directory))
        except OSError as error:
            raise StudyError(f"{key}: {error.strerror}; name a directory that you may write to") from error
        backing = backing_of(self._place)
        self._counters = Counters({} if backing is None else {"device": backing})
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove everything."""
        place, self._place, self._current = self._place, None, None
        if place is not None:
            shutil.rmtree(place, ignore_errors=True)

    def apply(self, configuration: Configuration) -> Change:
        """Make an empty workspace with the configuration in it.

        Raises:
            StageFailed: the old workspace cannot be removed or the new one not be made.
        """
        start_s = time.monotonic()
        before, self._current = self._current, None
        directory = self._entered() / "load"
        try:
            if directory.exists():
                shutil.rmtree(directory)
            directory.mkdir()
            (directory / CONNECT_FILE).write_text("".join(f"{line}\n" for line in _pragmas(configuration)))
        except OSError as error:
            raise StageFailed("change", f"{error.filename}: {error.strerror}") from error
        self._current = configuration
        difference = self.space.change(before or {}, configuration)
        return Change.of(difference, {"new database": time.monotonic() - start_s})

    def settle(self) -> Mapping[str, float]:
        """Write the files back and drop their pages from the cache.

        Raises:
            StageFailed: a file cannot be written back.
        """
        start_s = time.monotonic()
        try:
            for path in (self._entered() / "load").iterdir():
                if path.is_file():
                    with path.open("rb") as file:
                        os.fsync(file.fileno())
                        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        except OSError as error:
            raise StageFailed("settle", f"{error.filename}: {error.strerror}") from error
        return {"drop caches": time.monotonic() - start_s}

    @property
    def workspace(self) -> Workspace:
        """The directory of the database and of connect.sql."""
        return Workspace(self._entered() / "load")

    def read(self, names: Collection[str]) -> Mapping[str, Value]:
        """What SQLite says is in force on a connection that begins with connect.sql.

        Raises:
            StageFailed: SQLite does not take a pragma.
        """
        if self._current is None:
            return {}
        scratch = self._entered() / "read-back"
        try:
            scratch.mkdir()
            with closing(sqlite3.connect(scratch / "database.db")) as database:
                database.executescript((self._entered() / "load" / CONNECT_FILE).read_text())
                return {
                    name: _in_force(database, name, self._current[name])
                    for name in names
                    if name in self._current
                }
        except (OSError, sqlite3.Error) as error:
            raise StageFailed("change", f"{CONNECT_FILE}: {error}") from error
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    def sample(self) -> Sample:
        """The traffic of the disk below, processor time, stalls, energy; the write-ahead log."""
        assert self._counters is not None, "counters are those of the disk that entering finds"
        logs = list(sqlite_log.logs(self._entered() / "load"))
        return Sample(
            self._counters.read(),
            gauges={"wal_checkpoints": float(sum(map(sqlite_log.checkpoints, logs)))},
            deferred={"wal_bytes": float(sum(map(sqlite_log.pending_bytes, logs)))},
        )

    def drain(self, limit_s: float) -> None:
        """Move the write-ahead log into the database, and write the files back.

        Raises:
            StageFailed: that takes longer, or a program still uses the database.
        """
        sqlite_log.drain(self._entered() / "load", limit_s)

    def cycle_s(self, configuration: Configuration, metrics: Mapping[str, float]) -> float:
        """The time between checkpoints of the log, and the kernel's until write-back where nothing is synced.

        The time between checkpoints is that of the trial, or what it would have been for the log to grow long
        enough.
        """
        synced = configuration.get("synchronous") != "OFF"
        longest_s = 0.0 if synced else write_back_cycle_s(configuration)
        if configuration.get("journal_mode") != "WAL":
            return longest_s
        load_s, log_bytes = metrics.get("load_s", 0.0), metrics.get("deferred_wal_bytes", 0.0)
        if done := metrics.get("wal_checkpoints", 0.0):
            return max(longest_s, load_s / done)
        if not log_bytes:
            return longest_s
        pages = int(configuration.get("wal_autocheckpoint_pages", _CHECKPOINT_PAGES))
        page_bytes = int(configuration.get("page_size_bytes", _PAGE_BYTES))
        return max(longest_s, load_s * pages * page_bytes / log_bytes)

    @property
    def sampled(self) -> frozenset[str]:
        """The names of those counters, and that of the log's checkpoints."""
        return counter_names(("device",)) | {"wal_checkpoints"}

    def describe(self) -> Mapping[str, Any]:
        """What results are valid for."""
        place = self._entered()
        return {
            "target": "sqlite",
            **describe_machine(),
            "sqlite": sqlite3.sqlite_version,
            "device": {"name": backing_of(place), "file_system": file_system_of(place)},
            "exclusive": self.options.exclusive,
        }

    @classmethod
    def catalogue(cls, options: Mapping[str, Any]) -> Mapping[str, KnownParameter]:  # noqa: ARG003
        """The pragmas, those that need a database of its own among them."""
        return catalogue_of(sqlite_space(exclusive=True).parameters)

    def commands(self, configuration: Configuration, chosen: Collection[str]) -> Mapping[str, list[str]]:
        """The pragmas to give on every connection, for the sqlite3 shell or an application."""
        kept = {name: value for name, value in configuration.items() if name in chosen}
        return {"shell": _pragmas(kept)}

    def _entered(self) -> Path:
        assert self._place is not None, "a target is entered before it is used"
        return self._place


def _directory(options: SqliteOptions) -> Path:
    if options.directory is None:
        cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
        return Path(cache).expanduser().absolute() / "ascar"
    if not options.directory or "\0" in options.directory:
        raise StudyError(f"target.directory = {options.directory!r}: must be a path")
    path = Path(options.directory).expanduser().absolute()
    if not os.path.isdir(path):  # noqa: PTH112 - False where it may not even be looked at
        raise StudyError(
            f"target.directory = {options.directory!r}: is not a directory; make it, or leave it out"
        )
    return path


def _pragmas(configuration: Mapping[str, Value]) -> list[str]:
    """The configuration as pragmas, in the order in which SQLite needs them."""
    return [f"PRAGMA {_pragma(name, configuration[name])};" for name in _ORDER if name in configuration]


def _in_force(database: sqlite3.Connection, name: str, wanted: Value) -> Value:
    """A pragma's value as the space writes it."""
    row = cast("tuple[str | int]", database.execute(f"PRAGMA {_NATIVE[name]}").fetchone())
    (found,) = row
    words = _WORDS.get(name)
    if words is not None:
        return words[int(found)]
    if name == "cache_size_kib":
        return -int(found)
    if isinstance(wanted, bool):
        return bool(found)
    return found.upper() if isinstance(found, str) else found


def _pragma(name: str, value: Value) -> str:
    if name == "cache_size_kib":
        return f"cache_size = -{sql_word(value)}"  # negative: KiB instead of pages
    return f"{_NATIVE[name]} = {sql_word(int(value) if isinstance(value, bool) else value)}"
