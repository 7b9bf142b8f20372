"""The spaces of Redis: an expert's, and all settings that bear on speed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ascar.space import Guarantee, Space

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ascar.catalogues.redis import RedisSetting
    from ascar.program.redis import RedisPrograms
    from ascar.systems.own_server import Given

LEAVES_SOMETHING: Mapping[str, str] = {
    "appendonly": "a log is made, or ends",
    "maxmemory-policy": "what is evicted is gone",
    "maxmemory-eviction-tenacity": "what is evicted is gone",
    "client-query-buffer-limit": "clients that send more are disconnected",
    "slowlog-max-len": "entries beyond it are gone",
    "slowlog-log-slower-than": "entries replace those of the administrator",
}
"""Settings that a study of a server in use never changes, for what is left of a trial."""


def redis_space(
    parameters: str, programs: RedisPrograms, settings: Mapping[str, Given], memory_bytes: int
) -> Space:
    """The settings that a study searches.

    Threads that wait for clients spin, so that there are no more of them than processors; the backlog of
    replicas has to fit beside the data. What the server of today has is allowed in any case.

    Args:
        parameters: "expert" or "wide".
        programs: the version, which has some settings and lacks others.
        settings: the values in force before the study, by the server's names; they are the defaults.
        memory_bytes: the memory that the server may use.
    """
    chosen = [one for one in programs.settings().values() if one.is_searched(parameters)]
    made = (one.parameter(settings.get(one.name)) for one in chosen)
    space = Space(tuple(made), name="redis", allow_weaker=tuple(Guarantee))
    return _limited(space, memory_bytes)


def _limited(space: Space, memory_bytes: int) -> Space:
    most = {"io_threads": os.cpu_count() or 1, "repl_backlog_size": memory_bytes // 2}
    default = space.default()
    limits = (
        f"{name} <= {max(int(default[name]), number)}" for name, number in most.items() if name in space
    )
    return space.constrain(*limits)


def live_redis_space(
    parameters: str,
    settings: Mapping[str, RedisSetting],
    told: Mapping[str, str] | None,
    memory_bytes: int,
) -> Space:
    """The settings that CONFIG SET changes on a running server, with the values in force as defaults.

    Left out are those whose change leaves something behind that CONFIG SET does not take back, and those
    that only apply where the log is written while it is not: `appendonly` stays as it is.

    Args:
        parameters: "expert" or "wide".
        settings: those that the version has, by the server's names.
        told: the settings of the server, as CONFIG GET tells them; None: nobody has asked it yet.
        memory_bytes: the memory that the server may use.
    """
    wanted = [
        one
        for one in settings.values()
        if one.context == "dynamic" and one.name not in LEAVES_SOMETHING and one.is_searched(parameters)
    ]
    if told is None:
        found = [replace(one, when="").parameter() for one in wanted]
    else:
        logs = told.get("appendonly") == "yes"
        present = [one for one in wanted if one.name in told and (logs or one.when != "appendonly")]
        # Where no snapshot is taken, the first one would replace whatever file has its name.
        known = [one.found(told[one.name]) for one in present if told[one.name] or one.name != "save"]
        found = [one.parameter() for one in known if one is not None]
    space = Space(tuple(found), name="redis", allow_weaker=tuple(Guarantee))
    return _limited(space, memory_bytes)
