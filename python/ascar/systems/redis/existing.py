"""The target of kind "redis" with `server = "existing"`: a Redis or Valkey server that people use.

[target]
kind = "redis"
server = "existing"
host = "127.0.0.1"               # or the path of its socket
port = 6379
user = "tuner"                   # of its access control list
password_file = "/etc/ascar/redis-password"

Only settings that CONFIG SET takes are changed. The server keeps its process, its data and its clients, and
redis.conf is never written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ascar.catalogues.redis import redis
from ascar.program.redis import RedisPrograms
from ascar.study import convert
from ascar.systems import Announced, Sample
from ascar.systems.existing import ExistingTarget
from ascar.systems.redis.activity import METRICS, RedisActivity
from ascar.systems.redis.connection import RedisSession
from ascar.systems.redis.counters import COUNTERS, GAUGES, calls_of, counters_of, gauges_of
from ascar.systems.redis.existing_options import ExistingRedisOptions, check_redis_options, redis_address_of
from ascar.systems.redis.live_settings import RedisLiveSettings
from ascar.systems.redis.persistence import LogRule, cycle_s
from ascar.systems.redis.server_facts import (
    COMMANDS,
    RedisFacts,
    check_redis_tunable,
    info,
    redis_rights,
    settings_told,
)
from ascar.systems.redis.space import live_redis_space
from ascar.systems.redis.statements import forms_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ascar.space import Configuration, Space
    from ascar.systems.keeper import Keeper

_OPERATIONS = "throughput_ops"
_PERSISTENCE = ("save", "appendonly", "auto-aof-rewrite-percentage", "auto-aof-rewrite-min-size")


class ExistingRedis(ExistingTarget[RedisSession, RedisFacts]):
    """A Redis or Valkey server that people use; its clients are the load where the study names none.

    Args:
        options: the `[target]` table without its kind.

    Raises:
        StudyError: a key is wrong.
    """

    kind = "redis"
    listed = staticmethod(redis)
    watched = METRICS
    nothing = "clients sent no command"

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.options = convert(options, ExistingRedisOptions, "target")
        check_redis_options(self.options)
        super().__init__(self.options, live_redis_space(self.options.parameters, redis(), None, 0))
        self._address = redis_address_of(self.options)
        self._told: Mapping[str, str] = {}

    def _connect(self) -> RedisSession:
        return RedisSession(self._address)

    def _facts_of(self, session: RedisSession) -> RedisFacts:
        return RedisFacts.of(session, self._address)

    def _check_tunable(self, session: RedisSession, facts: RedisFacts) -> None:  # noqa: ARG002
        check_redis_tunable(session, self._address)

    def _space_of(self, session: RedisSession, facts: RedisFacts) -> Space:
        self._told = settings_told(session, self._address)
        return live_redis_space(self.options.parameters, facts.settings(), self._told, self._memory_bytes)

    def _settings_of(self, session: RedisSession, facts: RedisFacts, keeper: Keeper) -> RedisLiveSettings:
        return RedisLiveSettings(session, self._address, facts, keeper, self.space.default())

    def _activity(self, session: RedisSession, metrics: Collection[str]) -> RedisActivity:  # noqa: ARG002
        return RedisActivity(session)

    def _check_settings(self, session: RedisSession, names: Collection[str]) -> None:
        """Nothing more: a setting of Redis holds for every client."""

    def sample(self) -> Sample:
        """INFO's totals and memory.

        Raises:
            StageFailed: the server does not answer.
            WorkError: it is not the server any more that the study began on, or another setting changed.
        """
        fields = info(self._entered().unchanged_session(), self._address)
        # The session of an online study makes a rate of it: throughput_ops_per_s.
        return Sample({**counters_of(fields), _OPERATIONS: calls_of(fields)[0]}, gauges_of(fields))

    @property
    def sampled(self) -> frozenset[str]:
        """The names of those counters and gauges."""
        return COUNTERS | GAUGES | {_OPERATIONS}

    def cycle_s(self, configuration: Configuration, metrics: Mapping[str, float]) -> float:
        """The time between rewrites of the log, by what clients write."""
        if not self._told:
            return 0.0
        found = {
            one.parameter_name: configuration.get(one.parameter_name, one.value(self._told.get(one.name, "")))
            for one in (redis()[name] for name in _PERSISTENCE)
        }
        rule = LogRule(
            float(self._told["auto-aof-rewrite-percentage"]), float(self._told["auto-aof-rewrite-min-size"])
        )
        return cycle_s(found, rule, metrics, 0.0)

    @property
    def reached(self) -> Mapping[str, str]:
        """REDIS_SOCKET, or REDIS_HOST and REDIS_PORT."""
        address = self._address
        if address.is_socket:
            return {"REDIS_SOCKET": address.host}
        return {"REDIS_HOST": address.host, "REDIS_PORT": str(address.port)}

    @staticmethod
    def _programs() -> RedisPrograms:
        return RedisPrograms.find()

    def _described(self, facts: RedisFacts) -> Mapping[str, Any]:
        return {facts.flavour: facts.version}

    def commands(self, configuration: Configuration, chosen: Collection[str]) -> Mapping[str, list[str]]:
        """The lines of redis.conf, CONFIG SET, and the commands that give these."""
        return forms_of(configuration, chosen)

    def announced(self, names: Collection[str]) -> Announced:
        """CONFIG SET for each setting, and what is read; the rights that a user needs."""
        known = {one.parameter_name: one.name for one in redis().values()}
        changes = [f"CONFIG SET {known[name]} ..." for name in names]
        return Announced(
            (*changes, "CONFIG GET *", *(one for one in COMMANDS if not one.startswith("CONFIG"))),
            (redis_rights(self.options.user or "default"),),
        )
