"""The settings of a MariaDB server that people use: changed by SET GLOBAL, never written to my.cnf."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from ascar.catalogues.mariadb import MariaSetting, mariadb
from ascar.errors import Refused, StageFailed
from ascar.systems.existing.settings import LiveSettings
from ascar.systems.mariadb.connection import MariaAddress, MariaSession
from ascar.systems.mariadb.live_values import canonical, set_globally
from ascar.systems.mariadb.restoration import MariaRestoration
from ascar.systems.mariadb.server_facts import lock_server, mariadb_rights
from ascar.systems.mariadb.space import PAIRS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ascar.space import Configuration, Value
    from ascar.systems.keeper import Keeper
    from ascar.systems.mariadb.server_facts import MariaFacts


class MariaLiveSettings(LiveSettings[MariaSession, MariaSetting]):
    """The settings of one server.

    Args:
        session: the session that changes them.
        address: where to connect anew, if the session breaks.
        facts: what the server said when the study began.
        keeper: a keeper of the user.
        default: the values in force when the study began.

    Raises:
        StageFailed: the server does not answer.
    """

    def __init__(
        self,
        session: MariaSession,
        address: MariaAddress,
        facts: MariaFacts,
        keeper: Keeper,
        default: Configuration,
    ) -> None:
        self._address, self._facts = address, facts
        super().__init__(session, keeper, default, mariadb())

    def ping(self, limit_s: float = 10.0) -> None:
        """See that the server answers.

        Raises:
            StageFailed: it does not within `limit_s`.
        """
        self.session.ask("SHOW STATUS LIKE 'Uptime'", limit_s)

    def in_force(self, names: Collection[str]) -> Mapping[str, Value]:
        """What SHOW GLOBAL VARIABLES says is in force.

        Raises:
            StageFailed: the server does not answer.
        """
        told, known = self._present(self.session), mariadb()
        found: dict[str, Value] = {}
        for name in set(names) & set(told) & set(self.current):
            value = self.current[name]  # which the server may have with fewer digits
            found[name] = value if known[name].text(value) == told[name] else known[name].value(told[name])
        return found

    def _set_as_it_is(self, name: str) -> None:
        try:
            set_globally(self.session, {name: self._before[name]}, self._before)
        except Refused as refusal:
            raise Refused(
                f"{refusal.message}; let an administrator run: {mariadb_rights(self.session)}"
            ) from refusal

    def _right_of(self, name: str) -> str:
        """The right that it takes from MariaDB 11.0 on (sql/privilege.h)."""
        if self._known[name].binary_log:
            return "BINLOG ADMIN"
        return "CONNECTION ADMIN" if name.startswith("thread_pool_") else "SUPER"

    def _connect(self) -> MariaSession:
        """A new session, with the lock that the one before had; that may be there still for a while."""
        session = MariaSession(self._address)
        with suppress(StageFailed):  # whoever asks next says so
            lock_server(session, 0)
        return session

    def _check_same(self, session: MariaSession) -> None:
        self._facts.check_same(session)

    def _present(self, session: MariaSession) -> Mapping[str, str]:
        return canonical(session.variables())

    def _others(self, session: MariaSession) -> Mapping[str, str]:
        """Without what the server itself changes beside a setting of the study."""
        beside = {other for pair in PAIRS for other in pair if set(pair) & set(self._default)}
        return {name: text for name, text in super()._others(session).items() if name not in beside}

    def _restoration_of(self, left: dict[str, tuple[str | None, ...]]) -> MariaRestoration:
        return MariaRestoration(
            address=self._address,
            identity=self._facts.identity,
            started_s=self._facts.started_s,
            process=self._facts.process,
            before={name: text for name, text in self._before.items() if name in left},
            set=left,
        )

    def _write(
        self, session: MariaSession, texts: Mapping[str, str | None], present: Mapping[str, str]
    ) -> None:
        wanted = {
            name: text for name, text in texts.items() if text is not None and text != present.get(name)
        }
        try:
            set_globally(session, wanted, present)
        except Refused as refusal:
            raise StageFailed("change", refusal.message) from refusal
