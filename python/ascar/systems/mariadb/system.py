"""The target of kind "mariadb".

[target]
kind = "mariadb"
directory = "/data"        # default: the home of the account that runs the server, or /var/tmp
parameters = "expert"      # or "wide": every setting that bears on speed
memory = "4 GiB"           # default: three quarters of the machine's
max_connections = 151
settings = { innodb_buffer_pool_size = "1G" }      # how your server runs today: what the study starts from

Each trial starts a server of its own on a copy of the data as the load's fill left it.
"""

from __future__ import annotations

import resource
import shutil
from typing import TYPE_CHECKING, Any

from ascar.catalogues.advice import advised_values
from ascar.catalogues.mariadb import VERSION_MIN, mariadb
from ascar.errors import StudyError
from ascar.program.mariadb import MariaPrograms
from ascar.results.machine import Need
from ascar.study import convert
from ascar.systems import Sample, Starter
from ascar.systems.mariadb.counters import TOLD, checkpoint_cycle_s, counters_of, deferred_of, gauges_of
from ascar.systems.mariadb.server import SOCKET, MariaServer
from ascar.systems.mariadb.space import (
    BY_FILE_SYSTEM,
    EXAMPLES,
    mariadb_space,
    settings_here,
    settings_in_force,
)
from ascar.systems.mariadb.statements import forms_of, settings_of, statements_of
from ascar.systems.needs import found_by
from ascar.systems.own_server import ConfiguredKeys, ConfiguredTarget
from ascar.systems.starter import PLAIN

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from ascar.space import Configuration, Value
    from ascar.systems import System
    from ascar.systems.keeper import Keeper
    from ascar.systems.own_server import Given

_CONNECTIONS_MAX = 10_000
_POOL, _CHUNK = "innodb_buffer_pool_size", "innodb_buffer_pool_chunk_size"
_SETTLE_S = 600.0


class MariaDBOptions(ConfiguredKeys, frozen=True, forbid_unknown_fields=True):
    """`[target]` of kind "mariadb".

    Attributes:
        directory: the directory in which one is made for the server. None: the home of its account, or
            /var/tmp where it has none.
        parameters: "expert", about twenty settings, or "wide", all that bear on speed.
        memory: the memory that the server may come to use. None: memory_limit, or three quarters of the
            machine's.
        memory_limit: the memory and page cache that the server has once it is filled, as in a container of
            that size: a control group, which takes root. None: the machine's.
        user: the account that runs the server. None: the caller's, or "mysql" where root calls.
        version: the major version to run. None: the one that is installed.
        settings: settings as the server of today has them, by its own names: the default of the study.
        data: whether each trial starts on the data that the fill left ("same"), or on what the trial before
            left ("kept"), where SET GLOBAL does without a new start.
        max_connections: the connections that the server takes.
        binary_log: whether the server keeps a binary log, as one with replicas does.
    """

    max_connections: int = 151
    binary_log: bool = False


class MariaDB(ConfiguredTarget[MariaServer]):
    """A MariaDB server of the study's own.

    Args:
        options: the `[target]` table without its kind.

    Raises:
        StudyError: a key is wrong.
        EnvironmentLacks: MariaDB is not installed, or too old a version.
    """

    name, kind, account, socket = "MariaDB", "mariadb", "mysql", SOCKET
    data_file = "ibdata1"
    listed = staticmethod(mariadb)
    told = TOLD
    default_workload: str | None = "sysbench"
    starter = Starter(
        target={"parameters": '"expert"', "memory": '"1 GiB"'},
        shown={
            "memory_limit": '"2 GiB"',
            "user": '"mysql"',
            "version": "10",
            "settings": '{ innodb_buffer_pool_size = "1G", innodb_flush_method = "fsync" }',
        },
        space={**PLAIN, **EXAMPLES},
        workload=lambda: {"kind": '"sysbench"'},
        online={"server": "existing"},
    )
    asks_of_today = True

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.options = convert(options, MariaDBOptions, "target")
        given = self.options
        if not 10 <= given.max_connections <= _CONNECTIONS_MAX:
            raise StudyError(
                f"target.max_connections = {given.max_connections}: must be from 10 to {_CONNECTIONS_MAX}"
            )
        self._programs = MariaPrograms.find(self.options.version)
        self._programs.check_from("MariaDB", VERSION_MIN)
        known = tuple(settings_here(self._programs, given.max_connections, binary_log=given.binary_log))
        super().__init__(self.options, known)
        self.advice = advised_values(known, self._memory_bytes)
        self.space = mariadb_space(
            given.parameters,
            known,
            self._given,
            given.max_connections,
            self._memory_bytes,
            files=_files_max(),
        )

    def _taken(self, given: Mapping[str, Given]) -> dict[str, Given]:
        """What the installed server makes of the settings of today.

        Raises:
            StudyError: it does not take one as it is.
        """
        if not given:
            return {}
        return settings_in_force(self._programs, self.options.max_connections, self._known, given)

    @classmethod
    def variant(cls, options: Mapping[str, Any]) -> type[System]:
        """A server that people use is tuned in another way."""
        if "server" not in options:
            return cls
        from ascar.systems.mariadb.existing import ExistingMariaDB

        return ExistingMariaDB

    def _end_fill(self) -> None:
        self.drain(_SETTLE_S)

    def read(self, names: Collection[str]) -> Mapping[str, Value]:
        """What the server says is in force; a file system that needs a cache decides of that by itself.

        Raises:
            StageFailed: the server does not answer.
        """
        return super().read([name for name in names if name not in BY_FILE_SYSTEM])

    def _told(self) -> Sample:
        """The server's status, and the work that InnoDB has put off."""
        status = self._entered().status()
        return Sample(counters_of(status), gauges_of(status), deferred_of(status))

    def drain(self, limit_s: float) -> None:
        """Remove the versions of rows that nobody needs, and make a checkpoint.

        Raises:
            StageFailed: it takes longer.
        """
        self._entered().catch_up(limit_s)

    def cycle_s(self, configuration: Configuration, metrics: Mapping[str, float]) -> float:
        """The time until the redo log is full, when a checkpoint is made at the latest."""
        return checkpoint_cycle_s(configuration, metrics, float(self._before("innodb_log_file_size")))

    def describe(self) -> Mapping[str, Any]:
        """What results are valid for."""
        return {
            **super().describe(),
            "mariadb": self._programs.version,
            "max_connections": self.options.max_connections,
            "binary_log": self.options.binary_log,
        }

    def commands(self, configuration: Configuration, chosen: Collection[str]) -> Mapping[str, list[str]]:
        """The lines of my.cnf, the statements, and the commands that give these."""
        return forms_of(configuration, chosen)

    @classmethod
    def needs(cls) -> tuple[Need, ...]:
        """The server, and a benchmark."""
        found = found_by(lambda: f"MariaDB {MariaPrograms.find().version}")
        packages = ("mariadb-server", "mariadb-server")
        load = ("sysbench", "sysbench")
        return (
            Need("mariadb", "the server that is tuned", found, ("mariadb",), *packages),
            Need("sysbench", "the load", shutil.which("sysbench"), ("mariadb",), *load),
        )

    def _made(self, place: Path, keeper: Keeper) -> MariaServer:
        fixed = [f"max_connections = {self.options.max_connections}"]
        if self.options.binary_log:
            fixed.append("log_bin = binlog")
        return MariaServer(self._programs, self._account, place, keeper, fixed)

    def _lines(self, configuration: Configuration) -> Sequence[str]:
        return settings_of(self._whole(configuration))

    def _settings(self) -> Mapping[str, str]:
        """What the server says; before 10.11.12 its buffer pool has whole chunks (buf_pool_size_align)."""
        told, wanted = self._entered().settings(), (self._current or {}).get(_POOL)
        chunk = told.get(_CHUNK, "")
        if isinstance(wanted, int) and chunk.isdigit() and int(chunk):
            whole = -(-wanted // int(chunk)) * int(chunk)
            if told.get(_POOL) == str(whole):
                return {**told, _POOL: str(wanted)}
        return told

    def _set(self, before: Configuration, after: Configuration) -> None:
        """Change what differs, statement by statement."""
        changed = self._changed(before, after)
        if changed:
            self._entered().ask(" ".join(statements_of(changed, before)))


def _files_max() -> int | None:
    """The files that the server may open, who gets no more than we; None: as many as it wants."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return None if most == resource.RLIM_INFINITY else most
