"""A configuration as an administrator puts it in force: lines of postgresql.conf, or statements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascar.catalogues.postgresql import postgresql
from ascar.quoting import shell_line, sql_literal
from ascar.space import ChangeCost

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ascar.space import Value

_RELOAD = "SELECT pg_reload_conf();"


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
    last = ["systemctl", "restart", "postgresql"] if restarts else ["psql", "-c", _RELOAD]
    return {
        "postgresql.conf": settings_of(kept),
        "alter-system": [*statements, _RELOAD, *told],
        "shell": [shell_line(words) for words in (*(["psql", "-c", one] for one in statements), last)],
    }
