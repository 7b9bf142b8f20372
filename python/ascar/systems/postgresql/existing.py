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

import os
import shutil
import tempfile
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ascar.catalogues.postgresql import postgresql
from ascar.errors import EnvironmentLacks, Refused, StageFailed
from ascar.program.postgresql import Programs
from ascar.results.machine import Need
from ascar.results.trial import Change
from ascar.space import ChangeCost
from ascar.study import convert
from ascar.systems import Announced, Sample, Starter, Target
from ascar.systems.catalogue import KnownParameter, catalogue_of
from ascar.systems.keeper import Keeper
from ascar.systems.machine import describe_machine
from ascar.systems.own_server import memory_of
from ascar.systems.postgresql import counters as statistics
from ascar.systems.postgresql.activity import LOOKS, METRICS, Activity
from ascar.systems.postgresql.connection import PsqlSession
from ascar.systems.postgresql.existing_options import ExistingServerOptions, address_of, check_options
from ascar.systems.postgresql.live_guard import LiveGuard, LiveLimit, limits_of
from ascar.systems.postgresql.live_load import live_readings
from ascar.systems.postgresql.live_settings import LiveSettings
from ascar.systems.postgresql.reading import IN_FORCE, in_force, read_back
from ascar.systems.postgresql.restoration import READ, RELOAD
from ascar.systems.postgresql.server_facts import ServerFacts, check_rights, check_tunable, grants, overridden
from ascar.systems.postgresql.space import live_space, tuned_names
from ascar.systems.postgresql.statements import forms_of
from ascar.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from types import TracebackType

    from ascar.results.measurement import Readings
    from ascar.space import Configuration, Space, Value
    from ascar.study import GuardSection
    from ascar.workspace import LoadTiming

_THROUGHPUT = "throughput_ops"


class ExistingPostgreSQL(Target):
    """A PostgreSQL server that people use; its clients are the load where the study names none.

    Args:
        options: the `[target]` table without its kind.

    Raises:
        StudyError: a key is wrong.
    """

    default_workload: str | None = None
    changes_while_working = frozenset({ChangeCost.DYN_APP})
    starter = Starter(target={"server": '"existing"', "parameters": '"expert"'})

    owner: str = "postgresql"
    """What others who are refused the server are told."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.options = convert(options, ExistingServerOptions, "target")
        check_options(self.options)
        self._memory_bytes = memory_of(self.options.memory)
        self.space = live_space(self.options.parameters, None)
        self._address = address_of(self.options)
        self._limits: tuple[LiveLimit, ...] = ()
        self._held = ExitStack()
        self._facts: ServerFacts | None = None
        self._settings: LiveSettings | None = None
        self._guard: LiveGuard | None = None
        self._directory: Path | None = None

    def __enter__(self) -> ExistingPostgreSQL:
        """Connect, see that the server may be tuned, and take its values as the defaults; changes nothing.

        Raises:
            Refused: the command line does not confirm the server, or it must not be tuned.
            EnvironmentLacks: it cannot be reached, or psql or the keeper is missing.
            StudyError: the guard has a limit that cannot be watched.
        """
        try:
            self._enter()
        except BaseException:
            self._leave()
            raise
        return self

    def _enter(self) -> None:
        session = self._connected()
        self._held.callback(session.close)
        facts = ServerFacts.of(session)
        self._check_confirmed(facts)
        check_tunable(session, facts)
        check_rights(session, facts, ())
        present = in_force(session.ask(IN_FORCE))
        self.space = live_space(self.options.parameters, present, facts.max_connections, self._memory_bytes)
        keeper = self._held.enter_context(Keeper(self.owner, user=True))
        keeper.lock(f"postgresql:{facts.identity.identifier}")
        settings = LiveSettings(session, self._address, facts, keeper, self.space.default())
        self._held.callback(settings.close)
        if self._limits:
            self._guard = LiveGuard(self._connected, self._limits, settings.put_back, settings.changing)
            self._held.callback(self._guard.stop)
        self._directory = Path(self._held.enter_context(tempfile.TemporaryDirectory(prefix="ascar-pg-")))
        self._facts, self._settings = facts, settings

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Put everything back.

        Raises:
            WorkError: the server does not answer, or is another one; `ascar restore` tries again.
        """
        try:
            self._entered().finish()
        finally:
            self._leave()

    def adopt(self, space: Space) -> None:
        """See that the study's settings can be changed, and that a change reaches every session.

        Raises:
            Refused: the role may not, the server cannot, or a role or a database has a value of its own.
        """
        if self._settings is None or self._facts is None:
            return  # what is only described touches no server
        names, session = tuned_names(space, self.space), self._settings.session
        check_rights(session, self._facts, names)
        self._settings.check_writable(names)
        for name, whose in overridden(session).items():
            if name in names:
                raise Refused(
                    f"{name}: {whose} has a value of its own for it (ALTER ROLE or DATABASE ... SET), which "
                    "a trial would not change; take that back, or leave the setting out with space.pinned"
                )

    def guard_by(self, guard: GuardSection) -> None:
        """Keep the limits of what clients get."""
        self._limits = limits_of(guard)

    @property
    def violation(self) -> str | None:
        """The limit that the configuration in force violated."""
        return None if self._guard is None else self._guard.violation

    def apply(self, configuration: Configuration) -> Change:
        """Write what differs by ALTER SYSTEM, and reload.

        Raises:
            StageFailed: the server refuses a value.
            WorkError: it is not the server any more that the study began on, or somebody else changed one.
        """
        settings, guard, begun_s = self._entered(), self._guard, time.monotonic()
        if guard is not None:
            guard.wait()
        held_s = time.monotonic() - begun_s
        difference = self.space.change(settings.current, configuration)
        settings.change(configuration, lambda departs: guard.arm(on=departs) if guard is not None else None)
        steps = {"hold": held_s, "settings": time.monotonic() - begun_s - held_s}
        return Change.of(difference, steps, filled=True)

    def health(self, limit_s: float) -> None:
        """See that the server answers.

        Raises:
            StageFailed: it does not within `limit_s`.
        """
        self._entered().session.ask("SELECT 1", max(1.0, limit_s))

    def read(self, names: Collection[str]) -> Mapping[str, Value]:
        """What pg_settings says is in force.

        Raises:
            StageFailed: the server does not answer.
        """
        settings = self._entered()
        return read_back(settings.session.ask(IN_FORCE), settings.current, names)

    def sample(self) -> Sample:
        """The server's cumulative statistics.

        Raises:
            StageFailed: the server does not answer.
            WorkError: it is not the server any more that the study began on.
        """
        assert self._facts is not None, "facts are known once the target is entered"
        session = self._entered().checked_session()
        told, _ = statistics.counters_of(session.ask(statistics.query(self._facts.major)))
        # The session of an online study makes a rate of it: throughput_ops_per_s.
        return Sample({**told, _THROUGHPUT: told["pg_commits"]})

    @property
    def sampled(self) -> frozenset[str]:
        """The names of those counters."""
        return frozenset({*statistics.COUNTERS, _THROUGHPUT})

    def cycle_s(self, configuration: Configuration, metrics: Mapping[str, float]) -> float:
        """The time between checkpoints."""
        return statistics.checkpoint_cycle_s(configuration, metrics)

    @property
    def reported(self) -> frozenset[str]:
        """What clients get, where they are the load."""
        return METRICS

    def prepare(self, workspace: Workspace) -> None:  # noqa: ARG002
        """Nothing: the data is there."""
        return

    def run(self, workspace: Workspace, pace: LoadTiming) -> Readings:  # noqa: ARG002
        """Read what the server's clients get.

        Raises:
            StageFailed: the server does not answer, or has no clients.
        """
        return live_readings(Activity(self._entered().session, with_statements=True), pace)

    @property
    def workspace(self) -> Workspace:
        """A directory for a load, which finds the server by libpq's variables."""
        assert self._directory is not None, "a target is entered before it is used"
        environment = dict(self._address.variables())
        with suppress(EnvironmentLacks):
            folder = Programs.find().folder
            environment["PATH"] = os.pathsep.join((str(folder), os.environ.get("PATH", os.defpath)))
        return Workspace(self._directory, environment=environment)

    def describe(self) -> Mapping[str, Any]:
        """What results are valid for."""
        if self._facts is None:
            return {"target": "postgresql", "kind": "clients of the server"}
        machine = describe_machine() if self._facts.is_local else {}
        return {
            "target": "postgresql",
            **machine,
            "postgresql": self._facts.version,
            "server": self._facts.name,
            "max_connections": self._facts.max_connections,
            "memory_bytes": self._memory_bytes,
        }

    def commands(self, configuration: Configuration, chosen: Collection[str]) -> Mapping[str, list[str]]:
        """The lines of postgresql.conf, the statements, and the commands that give these."""
        return forms_of(configuration, chosen)

    def announced(self, names: Collection[str]) -> Announced:
        """ALTER SYSTEM for each setting, the reload, and what is read; the rights of a role without all."""
        changes = [f"ALTER SYSTEM SET {name} = ...; ALTER SYSTEM RESET {name};" for name in names]
        role = "ROLE" if self.options.user is None else self.options.user
        return Announced(
            (*changes, f"{RELOAD};", f"{READ};", *(f"{one};" for one in LOOKS)),
            ("superuser, or from PostgreSQL 15 on:", *(f"{one};" for one in grants(role, names))),
        )

    @classmethod
    def catalogue(cls, options: Mapping[str, Any]) -> Mapping[str, KnownParameter]:  # noqa: ARG003
        """Every setting of the list."""
        return catalogue_of(one.parameter() for one in postgresql().values())

    @classmethod
    def needs(cls) -> tuple[Need, ...]:
        """PostgreSQL's client."""
        found = shutil.which("psql")
        packages = ("postgresql-client", "postgresql")
        return (
            Need("psql", "the client that sets the server's parameters", found, ("postgresql",), *packages),
        )

    def _check_confirmed(self, facts: ServerFacts) -> None:
        given = self.options.confirmed_server
        if given is None:
            raise Refused(
                f"target.server = 'existing': people may use {facts.name}; confirm that it may be tuned: "
                f"--allow-live {facts.name}"
            )
        if given != facts.name:
            raise Refused(f"--allow-live {given!r:.200}: the server of this study is {facts.name}; name that")

    def _connected(self) -> PsqlSession:
        try:
            return PsqlSession(self._address)
        except StageFailed as failure:
            raise EnvironmentLacks(f"target.server: {failure.message.partition(': ')[2]}") from failure

    def _entered(self) -> LiveSettings:
        if self._settings is None:
            raise StageFailed("program", "the target is entered before it is used")
        return self._settings

    def _leave(self) -> None:
        self._settings, self._guard = None, None
        self._held.close()
