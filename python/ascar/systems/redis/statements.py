"""A configuration as an administrator puts it in force: lines of redis.conf, or CONFIG SET."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascar.catalogues.redis import redis
from ascar.quoting import comment, redis_word, shell_line

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ascar.catalogues.redis import RedisSetting
    from ascar.space import Value

_REWRITE = ["redis-cli", "CONFIG", "REWRITE"]


def named(configuration: Mapping[str, Value]) -> list[tuple[RedisSetting, str]]:
    """The settings of a configuration, with their values as the server writes them."""
    known = {one.parameter_name: one for one in redis().values()}
    return [(known[name], known[name].text(value)) for name, value in configuration.items()]


def settings_of(configuration: Mapping[str, Value]) -> list[str]:
    """Lines of redis.conf."""
    return [f"{one.name} {redis_word(text)}" for one, text in named(configuration)]


def forms_of(configuration: Mapping[str, Value], chosen: Collection[str]) -> Mapping[str, list[str]]:
    """The chosen settings, as lines by form; the other settings keep the server's values.

    CONFIG SET cannot change what takes a new start: ECHO tells of it there, for redis-cli has no comments.
    """
    kept = named({name: value for name, value in configuration.items() if name in chosen})
    if not kept:
        return {}
    dynamic = [(one.name, text) for one, text in kept if one.context == "dynamic"]
    lines = [f"{one.name} {redis_word(text)}" for one, text in kept if one.context == "restart"]
    told = [f"write to redis.conf, and restart the server: {line}" for line in lines]
    calls = [["redis-cli", "CONFIG", "SET", *pair] for pair in dynamic]
    statements = [f"CONFIG SET {name} {redis_word(text)}" for name, text in dynamic]
    return {
        "redis.conf": [f"{one.name} {redis_word(text)}" for one, text in kept],
        "config-set": [*statements, *(f"ECHO {redis_word(line)}" for line in told)],
        "shell": [
            *(shell_line(words) for words in [*calls, *([_REWRITE] if calls else [])]),
            *(comment(line) for line in told),
        ],
    }
