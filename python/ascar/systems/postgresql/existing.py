"""The target of kind "postgresql" with `server = "existing"`: a server that people use.

[target]
kind = "postgresql"
server = "existing"
host = "/var/run/postgresql"     # or service = "shop"; libpq finds the password by its own means
port = 5432
user = "postgres"
database = "shop"

Only settings that take effect without a restart are changed, by `ALTER SYSTEM` and a reload. The server keeps
its process, its data and its clients; postgresql.auto.conf is what it was at the end, byte by byte.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

from ascar.catalogues.advice import advised_values
from ascar.catalogues.postgresql import postgresql, postgresql_of
from ascar.errors import Refused, StudyError
from ascar.program.postgresql import Programs
from ascar.quoting import shell_line
from ascar.results.machine import Need
from ascar.study import convert
from ascar.systems import Announced, Sample, Starter
from ascar.systems.existing import ExistingTarget
from ascar.systems.existing.activity import LATENCY, THROUGHPUT
from ascar.systems.existing.restart import ServerRestart
from ascar.systems.postgresql import counters as statistics
from ascar.systems.postgresql.activity import LOOKS, METRICS, PostgresActivity
from ascar.systems.postgresql.connection import PsqlSession
from ascar.systems.postgresql.existing_options import ExistingServerOptions, address_of, check_options
from ascar.systems.postgresql.live_settings import PostgresLiveSettings
from ascar.systems.postgresql.reading import CHOSEN, IN_FORCE, TAKEN, as_chosen, as_taken, in_force
from ascar.systems.postgresql.restoration import READ, RELOAD, REPLAN
from ascar.systems.postgresql.server_facts import (
    ServerFacts,
    check_repairable,
    check_rights,
    check_tunable,
    grants,
    has_standbys,
    overridden,
)
from ascar.systems.postgresql.space import EXAMPLES, live_space
from ascar.systems.postgresql.statements import forms_of
from ascar.systems.starter import PLAIN

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ascar.space import Configuration, Space
    from ascar.systems.keeper import Keeper

_OPERATIONS = "throughput_ops"


class ExistingPostgreSQL(ExistingTarget[PsqlSession, ServerFacts]):
    """A PostgreSQL server that people use; its clients are the load where the study names none.

    Args:
        options: the `[target]` table without its kind.

    Raises:
        StudyError: a key is wrong.
    """

    kind = "postgresql"
    listed = staticmethod(postgresql)
    starter = Starter(
        target={"server": '"existing"', "parameters": '"expert"'},
        shown={
            "memory": '"8 GiB"',
            "host": '"/var/run/postgresql"',
            "port": "5432",
            "user": '"postgres"',
            "database": '"shop"',
            "service": '"shop"',
            "restart_command": '["sudo", "-n", "systemctl", "restart", "postgresql@15-main"]',
        },
        space={**PLAIN, **EXAMPLES},
    )
    watched = METRICS
    nothing = "no transaction was committed"

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.options = convert(options, ExistingServerOptions, "target")
        check_options(self.options)
        given = self.options
        self._restart = ServerRestart.of(given.restarts, given.restart_command, given.restart_limit)
        space = live_space(given.parameters, None, restarts=self._restart is not None)
        super().__init__(given, space)
        self._address = address_of(given)
        self._has = frozenset(postgresql())
        """The settings of the version that answers; of all versions before one does."""
        self.advice = advised_values(postgresql().values(), self._memory_bytes)

    def _connect(self) -> PsqlSession:
        return PsqlSession(self._address)

    def _facts_of(self, session: PsqlSession) -> ServerFacts:
        facts = ServerFacts.of(session)
        self._has = frozenset(postgresql_of(facts.major))
        return facts

    def _check_tunable(self, session: PsqlSession, facts: ServerFacts) -> None:
        check_tunable(session, facts)
        check_rights(session, facts, ())
        if self._restart is not None:
            check_repairable(facts)

    def _space_of(self, session: PsqlSession, facts: ServerFacts) -> Space:
        present = in_force(session.ask(IN_FORCE))
        if self._restart is not None:
            present = as_chosen(present, session.ask(CHOSEN))
        return live_space(
            self.options.parameters,
            present,
            facts.max_connections,
            self._memory_bytes,
            settings=as_taken(postgresql_of(facts.major), session.ask(TAKEN)),
            restarts=self._restart is not None,
            standbys=self._restart is not None and has_standbys(session),
        )

    def _settings_of(self, session: PsqlSession, facts: ServerFacts, keeper: Keeper) -> PostgresLiveSettings:
        return PostgresLiveSettings(
            session, self._address, facts, keeper, self.space.default(), restart=self._restart
        )

    def _activity(self, session: PsqlSession, metrics: Collection[str]) -> PostgresActivity:
        of_statements = sorted(one for one in metrics if one.startswith(LATENCY))
        activity = PostgresActivity(session, with_statements=not metrics or bool(of_statements))
        if of_statements and not activity.has_statements:
            raise StudyError(
                f"guard.ceiling: {of_statements[0]!r} needs the extension pg_stat_statements in the "
                f"database that the study connects to; create it, or limit {THROUGHPUT!r}"
            )
        return activity

    def _check_settings(self, session: PsqlSession, names: Collection[str]) -> None:
        assert self._facts is not None, "facts are known once the target is entered"
        check_rights(session, self._facts, names)
        for name, why in overridden(session).items():
            if name in names:
                raise Refused(
                    f"{name}: {why}, which a trial would not change; take that back, or leave the setting "
                    "out with space.pinned"
                )

    def sample(self) -> Sample:
        """The server's cumulative statistics.

        Raises:
            StageFailed: the server does not answer.
            WorkError: it is not the server any more that the study began on, or another setting changed.
        """
        assert self._facts is not None, "facts are known once the target is entered"
        session = self._entered().unchanged_session()
        told, _ = statistics.counters_of(session.ask(statistics.query(self._facts.major)))
        # The session of an online study makes a rate of it: throughput_ops_per_s.
        return Sample({**told, _OPERATIONS: told["pg_commits"]})

    @property
    def sampled(self) -> frozenset[str]:
        """The names of those counters."""
        return frozenset({*statistics.COUNTERS, _OPERATIONS})

    def cycle_s(self, configuration: Configuration, metrics: Mapping[str, float]) -> float:
        """The time between checkpoints."""
        return statistics.checkpoint_cycle_s(configuration, metrics)

    @property
    def reached(self) -> Mapping[str, str]:
        """The variables of libpq (manual, section 34.15)."""
        return self._address.variables()

    @staticmethod
    def _programs() -> Programs:
        return Programs.find()

    def _described(self, facts: ServerFacts) -> Mapping[str, Any]:
        return {"postgresql": facts.version, "max_connections": facts.max_connections}

    def commands(self, configuration: Configuration, chosen: Collection[str]) -> Mapping[str, list[str]]:
        """The lines of postgresql.conf, the statements, and the commands that give these."""
        return forms_of(configuration, chosen)

    def announced(self, names: Collection[str]) -> Announced:
        """ALTER SYSTEM for each setting, the reload, and what is read; the rights of a role without all."""
        names = [name for name in names if name in self._has]
        changes = [f"ALTER SYSTEM SET {name} = ...; ALTER SYSTEM RESET {name};" for name in names]
        restarts = () if self._restart is None else (shell_line(self._restart.argv),)
        role = "ROLE" if self.options.user is None else self.options.user
        return Announced(
            (*changes, f"{RELOAD};", f"{REPLAN};", f"{READ};", *(f"{one};" for one in LOOKS), *restarts),
            ("superuser, or from PostgreSQL 15 on:", *(f"{one};" for one in grants(role, names))),
        )

    @classmethod
    def needs(cls) -> tuple[Need, ...]:
        """PostgreSQL's client."""
        found = shutil.which("psql")
        packages = ("postgresql-client", "postgresql")
        return (
            Need("psql", "the client that sets the server's parameters", found, ("postgresql",), *packages),
        )
