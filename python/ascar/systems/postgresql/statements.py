"""A configuration as an administrator puts it in force: postgresql.conf, statements, Patroni, Ansible."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascar.catalogues.postgresql import postgresql
from ascar.quoting import comment, postgresql_set_word, shell_line, sql_literal, yaml_word
from ascar.space import ChangeCost
from ascar.systems.playbook import Playbook, PlaybookTask
from ascar.systems.postgresql.space import RAISED_ON_STANDBYS_FIRST

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ascar.space import Value

_RELOAD = "SELECT pg_reload_conf();"
_PATRONIS = frozenset({"cluster_name", "hot_standby", "listen_addresses", "port", "wal_log_hints"})
"""What Patroni gives the server itself, over its configuration; `wal_log_hints` is on for pg_rewind.

Patroni's manual, "Important rules". Others that it passes to the server by itself, such as
`max_worker_processes`, it takes from the dynamic configuration.
"""


def settings_of(configuration: Mapping[str, Value]) -> list[str]:
    """Lines of a configuration file."""
    known = postgresql()
    return [f"{name} = {sql_literal(known[name].text(value))}" for name, value in configuration.items()]


def forms_of(configuration: Mapping[str, Value], chosen: Collection[str]) -> Mapping[str, list[str]]:
    """The chosen settings, as lines by form; the other settings keep the server's defaults."""
    kept = {name: value for name, value in configuration.items() if name in chosen}
    if not kept:
        return {}
    statements = [f"ALTER SYSTEM SET {line};" for line in settings_of(kept)]
    restarts = sorted(name for name in kept if postgresql()[name].cost is ChangeCost.APP_RESTART)
    told = [f"-- Restart the server for: {', '.join(restarts)}"] if restarts else []
    told += [f"-- {remark}" for remark in _of_standbys(kept)]
    last = ["systemctl", "restart", "postgresql"] if restarts else ["psql", "-c", _RELOAD]
    return {
        "postgresql.conf": settings_of(kept),
        "alter-system": [*statements, _RELOAD, *told],
        "shell": [shell_line(words) for words in (*(["psql", "-c", one] for one in statements), last)],
        "patroni": _patroni(kept),
        "ansible": _playbook(kept).lines(),
    }


def _of_standbys(configuration: Mapping[str, Value]) -> list[str]:
    """What has to be heeded where standbys follow the server; Patroni heeds it by itself."""
    name = RAISED_ON_STANDBYS_FIRST
    if name not in configuration:
        return []
    return [f"Standbys take a larger {name} before their primary does, and a smaller one after it."]


def _patroni(configuration: Mapping[str, Value]) -> list[str]:
    """A part of Patroni's dynamic configuration, which `patronictl edit-config --apply FILE` merges in."""
    known = postgresql()
    kept = {name: value for name, value in configuration.items() if name not in _PATRONIS}
    left = sorted(configuration.keys() - kept.keys())
    remarks = [comment(f"Left out, because Patroni sets it itself: {name}") for name in left]
    if not kept:
        return remarks
    settings = [f"    {name}: {yaml_word(known[name].text(value))}" for name, value in kept.items()]
    return [*remarks, "postgresql:", "  parameters:", *settings]


def _playbook(configuration: Mapping[str, Value]) -> Playbook:
    """A task for each setting, with its value as SHOW writes it, so that a second run changes nothing."""
    known = postgresql()
    tasks = [
        PlaybookTask(
            name,
            "community.postgresql.postgresql_set",
            {"name": name, "value": postgresql_set_word(known[name].shown(value))},
            user="postgres",
            restarts=known[name].cost is ChangeCost.APP_RESTART,
        )
        for name, value in configuration.items()
    ]
    remarks = _of_standbys(configuration)
    return Playbook("PostgreSQL", "postgresql", tasks, service="postgresql", remarks=remarks)
