"""A configuration as an administrator puts it in force: lines of my.cnf, or SET GLOBAL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascar.catalogues.mariadb import mariadb
from ascar.quoting import comment, my_cnf_value, shell_line, sql_literal
from ascar.systems.mariadb.space import PAIRS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ascar.catalogues.mariadb import MariaSetting
    from ascar.space import Value


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
    return [f"SET GLOBAL {name} = {_sql(mariadb()[name], values[name])};" for name in order]


def forms_of(configuration: Mapping[str, Value], chosen: Collection[str]) -> Mapping[str, list[str]]:
    """The chosen settings, as lines by form; the other settings keep the server's values.

    What takes a new start cannot be set by a statement: comments tell of it.
    """
    kept = {name: value for name, value in configuration.items() if name in chosen}
    if not kept:
        return {}
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
    }


def _sql(one: MariaSetting, value: Value) -> str:
    """A value in SQL: numbers and switches plain, other words between quotes."""
    text = one.text(value)
    return sql_literal(text) if one.kind == "choice" and not text.isdigit() else my_cnf_value(text)


def _number(value: Value | None) -> float:
    return float(value) if isinstance(value, (int, float)) else 0.0
