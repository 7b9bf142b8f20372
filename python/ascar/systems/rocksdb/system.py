"""The target of kind "rocksdb".

[target]
kind = "rocksdb"
directory = "/data"        # default: the home of the account that runs db_bench, or /var/tmp
parameters = "expert"      # or "wide": every option that bears on speed
memory = "4 GiB"           # default: three quarters of the machine's
settings = { write_buffer_size = "128M" }      # how your database runs today: what the study starts from

Each trial opens a copy of the data as the load's fill left it.
"""

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from ascar.catalogues.rocksdb import VERSION_MIN, rocksdb
from ascar.program.rocksdb import RocksPrograms
from ascar.quoting import comment
from ascar.results.machine import Need
from ascar.study import convert
from ascar.systems import Sample, Starter
from ascar.systems.needs import found_by
from ascar.systems.own_server import ConfiguredKeys, ConfiguredTarget
from ascar.systems.program.foreground import MARK, ending_of, killed_first
from ascar.systems.rocksdb.database import RocksDatabase
from ascar.systems.rocksdb.event_log import events_of, log_bytes
from ascar.systems.rocksdb.options_file import options_lines
from ascar.systems.rocksdb.space import (
    BY_OTHERS,
    EXAMPLES,
    options_here,
    options_in_force,
    rocksdb_space,
)
from ascar.systems.starter import PLAIN

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from ascar.results.trial import Change
    from ascar.space import Configuration, Value
    from ascar.systems.keeper import Keeper
    from ascar.systems.own_server import Given
    from ascar.workspace import Workspace

_TOTALS = ("flushes", "flushed_bytes", "compactions", "compacted_bytes", "stalls")
_SETTLE_S = 600.0
_GRACE_S = 5.0


class RocksDBOptions(ConfiguredKeys, frozen=True, forbid_unknown_fields=True):
    """`[target]` of kind "rocksdb".

    Attributes:
        directory: the directory in which one is made for the database. None: the home of its account, or
            /var/tmp where it has none.
        parameters: "expert", about twenty options, or "wide", all that bear on speed.
        memory: the memory that memtables and block cache may come to use. None: memory_limit, or three
            quarters of the machine's.
        memory_limit: the memory and page cache that the load has once the database is filled, as in a
            container of that size: a control group, which takes root. None: the machine's.
        user: the account that runs db_bench. None: the caller's, or "nobody" where root calls.
        version: the major version to run. None: the one that is installed.
        settings: options as the database of today has them, by RocksDB's own names: the default of the study.
        data: each trial starts on the data that the fill left ("same").
    """

    data: Literal["same"] = "same"


class RocksDB(ConfiguredTarget[RocksDatabase]):
    """A RocksDB database of the study's own.

    Args:
        options: the `[target]` table without its kind.

    Raises:
        StudyError: a key is wrong.
        EnvironmentLacks: db_bench is not installed, or too old a version.
    """

    name, kind, account, socket = "RocksDB", "rocksdb", "nobody", None
    listed = staticmethod(rocksdb)
    told = frozenset(f"rocksdb_{name}" for name in _TOTALS)
    default_workload: str | None = "db_bench"
    starter = Starter(
        target={"parameters": '"expert"', "memory": '"1 GiB"'},
        shown={
            "memory_limit": '"2 GiB"',
            "user": '"nobody"',
            "version": "7",
            "settings": '{ write_buffer_size = "128M", compression = "kLZ4Compression" }',
        },
        space={**PLAIN, **EXAMPLES},
        workload=lambda: {"kind": '"db_bench"'},
    )
    asks_of_today = True
    changes_while_working = frozenset()
    """A database keeps the options that it is opened with; the load opens it once a run."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.options = convert(options, RocksDBOptions, "target")
        self._programs = RocksPrograms.find(self.options.version)
        self._programs.check_from("RocksDB", VERSION_MIN)
        here = tuple(options_here(self._programs.defaults()))
        super().__init__(self.options, here)
        self._putting_off = tuple(one for one in here if one.puts_off)
        self.space = rocksdb_space(self.options.parameters, here, self._given, self._memory_bytes)
        self._ending: list[str] | None = None

    def _taken(self, given: Mapping[str, Given]) -> dict[str, Given]:
        """What RocksDB makes of the options of today.

        Raises:
            StudyError: it does not take one as it is.
        """
        return options_in_force(self._programs, self._known, given) if given else {}

    @classmethod
    def for_session(cls, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """Nothing changes while a load has the database open."""
        return options

    def apply(self, configuration: Configuration) -> Change:
        """Put a configuration into an OPTIONS file, beside a database whose files are written as it says.

        Where no saved data has that layout, the database is empty, and is filled again.

        Raises:
            StageFailed: RocksDB refuses it.
        """
        whole = self._whole(configuration)
        layout = {one.parameter_name for one in rocksdb().values() if one.layout}
        self._entered().lay_out([f"{name}={whole[name]!r}" for name in sorted(layout & set(whole))])
        return super().apply(configuration)

    def _end_fill(self) -> None:
        self.drain(_SETTLE_S)

    def read(self, names: Collection[str]) -> Mapping[str, Value]:
        """What RocksDB says is in force in a database that is opened with the OPTIONS file."""
        return super().read([name for name in names if name not in BY_OTHERS])

    @property
    def workspace(self) -> Workspace:
        """A directory for the load, which ends with us, and has the memory limit once the data is there."""
        mark = secrets.token_hex(16)
        given = super().workspace

        def admit(pid: int) -> None:
            self._end_with_us(pid, mark)
            killed_first(pid)
            limit = self._entered().admit
            if limit is not None and self._entered().saved.exists():
                limit(pid)

        return replace(
            given,
            environment={**given.environment, MARK: mark},
            memory_bytes=self._limit_bytes,
            admit=admit,
        )

    def drain(self, limit_s: float) -> None:
        """Write memtables to files, and compact what the database of today would have compacted.

        Raises:
            StageFailed: it takes longer.
        """
        if self._current is None:
            return
        today = {one.parameter_name: self._before(one.name) for one in self._putting_off}
        lines = options_lines(self._programs, {**self._whole(self._current), **today})
        self._entered().catch_up(lines, self.workspace, limit_s)

    def cycle_s(self, configuration: Configuration, metrics: Mapping[str, float]) -> float:
        """The time until as many memtables are full as files of level 0 are compacted at once."""
        load_s = metrics.get("load_s", 0.0)
        written = metrics.get("rocksdb_flushed_bytes", 0.0) + metrics.get("deferred_wal_bytes", 0.0)
        if load_s <= 0 or written <= 0:
            return 0.0
        names = (
            "write_buffer_size",
            "min_write_buffer_number_to_merge",
            "level0_file_num_compaction_trigger",
        )
        full_bytes = 1.0
        for name in names:
            full_bytes *= float(configuration.get(name, self._before(name)))
        return load_s * full_bytes / written

    def describe(self) -> Mapping[str, Any]:
        """What results are valid for."""
        return {**super().describe(), "rocksdb": self._programs.version}

    def commands(self, configuration: Configuration, chosen: Collection[str]) -> Mapping[str, list[str]]:
        """The lines of an OPTIONS file, options of today among them; for a shell, comments of the chosen."""
        kept = {name: value for name, value in configuration.items() if name in chosen}
        if not kept:
            return {}
        today = {self._known[name].parameter_name: value for name, value in self._given.items()}
        lines = options_lines(self._programs, kept)
        told = [line.strip() for line in lines if "=" in line and "version=" not in line]
        return {
            "rocksdb-options": options_lines(self._programs, {**today, **kept}),
            "shell": [comment(f"open the database with {line} (--as rocksdb-options)") for line in told],
        }

    @classmethod
    def needs(cls) -> tuple[Need, ...]:
        """db_bench, which brings the library."""
        found = found_by(lambda: f"RocksDB {RocksPrograms.find().version}")
        packages = ("rocksdb-tools", "rocksdb-tools")
        return (Need("db_bench", "the database that is tuned, and the load", found, ("rocksdb",), *packages),)

    def _made(self, place: Path, keeper: Keeper) -> RocksDatabase:
        return RocksDatabase(self._programs, self._account, place, keeper)

    def _lines(self, configuration: Configuration) -> Sequence[str]:
        return options_lines(self._programs, self._whole(configuration))

    def _settings(self) -> Mapping[str, str]:
        return self._entered().in_force.values

    def _told(self) -> Sample:
        """What the LOG says, and what is not in files or in level 0 only."""
        database = self._entered().data
        found = events_of(database)
        counters = {name: float(getattr(found, name.removeprefix("rocksdb_"))) for name in self.told}
        deferred = {"wal_bytes": float(log_bytes(database)), "level0_files": float(found.level0_files or 0)}
        return Sample(counters, deferred=deferred)

    def _end_with_us(self, pid: int, mark: str) -> None:
        """Have a program ended that would go on when we are gone."""
        assert self._keeper is not None, "a target is entered before its load runs"
        before, self._ending = self._ending, ending_of(pid, mark, _GRACE_S)
        self._keeper.undo_command(self._ending, limit_s=2 * _GRACE_S)
        if before is not None:
            self._keeper.undo_forget(before)
