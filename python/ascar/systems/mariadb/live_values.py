"""Settings of a MariaDB server as texts that can be compared and written: ON, 4096, 7.5."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from ascar.catalogues.mariadb import mariadb
from ascar.systems.mariadb.statements import statements_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ascar.catalogues.mariadb import MariaSetting
    from ascar.systems.mariadb.connection import MariaSession

TAKEN = """SELECT LOWER(VARIABLE_NAME), READ_ONLY, VARIABLE_SCOPE, IFNULL(NUMERIC_MIN_VALUE, ''),
 IFNULL(NUMERIC_MAX_VALUE, ''), IFNULL(ENUM_VALUE_LIST, '') FROM information_schema.SYSTEM_VARIABLES"""
"""The statement whose rows say what the server takes while it works, and of which numbers and words."""


def as_taken(rows: str) -> dict[str, MariaSetting]:
    """The settings of the catalogue that a server takes by SET GLOBAL for all clients, as it has them.

    What it takes no two values of is left out.

    Args:
        rows: the answer to `TAKEN`.
    """
    told = {row.split("\t")[0]: row.split("\t") for row in rows.splitlines() if row.count("\t") == 5}
    found: dict[str, MariaSetting] = {}
    for name, one in mariadb().items():
        _, read_only, scope, least, most, words = told.get(name, ("",) * 6)
        is_dynamic = one.context == "dynamic" and read_only == "NO" and scope == "GLOBAL"
        known, is_left = one, True
        if one.kind == "choice" and words:
            taken = {word.lower() for word in words.split(",")}
            known = replace(one, values=tuple(value for value in one.values if value.lower() in taken))
            is_left = len(known.values) > 1
        elif one.kind in ("integer", "real") and least and most:
            known = one.between(float(least), float(most))
            is_left = known.search[0] < known.search[1]
        if is_left and name in told:
            found[name] = known if is_dynamic else replace(known, context="restart")
    return found


def canonical(told: Mapping[str, str]) -> dict[str, str]:
    """The settings of the list, each as a study writes it, whatever the server's way is (75.000000).

    Args:
        told: what SHOW GLOBAL VARIABLES tells.
    """
    return {name: one.text(one.value(told[name])) for name, one in mariadb().items() if name in told}


def set_globally(session: MariaSession, texts: Mapping[str, str], present: Mapping[str, str]) -> None:
    """SET GLOBAL of each value, in an order in which the server takes each as it is.

    Raises:
        Refused: the user lacks a right.
        StageFailed: the server refuses a value, or is gone.
    """
    known = mariadb()
    values = {name: known[name].value(text) for name, text in texts.items()}
    before = {name: known[name].value(text) for name, text in present.items()}
    for statement in statements_of(values, before):
        session.ask(statement.removesuffix(";"))
