"""The spaces of Redis: an expert's, and all settings that bear on speed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ascar.catalogues.redis import redis
from ascar.space import Guarantee, Space

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ascar.catalogues.redis import RedisSetting
    from ascar.program.redis import RedisPrograms
    from ascar.systems.own_server import Given


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
    chosen = [
        one for one in settings_here(programs) if not one.set_by and (one.expert or parameters == "wide")
    ]
    made = (one.parameter(settings.get(one.name)) for one in chosen)
    space = Space(tuple(made), name="redis", allow_weaker=tuple(Guarantee))
    most = {"io_threads": os.cpu_count() or 1, "repl_backlog_size": memory_bytes // 2}
    default = space.default()
    limits = (
        f"{name} <= {max(int(default[name]), number)}" for name, number in most.items() if name in space
    )
    return space.constrain(*limits)


def settings_here(programs: RedisPrograms) -> Iterator[RedisSetting]:
    """The settings that the installed version has."""
    return (one for one in redis().values() if programs.has(one.since))
