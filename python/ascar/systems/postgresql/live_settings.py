"""The settings of a PostgreSQL server that people use: changed by ALTER SYSTEM and a reload."""

from __future__ import annotations

import dataclasses
from contextlib import suppress
from typing import TYPE_CHECKING

from ascar.catalogues.postgresql import PostgresSetting, postgresql_of
from ascar.errors import Refused, StageFailed, WorkError
from ascar.space import ChangeCost
from ascar.systems.existing.settings import LiveSettings
from ascar.systems.postgresql.auto_configuration import entries_of, setting
from ascar.systems.postgresql.connection import PsqlSession, ServerAddress
from ascar.systems.postgresql.reading import IN_FORCE, others_of, read_back
from ascar.systems.postgresql.restoration import (
    READ,
    PostgresRestoration,
    boot_now,
    file_text,
    reload_settings,
)
from ascar.systems.postgresql.server_facts import ServerIdentity

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from ascar.space import Configuration, Value
    from ascar.systems.existing.restart import ServerRestart
    from ascar.systems.keeper import Keeper
    from ascar.systems.postgresql.server_facts import ServerFacts


class PostgresLiveSettings(LiveSettings[PsqlSession, PostgresSetting]):
    """The settings of one server.

    Args:
        session: the session that changes them.
        address: where to connect anew, if the session breaks.
        facts: what the server said when the study began.
        keeper: a keeper of the user.
        default: the values in force when the study began.
        restart: how the server is started anew. None: it is not.

    Raises:
        Refused: postgresql.auto.conf cannot be kept as it is.
        StageFailed: the server does not answer.
    """

    def __init__(
        self,
        session: PsqlSession,
        address: ServerAddress,
        facts: ServerFacts,
        keeper: Keeper,
        default: Configuration,
        *,
        restart: ServerRestart | None = None,
    ) -> None:
        super().__init__(session, keeper, default, postgresql_of(facts.major))
        self._address, self._facts, self._restart = address, facts, restart
        self._identity = facts.identity
        self._started_with: Mapping[str, str | None] = {}
        """The values, as they stand in the file, that only a new start takes back; else the old ones run."""

    def ping(self, limit_s: float = 10.0) -> None:
        """See that the server answers.

        Raises:
            StageFailed: it does not within `limit_s`.
        """
        self.session.ask("SELECT 1", limit_s)

    def in_force(self, names: Collection[str]) -> Mapping[str, Value]:
        """What pg_settings says is in force.

        Raises:
            StageFailed: the server does not answer.
        """
        return read_back(self.session.ask(IN_FORCE), self.current, names)

    def check_writable(self, names: Collection[str]) -> None:
        """See that ALTER SYSTEM can write its file: a reset of what is not there writes it as it was.

        Args:
            names: the settings that may be reset.

        Raises:
            Refused: it cannot.
        """
        absent = [name for name in names if name not in self._before]
        if not absent:
            return
        try:
            self.session.ask(setting(absent[0], None))
        except StageFailed as failure:
            raise Refused(f"ALTER SYSTEM fails: {failure.message}") from failure

    def _connect(self) -> PsqlSession:
        return PsqlSession(self._address)

    def _check_same(self, session: PsqlSession) -> None:
        self._identity.check_same(ServerIdentity.of(session))

    def _present(self, session: PsqlSession) -> Mapping[str, str]:
        return dict(entries_of(file_text(session.ask(READ))))

    def _others(self, session: PsqlSession) -> Mapping[str, str]:
        """What pg_settings says: most are in files that are no study's."""
        return {
            name: text for name, text in others_of(session.ask(IN_FORCE)).items() if name not in self._default
        }

    def _restoration_of(self, left: dict[str, tuple[str | None, ...]]) -> PostgresRestoration:
        return PostgresRestoration(
            address=self._address,
            identifier=self._facts.identity.identifier,
            timeline=self._facts.identity.timeline,
            before=tuple(self._before.items()),
            set=left,
            data_directory=self._facts.data_directory if self._facts.is_local else None,
            restart=self._restart if any(map(self._takes_restart, left)) else None,
            boot=boot_now(),
        )

    def _write(
        self, session: PsqlSession, texts: Mapping[str, str | None], present: Mapping[str, str]
    ) -> None:
        for name, text in texts.items():
            if text != present.get(name):
                session.ask(setting(name, text))
        reload_settings(session)
        wanted = {name: text for name, text in texts.items() if self._takes_restart(name)}
        changed = [
            name
            for name, text in wanted.items()
            if text != self._started_with.get(name, self._before.get(name))
        ]
        if changed and self._restart is not None:
            self._start_anew(self._restart, changed)
            self._started_with = wanted

    def _start_anew(self, restart: ServerRestart, changed: Sequence[str]) -> None:
        """Start the server anew; one that does not come up gets its old values, and is started with them.

        Raises:
            StageFailed: it does not come up with the trial's values; it runs with the old ones again.
            WorkError: it does not come up with these either.
        """
        self.restarts += 1
        try:
            session = restart.carry_out(self._connect)
        except StageFailed as failure:
            self._revive(failure)
            raise StageFailed(
                "change",
                f"the server does not come up with {', '.join(changed)} of this trial, and runs with the old "
                f"values again: {failure.message}"[:400],
                failure.stderr,
            ) from failure
        self._take_identity(session)

    def _revive(self, failure: StageFailed) -> None:
        """Put the old values back on a server that may be down, and have it run with them.

        Raises:
            WorkError: that failed.
        """
        assert self._restoration is not None, "the change is in the journal"
        try:
            self._restoration.carry_out_without_server()
        except WorkError as problem:
            try:
                self._restoration.carry_out(self._reconnected())
            except (StageFailed, Refused) as other:
                raise WorkError(
                    f"the server does not come up: {failure.message}; {problem.message}; {other.message}; "
                    "`ascar restore` tries again"
                ) from other
        self._put_back()

    def _put_back(self) -> None:
        self._started_with = {}
        if self._restart is None:
            return
        with suppress(StageFailed):  # whoever asks next says so
            before_s = self._identity.started_s
            self._take_identity(self._reconnected())
            self.restarts += self._identity.started_s != before_s

    def _take_identity(self, session: PsqlSession) -> None:
        """Go on with a server that the study started anew: all but the time of its start is the same."""
        if session is not self.session:
            self.session.close()
            self.session = session
        now = ServerIdentity.of(session)
        dataclasses.replace(self._identity, started_s=now.started_s).check_same(now)
        self._identity = now

    def _takes_restart(self, name: str) -> bool:
        return self._known[name].cost is ChangeCost.APP_RESTART
