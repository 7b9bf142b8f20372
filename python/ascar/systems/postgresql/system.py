"""The target of kind "postgresql".

[target]
kind = "postgresql"
directory = "/data"        # default: the home of the account that runs the server, or /var/tmp
parameters = "expert"      # or "wide": every setting that bears on speed
memory = "4 GiB"           # default: three quarters of the machine's
memory_limit = "8 GiB"     # default: none; page cache included

Each trial starts a server of its own on a copy of the data directory as the load's fill left it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from ascar.catalogues.advice import advised_values
from ascar.catalogues.postgresql import VERSION_MIN, postgresql
from ascar.errors import EnvironmentLacks, StudyError
from ascar.program.postgresql import Programs
from ascar.results.machine import Need
from ascar.study import convert
from ascar.systems import Sample, Starter
from ascar.systems.needs import found_by
from ascar.systems.own_server import Given, OwnServerTarget, ServerKeys
from ascar.systems.postgresql import counters as statistics
from ascar.systems.postgresql.reading import IN_FORCE, read_back
from ascar.systems.postgresql.server import SOCKET, PostgresServer
from ascar.systems.postgresql.space import EXAMPLES, postgresql_space, settings_here, settings_of_today
from ascar.systems.postgresql.statements import forms_of, settings_of
from ascar.systems.starter import PLAIN

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from ascar.space import Configuration, Value
    from ascar.systems import System
    from ascar.systems.keeper import Keeper

_CONNECTIONS_MAX = 10_000


class PostgreSQLOptions(ServerKeys, frozen=True, forbid_unknown_fields=True):
    """`[target]` of kind "postgresql".

    Attributes:
        directory: the directory in which one is made for the server. None: the home of its account, or
            /var/tmp where it has none.
        parameters: "expert", about twenty settings, or "wide", all that bear on speed.
        memory: the memory that the server may come to use. None: memory_limit, or three quarters of the
            machine's.
        memory_limit: the memory and page cache that the server has once it is filled, as in a container of
            that size: a control group, which takes root. None: the machine's.
        user: the account that runs the server. None: the caller's, or "postgres" where root calls.
        version: the major version to run. None: the newest one that is installed.
        max_connections: the connections that the server takes.
        settings: settings as the server of today has them, by its own names and as SHOW writes them: the
            default of the study.
    """

    max_connections: int = 100
    settings: dict[str, Given] = msgspec.field(default_factory=dict[str, Given])


class PostgreSQL(OwnServerTarget[PostgresServer]):
    """A PostgreSQL server of the study's own.

    Args:
        options: the `[target]` table without its kind.

    Raises:
        StudyError: a key is wrong.
        EnvironmentLacks: PostgreSQL is not installed.
    """

    name, kind, account, socket = "PostgreSQL", "postgresql", "postgres", SOCKET
    listed = staticmethod(postgresql)
    told = frozenset(statistics.COUNTERS)
    default_workload: str | None = "pgbench"
    starter = Starter(
        target={"parameters": '"expert"', "memory": '"1 GiB"'},
        shown={
            "memory_limit": '"2 GiB"',
            "user": '"postgres"',
            "version": "15",
            "settings": '{ max_wal_size = "4GB", checkpoint_timeout = "15min" }',
        },
        space={**PLAIN, **EXAMPLES},
        workload=lambda: {"kind": '"pgbench"'},
        online={"server": "existing"},
    )

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.options = convert(options, PostgreSQLOptions, "target")
        if not 10 <= self.options.max_connections <= _CONNECTIONS_MAX:
            raise StudyError(
                f"target.max_connections = {self.options.max_connections}: "
                f"must be from 10 to {_CONNECTIONS_MAX}"
            )
        super().__init__(self.options)
        self._programs = Programs.find(self.options.version)
        if self._programs.major < VERSION_MIN:
            raise EnvironmentLacks(
                f"PostgreSQL {self._programs.version} is too old; ascar tunes versions from {VERSION_MIN} on"
            )
        known = list(settings_here(self._programs))
        self._given = settings_of_today(self.options.settings, {one.name: one for one in known})
        self.advice = advised_values(known, self._memory_bytes)
        self.space = postgresql_space(
            self.options.parameters,
            known,
            self.options.max_connections,
            self._memory_bytes,
            self._given,
        )

    def _made(self, place: Path, keeper: Keeper) -> PostgresServer:
        fixed = (f"max_connections={self.options.max_connections}",)
        return PostgresServer(self._programs, self._account, place, keeper, fixed)

    def _lines(self, configuration: Configuration) -> Sequence[str]:
        others = {name: value for name, value in self._given.items() if name not in self.space.names}
        return settings_of({**others, **configuration})

    def read(self, names: Collection[str]) -> Mapping[str, Value]:
        """What pg_settings says is in force.

        Raises:
            StageFailed: the server does not answer.
        """
        if self._current is None:
            return {}
        return read_back(self._entered().ask(IN_FORCE), self._current, names)

    def _told(self) -> Sample:
        """The server's cumulative statistics, and the log since the last checkpoint."""
        query = statistics.query(self._programs.major)
        told, pending_bytes = statistics.counters_of(self._entered().ask(query))
        return Sample(told, deferred={statistics.DEFERRED: pending_bytes})

    def drain(self, limit_s: float) -> None:
        """Make a checkpoint.

        Raises:
            StageFailed: it takes longer.
        """
        self._entered().ask("CHECKPOINT", limit_s)

    def cycle_s(self, configuration: Configuration, metrics: Mapping[str, float]) -> float:
        """The time between checkpoints."""
        return statistics.checkpoint_cycle_s(configuration, metrics)

    def describe(self) -> Mapping[str, Any]:
        """What results are valid for."""
        settings = {name: str(value) for name, value in self._given.items()}
        return {
            **super().describe(),
            "postgresql": self._programs.version,
            "max_connections": self.options.max_connections,
            **({"settings": settings} if settings else {}),
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
    def needs(cls) -> tuple[Need, ...]:
        """The server, and its own benchmark."""
        found = found_by(lambda: f"PostgreSQL {Programs.find().version}")
        packages = ("postgresql", "postgresql-server postgresql-contrib")
        return (Need("postgres", "the server that is tuned", found, ("postgresql",), *packages),)
