"""The settings of a Redis server that people use: changed by CONFIG SET, never written to redis.conf."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascar.catalogues.redis import RedisSetting, redis
from ascar.systems.existing.settings import LiveSettings
from ascar.systems.redis.connection import RedisAddress, RedisSession
from ascar.systems.redis.restoration import RedisRestoration
from ascar.systems.redis.server_facts import info, rights_needed, settings_told

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ascar.space import Configuration, Value
    from ascar.systems.keeper import Keeper
    from ascar.systems.redis.server_facts import RedisFacts


class RedisLiveSettings(LiveSettings[RedisSession, RedisSetting]):
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
        session: RedisSession,
        address: RedisAddress,
        facts: RedisFacts,
        keeper: Keeper,
        default: Configuration,
    ) -> None:
        self._address, self._facts = address, facts
        super().__init__(session, keeper, default, {one.parameter_name: one for one in redis().values()})

    def ping(self, limit_s: float = 10.0) -> None:
        """See that the server answers.

        Raises:
            StageFailed: it does not within `limit_s`.
        """
        self.session.ask("PING", limit_s=limit_s)

    def in_force(self, names: Collection[str]) -> Mapping[str, Value]:
        """What CONFIG GET says is in force.

        Raises:
            StageFailed: the server does not answer.
        """
        told = self._present(self.session)
        return {
            name: self._known[name].value(told[name])
            for name in names
            if name in told and name in self.current
        }

    def _set_as_it_is(self, name: str) -> None:
        with rights_needed(self._address):
            self.session.ask("CONFIG", "SET", self._known[name].name, self._before[name])

    def _connect(self) -> RedisSession:
        return RedisSession(self._address)

    def _check_same(self, session: RedisSession) -> None:
        self._facts.check_same(info(session, self._address))

    def _present(self, session: RedisSession) -> Mapping[str, str]:
        told = settings_told(session, self._address)
        return {name: told[one.name] for name, one in self._known.items() if one.name in told}

    def _restoration_of(self, left: dict[str, tuple[str | None, ...]]) -> RedisRestoration:
        return RedisRestoration(
            address=self._address,
            run_id=self._facts.run_id,
            process=self._facts.process,
            rewrites=self._facts.rewrites,
            before={self._known[name].name: text for name, text in self._before.items() if name in left},
            set={self._known[name].name: texts for name, texts in left.items()},
        )

    def _write(
        self, session: RedisSession, texts: Mapping[str, str | None], present: Mapping[str, str]
    ) -> None:
        """One CONFIG SET, which takes all or nothing."""
        words = [
            word
            for name, text in texts.items()
            if text is not None and text != present.get(name)
            for word in (self._known[name].name, text)
        ]
        if words:
            session.ask("CONFIG", "SET", *words)
