"""The spaces of Redis: an expert's, and all settings that bear on speed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ascar.catalogues.redis import redis
from ascar.errors import SpaceError, StudyError
from ascar.space import Guarantee, Space
from ascar.space.parameter import identifier

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ascar.catalogues.redis import RedisSetting
    from ascar.program.redis import RedisPrograms

Given = bool | int | float | str


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
    chosen = [one for one in redis().values() if _is_searched(one, parameters, programs)]
    made = (one.parameter(settings.get(one.name)) for one in chosen)
    space = Space(tuple(made), name="redis", allow_weaker=tuple(Guarantee))
    most = {"io_threads": os.cpu_count() or 1, "repl_backlog_size": memory_bytes // 2}
    default = space.default()
    limits = (
        f"{name} <= {max(int(default[name]), number)}" for name, number in most.items() if name in space
    )
    return space.constrain(*limits)


def checked(settings: Mapping[str, Given], programs: RedisPrograms) -> dict[str, Given]:
    """What a study says of its server's settings, by the server's names.

    Raises:
        StudyError: the list has no such setting, the study may not set it, or it cannot have that value.
    """
    named = {identifier(name): one for name, one in redis().items()}
    found: dict[str, Given] = {}
    for given, value in settings.items():
        key = f"target.settings.{given[:60]}"
        one = named.get(identifier(given))
        if one is None or not programs.has(one.since):
            raise StudyError(f"{key}: must be a setting that the wide space has: {', '.join(redis())}")
        if one.set_by.startswith("target."):
            raise StudyError(f"{key}: must be left out; set {one.set_by} instead")
        try:
            wanted = one.value(str(value)) if isinstance(value, str) or one.kind == "choice" else value
            found[one.name] = one.parameter(wanted).default
        except SpaceError as error:
            raise StudyError(f"{key} = {value!r}: {error.message}") from None
    return found


def _is_searched(one: RedisSetting, parameters: str, programs: RedisPrograms) -> bool:
    return programs.has(one.since) and not one.set_by and (one.expert or parameters == "wide")
