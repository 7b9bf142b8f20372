"""Settings of a MariaDB server as texts that can be compared and written: ON, 4096, 7.5."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascar.catalogues.mariadb import mariadb
from ascar.systems.mariadb.statements import statements_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ascar.systems.mariadb.connection import MariaSession


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
