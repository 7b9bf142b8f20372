"""What a server says is in force, as values of the study."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ascar.catalogues.postgresql import postgresql

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ascar.space import Value

IN_FORCE = "SELECT name, setting, coalesce(unit, '') FROM pg_settings"
"""The statement whose rows these are."""

_SIX_DIGITS, _THOUSANDTH = 1e-5, 1e-3


def in_force(rows: str) -> dict[str, Value]:
    """The values of those settings that the catalogue has.

    Args:
        rows: the answer to `IN_FORCE`.
    """
    found: dict[str, Value] = {}
    for row in rows.splitlines():
        name, _, told = row.partition("|")
        text, _, unit = told.rpartition("|")
        if name in postgresql() and row.count("|") == 2:
            found[name] = postgresql()[name].value(text, unit)
    return found


def read_back(rows: str, wanted: Mapping[str, Value], names: Collection[str]) -> dict[str, Value]:
    """What the server says of settings whose values were set.

    Args:
        rows: the answer to `IN_FORCE`.
        wanted: the values that were set.
        names: the settings that are asked about.
    """
    told = in_force(rows)
    found: dict[str, Value] = {}
    for name in names:
        if name not in told or name not in wanted:
            continue
        value, expected = told[name], wanted[name]
        if isinstance(expected, float) and isinstance(value, (int, float)):
            # The server keeps a thousandth of a unit, and prints six digits.
            least = _THOUSANDTH if postgresql()[name].unit else 0.0
            same = math.isclose(value, expected, rel_tol=_SIX_DIGITS, abs_tol=least)
            value = expected if same else float(value)
        elif expected in _chosen_by_server(name):
            continue  # what it tells is what it chose
        found[name] = value
    return found


def _chosen_by_server(name: str) -> Collection[Value]:
    """The special values of a setting in whose place pg_settings shows what the server made of them."""
    return (-1,) if name == "wal_buffers" else ()
