"""The target of kind "postgresql".

[target]
kind = "postgresql"
directory = "/data"        # default: the home of the account that runs the server
parameters = "expert"      # or "wide": every setting that bears on speed
memory = "4 GiB"           # default: three quarters of the machine's

Each trial starts a server of its own on a copy of the data directory as the load's fill left it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from ascar.catalogues.postgresql import postgresql
from ascar.errors import EnvironmentLacks, StageFailed, StudyError
from ascar.program.postgresql import Account, Programs
from ascar.results.machine import Need
from ascar.results.trial import Change
from ascar.space import ChangeCost
from ascar.study import convert
from ascar.systems import Sample, Starter, Target
from ascar.systems.catalogue import KnownParameter, catalogue_of
from ascar.systems.counters import Counters, counter_names
from ascar.systems.keeper import Keeper
from ascar.systems.machine import backing_of, describe_machine, file_system_of
from ascar.systems.postgresql import counters as statistics
from ascar.systems.postgresql.reading import IN_FORCE, read_back
from ascar.systems.postgresql.server import DATABASE, ROLE, PostgresServer
from ascar.systems.postgresql.server_facts import VERSION_MIN
from ascar.systems.postgresql.space import memory_of, postgresql_space
from ascar.systems.postgresql.statements import forms_of, settings_of
from ascar.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from types import TracebackType

    from ascar.space import Configuration, Value
    from ascar.systems import System

_CONNECTIONS_MAX = 10_000
_DIRECTORY_MAX = 107 - len("/ascar-12345678/.s.PGSQL.5432")
_START_S = 120.0


class PostgreSQLOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[target]` of kind "postgresql".

    Attributes:
        directory: the directory in which one is made for the server. None: the home of its account.
        parameters: "expert", about twenty settings, or "wide", all that bear on speed.
        memory: the memory that the server may come to use. None: three quarters of the machine's.
        max_connections: the connections that the server takes.
        user: the account that runs the server. None: the caller's, or "postgres" where root calls.
        version: the major version to run. None: the newest one that is installed.
    """

    directory: str | None = None
    parameters: Literal["expert", "wide"] = "expert"
    memory: str | None = None
    max_connections: int = 100
    user: str | None = None
    version: int | None = None


class PostgreSQL(Target):
    """A PostgreSQL server of the study's own.

    Args:
        options: the `[target]` table without its kind.

    Raises:
        StudyError: a key is wrong.
        EnvironmentLacks: PostgreSQL is not installed.
    """

    default_workload: str | None = "pgbench"
    changes_while_working = frozenset({ChangeCost.DYN_APP})
    starter = Starter(target={"parameters": '"expert"', "memory": '"1 GiB"'}, online={"server": "existing"})

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.options = convert(options, PostgreSQLOptions, "target")
        if not 10 <= self.options.max_connections <= _CONNECTIONS_MAX:
            raise StudyError(
                f"target.max_connections = {self.options.max_connections}: "
                f"must be from 10 to {_CONNECTIONS_MAX}"
            )
        self._account = Account.of(self.options.user)
        self._programs = Programs.find(self.options.version)
        if self._programs.major < VERSION_MIN:
            raise EnvironmentLacks(
                f"PostgreSQL {self._programs.version} is too old; ascar tunes versions from {VERSION_MIN} on"
            )
        self.space = postgresql_space(
            self.options.parameters,
            self._programs.settings(),
            self.options.max_connections,
            self._memory_bytes(),
        )
        self._directory = self._checked_directory()
        self._keeper: Keeper | None = None
        self._server: PostgresServer | None = None
        self._counters: Counters | None = None
        self._current: Configuration | None = None

    def __enter__(self) -> PostgreSQL:
        """Make the directory.

        Raises:
            StudyError: it cannot be made, or its path is too long for a socket.
        """
        key = f"target.directory = {str(self._directory)!r}"
        if len(os.fsencode(self._directory)) > _DIRECTORY_MAX:
            raise StudyError(f"{key}: the path is too long for a socket; name a shorter one")
        try:
            place = Path(tempfile.mkdtemp(prefix="ascar-", dir=self._directory))
        except OSError as error:
            raise StudyError(f"{key}: {error.strerror}; name a directory that you may write to") from error
        try:
            self._keeper = Keeper("postgresql", user=True).start()
            self._keeper.undo_command(self._removal(place))
            (place / "load").mkdir()
            for path in (place, place / "load"):
                os.chown(path, self._account.uid, self._account.gid)
            self._server = PostgresServer(self._programs, self._account, place, self._keeper)
        except BaseException:
            self._close()
            shutil.rmtree(place, ignore_errors=True)
            raise
        backing = backing_of(place)
        self._counters = Counters({} if backing is None else {"device": backing})
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the server, and remove everything."""
        server, self._server, self._current = self._server, None, None
        try:
            if server is not None:
                server.stop()
                shutil.rmtree(server.place, ignore_errors=True)
                if self._keeper is not None and not server.place.exists():
                    self._keeper.undo_forget(self._removal(server.place))
        finally:
            self._close()

    def apply(self, configuration: Configuration) -> Change:
        """Start the server on the same data with the configuration.

        Raises:
            StageFailed: the server refuses it.
        """
        server, steps = self._entered(), dict[str, float]()
        before, self._current = self._current, None
        start_s = time.monotonic()
        server.stop()
        steps["stop"], start_s = time.monotonic() - start_s, time.monotonic()
        filled = server.saved.exists()
        if filled:
            server.load()
        else:
            server.create()
        steps["data"], start_s = time.monotonic() - start_s, time.monotonic()
        self._begin(configuration)
        steps["start"] = time.monotonic() - start_s
        self._current = configuration
        difference = self.space.change(before or {}, configuration)
        category = difference.category
        return Change(difference.parameters, -1 if category is None else category, steps, filled)

    def settle(self) -> Mapping[str, float]:
        """After the fill, keep the data, and start on a copy of it as all later trials do.

        Raises:
            StageFailed: the data cannot be copied, or the server does not start again.
        """
        server = self._entered()
        if server.saved.exists() or self._current is None:
            return {}
        start_s = time.monotonic()
        server.stop()
        server.save()
        server.load()
        self._begin(self._current)
        return {"save data": time.monotonic() - start_s}

    def health(self, limit_s: float) -> None:
        """See that the server answers.

        Raises:
            StageFailed: it does not within `limit_s`.
        """
        server = self._entered()
        server.check_alive()
        server.ask("SELECT 1", max(1.0, limit_s))

    def read(self, names: Collection[str]) -> Mapping[str, Value]:
        """What pg_settings says is in force.

        Raises:
            StageFailed: the server does not answer.
        """
        if self._current is None:
            return {}
        return read_back(self._entered().ask(IN_FORCE), self._current, names)

    def sample(self) -> Sample:
        """The server's cumulative statistics, the traffic of the disk, and the log since the last checkpoint.

        Raises:
            StageFailed: the server does not answer.
        """
        assert self._counters is not None, "counters are those of the disk that entering finds"
        server = self._entered()
        told, pending_bytes = statistics.counters_of(server.ask(statistics.query(self._programs.major)))
        return Sample({**self._counters.read(), **told}, deferred={statistics.DEFERRED: pending_bytes})

    @property
    def sampled(self) -> frozenset[str]:
        """The names of those counters."""
        return counter_names(("device",)) | set(statistics.COUNTERS)

    def drain(self, limit_s: float) -> None:
        """Make a checkpoint.

        Raises:
            StageFailed: it takes longer.
        """
        self._entered().ask("CHECKPOINT", limit_s)

    def cycle_s(self, configuration: Configuration, metrics: Mapping[str, float]) -> float:
        """The time between checkpoints."""
        return statistics.checkpoint_cycle_s(configuration, metrics)

    @property
    def workspace(self) -> Workspace:
        """A directory for the load, which finds the server by libpq's variables (manual, section 34.15)."""
        place = self._entered().place
        reached = {"PGHOST": str(place), "PGPORT": "5432", "PGUSER": ROLE, "PGDATABASE": DATABASE}
        path = os.pathsep.join((str(self._programs.folder), os.environ.get("PATH", os.defpath)))
        return Workspace(place / "load", user=self._account.name, environment={**reached, "PATH": path})

    def describe(self) -> Mapping[str, Any]:
        """What results are valid for."""
        place = self._entered().place
        return {
            "target": "postgresql",
            **describe_machine(),
            "postgresql": self._programs.version,
            "device": {"name": backing_of(place), "file_system": file_system_of(place)},
            "max_connections": self.options.max_connections,
            "memory_bytes": self._memory_bytes(),
        }

    def commands(self, configuration: Configuration, chosen: Collection[str]) -> Mapping[str, list[str]]:
        """The lines of postgresql.conf, the statements, and the commands that give these."""
        return forms_of(configuration, chosen)

    @classmethod
    def variant(cls, options: Mapping[str, Any]) -> type[System]:
        """A server that people use is tuned in another way."""
        if "server" not in options:
            return cls
        from ascar.systems.postgresql.existing import ExistingPostgreSQL

        return ExistingPostgreSQL

    @classmethod
    def catalogue(cls, options: Mapping[str, Any]) -> Mapping[str, KnownParameter]:  # noqa: ARG003
        """Every setting of the list, whether the installed version has it or not."""
        return catalogue_of(one.parameter() for one in postgresql().values())

    @classmethod
    def needs(cls) -> tuple[Need, ...]:
        """The server, and its own benchmark."""
        try:
            found: str | None = f"PostgreSQL {Programs.find().version}"
        except EnvironmentLacks:
            found = None
        packages = ("postgresql", "postgresql-server postgresql-contrib")
        return (Need("postgres", "the server that is tuned", found, ("postgresql",), *packages),)

    def _begin(self, configuration: Configuration) -> None:
        server = self._entered()
        server.configure(settings_of(configuration))
        server.start([f"max_connections={self.options.max_connections}"], _START_S)

    def _memory_bytes(self) -> int:
        return memory_of(self.options.memory)

    def _checked_directory(self) -> Path:
        given = self.options.directory
        path = self._account.home if given is None else Path(given).expanduser().absolute()
        if given is not None and (not given or "\0" in given):
            raise StudyError(f"target.directory = {given!r}: must be a path")
        if not os.path.isdir(path):  # noqa: PTH112 - False where it may not even be looked at
            key = f"target.directory = {given!r}" if given is not None else f"{path}, the home of the account"
            raise StudyError(f"{key}: is not a directory; make it, or name another in target.directory")
        return path

    def _removal(self, place: Path) -> list[str]:
        return [shutil.which("rm") or "/bin/rm", "-rf", "--", str(place)]

    def _close(self) -> None:
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            keeper.close()

    def _entered(self) -> PostgresServer:
        if self._server is None:
            raise StageFailed("program", "the target is entered before it is used")
        return self._server
