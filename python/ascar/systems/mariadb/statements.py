"""A configuration as an administrator puts it in force: lines of my.cnf, or SET GLOBAL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascar.catalogues.mariadb import mariadb
from ascar.quoting import comment, my_cnf_value, shell_line, sql_literal
from ascar.systems.mariadb.space import PAIRS
from ascar.systems.playbook import Playbook, PlaybookTask

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ascar.catalogues.mariadb import MariaSetting
    from ascar.space import Value
    from ascar.systems.playbook import Yaml

_DERIVED = {"innodb_io_capacity": "innodb_io_capacity_max"}
"""Settings that the server derives from another one where my.cnf names that one alone."""
_FILE = "/etc/mysql/mariadb.conf.d/90-ascar.cnf"
_REMARKS = (
    "Fedora and its like read /etc/my.cnf.d in place of /etc/mysql/mariadb.conf.d.",
    "community.mysql connects as the options login_unix_socket, login_user and login_password say.",
)


def settings_of(configuration: Mapping[str, Value]) -> list[str]:
    """Lines of my.cnf, below the name of its section."""
    known = mariadb()
    return [f"{name} = {my_cnf_value(known[name].text(value))}" for name, value in configuration.items()]


def statements_of(values: Mapping[str, Value], before: Mapping[str, Value]) -> list[str]:
    """SET GLOBAL for settings, in an order in which the server takes each as it is.

    Args:
        values: what is set.
        before: what is in force.
    """
    return [
        f"SET GLOBAL {name} = {_sql(mariadb()[name], values[name])};" for name in _ordered(values, before)
    ]


def _ordered(values: Mapping[str, Value], before: Mapping[str, Value]) -> list[str]:
    """The names of settings in that order."""
    order = list(values)
    for lower, upper in PAIRS:
        if lower in values and upper in values:
            # The upper one first where it does not fall below the lower one that is in force.
            first, second = (
                (upper, lower) if _number(values[upper]) >= _number(before.get(lower)) else (lower, upper)
            )
            at = min(order.index(lower), order.index(upper))
            order = [name for name in order if name not in (lower, upper)]
            order[at:at] = [first, second]
    return order


def forms_of(configuration: Mapping[str, Value], chosen: Collection[str]) -> Mapping[str, list[str]]:
    """The chosen settings, as lines by form; the other settings keep the server's values.

    What takes a new start cannot be set by a statement: comments tell of it. A setting that the server
    derives from a chosen one stands beside it, and so does what would undo a chosen one.
    """
    with_others = {*chosen, *(_DERIVED[name] for name in chosen if name in _DERIVED)}
    kept = {name: value for name, value in configuration.items() if name in with_others}
    if not kept:
        return {}
    if kept.get("query_cache_type") == "OFF":
        kept["query_cache_size"] = 0  # any other size in my.cnf turns it on again
    known = mariadb()
    restart = settings_of({name: value for name, value in kept.items() if known[name].context == "restart"})
    told = [f"write below [mysqld] in my.cnf, and restart the server: {line}" for line in restart]
    defaults = {name: one.default for name, one in known.items()}
    dynamic = {name: value for name, value in kept.items() if known[name].context != "restart"}
    statements = statements_of(dynamic, defaults)
    return {
        "my.cnf": ["[mysqld]", *settings_of(kept)],
        "set-global": [*statements, *(comment(line) for line in told)],
        "shell": [
            *(shell_line(["mariadb", "-e", statement]) for statement in statements),
            *(comment(line) for line in told),
        ],
        "ansible": _playbook(kept).lines(),
    }


def _playbook(settings: Mapping[str, Value]) -> Playbook:
    """A file beside my.cnf; then a restart where a setting needs one, or SET GLOBAL of each."""
    known = mariadb()
    restarts = any(known[name].context == "restart" for name in settings)
    file: dict[str, Yaml] = {"path": _FILE, "section": "mysqld", "mode": "0644"}
    texts = {name: known[name].text(value) for name, value in settings.items()}
    tasks = [
        PlaybookTask(
            f"{name} in {_FILE}",
            "community.general.ini_file",
            {**file, "option": name, "value": text},
            restarts=restarts,
        )
        for name, text in texts.items()
    ]
    if not restarts:
        tasks += [
            PlaybookTask(name, "community.mysql.mysql_variables", {"variable": name, "value": texts[name]})
            for name in _ordered(settings, {name: known[name].default for name in settings})
        ]
    return Playbook("MariaDB", "mariadb", tasks, service="mariadb", remarks=_REMARKS)


def _sql(one: MariaSetting, value: Value) -> str:
    """A value in SQL: numbers and switches plain, other words between quotes."""
    text = one.text(value)
    return sql_literal(text) if one.kind == "choice" and not text.isdigit() else my_cnf_value(text)


def _number(value: Value | None) -> float:
    return float(value) if isinstance(value, (int, float)) else 0.0
