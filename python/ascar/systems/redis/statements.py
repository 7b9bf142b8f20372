"""A configuration as an administrator puts it in force: lines of redis.conf, CONFIG SET, Ansible."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascar.catalogues.redis import redis
from ascar.quoting import comment, redis_word, shell_line
from ascar.systems.playbook import Playbook, PlaybookTask

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from ascar.catalogues.redis import RedisSetting
    from ascar.space import Value
    from ascar.systems.playbook import Yaml

_REWRITE = ["redis-cli", "CONFIG", "REWRITE"]


def named(configuration: Mapping[str, Value]) -> list[tuple[RedisSetting, str]]:
    """The settings of a configuration, with their values as the server writes them."""
    known = {one.parameter_name: one for one in redis().values()}
    return [(known[name], known[name].text(value)) for name, value in configuration.items()]


def settings_of(configuration: Mapping[str, Value]) -> list[str]:
    """Lines of redis.conf."""
    return [f"{one.name} {redis_word(text)}" for one, text in named(configuration)]


def _file_lines(settings: Sequence[tuple[RedisSetting, str]]) -> list[str]:
    """Lines for the end of a redis.conf. There, `save` adds to the lines above it, unless these are reset."""
    return [
        line
        for one, text in settings
        for line in (*(['save ""'] if one.name == "save" and text else []), f"{one.name} {redis_word(text)}")
    ]


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
        "redis.conf": _file_lines(kept),
        "config-set": [*statements, *(f"ECHO {redis_word(line)}" for line in told)],
        "shell": [
            *(shell_line(words) for words in [*calls, *([_REWRITE] if calls else [])]),
            *(comment(line) for line in told),
        ],
        "ansible": _playbook(kept).lines(),
    }


def _playbook(settings: list[tuple[RedisSetting, str]]) -> Playbook:
    """A block at the end of redis.conf; then a restart where a setting needs one, or CONFIG SET of each."""
    restarts = any(one.context == "restart" for one, _ in settings)
    lines = _file_lines(settings)
    block: dict[str, Yaml] = {
        "path": "/etc/redis/redis.conf",
        "marker": "# {mark} ascar",
        "block": "\n".join(lines),
    }
    tasks = [PlaybookTask("redis.conf", "ansible.builtin.blockinfile", block, restarts=restarts)]
    if not restarts:
        tasks += [
            PlaybookTask(
                one.name, "community.general.redis", {"command": "config", "name": one.name, "value": text}
            )
            for one, text in settings
        ]
    return Playbook("Redis", "redis", tasks, service="redis-server")
