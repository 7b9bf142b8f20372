"""What a server says is in force, as values of the study."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ascar.catalogues.postgresql import postgresql

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ascar.catalogues.postgresql import PostgresSetting
    from ascar.space import Value

IN_FORCE = "SELECT name, setting, coalesce(unit, '') FROM pg_settings"
"""The statement whose rows these are."""

TAKEN = """SELECT name, vartype, context, coalesce(unit, ''),
 CASE WHEN name IN ('min_wal_size', 'max_wal_size') THEN
 (SELECT (2 * setting::bigint / 1048576)::text FROM pg_settings WHERE name = 'wal_segment_size')
 ELSE coalesce(min_val, '') END, coalesce(max_val, ''), coalesce(array_to_string(enumvals, ','), '')
 FROM pg_settings WHERE context <> 'internal' AND name !~ '[.]'"""
"""The statement whose rows say what the server takes.

With less than two segments of the log it takes a reload, and does not start (ReadControlFile in xlog.c).
"""

CHOSEN = "SELECT name FROM pg_settings WHERE source IN ('default', 'override')"
"""The statement whose rows are the settings that nobody has set: the server may have chosen their values."""

_CHOSEN_BY_SERVER = {
    "wal_buffers": -1,
    "commit_timestamp_buffers": 0,
    "io_max_concurrency": -1,
    "subtransaction_buffers": 0,
    "transaction_buffers": 0,
}
"""Settings with a special value in whose place pg_settings shows what the server made of it."""

_KINDS = {"bool": "boolean", "integer": "integer", "real": "real", "enum": "choice"}
"""The kinds of the catalogue, by `vartype`."""

_CONTEXTS = ("postmaster", "sighup", "superuser", "user")

_SIX_DIGITS, _THOUSANDTH = 1e-5, 1e-3


def as_taken(settings: Mapping[str, PostgresSetting], rows: str) -> dict[str, PostgresSetting]:
    """Settings of the catalogue as a server has them: in its contexts, and with the values that it takes.

    What it has not, has in another kind, or takes no two values of is left out.

    Args:
        settings: the settings, as its version has them.
        rows: the answer to `TAKEN`.
    """
    told = {row.split("|")[0]: row.split("|") for row in rows.splitlines() if row.count("|") == 6}
    found: dict[str, PostgresSetting] = {}
    for name, one in settings.items():
        _, kind, context, unit, least, most, words = told.get(name, ("",) * 7)
        if _KINDS.get(kind) != one.kind or context not in _CONTEXTS:
            continue
        known, is_left = replace(one, context=context), True
        if one.kind == "choice":
            known = replace(known, values=tuple(value for value in one.values if value in words.split(",")))
            is_left = len(known.values) > 1
        elif least and most:
            known = known.narrowed(least, most, unit)
            is_left = known.search[0] < known.search[1]
        if is_left:
            found[name] = known
    return found


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


def others_of(rows: str) -> dict[str, str]:
    """The values of settings as texts: those of the catalogue, and how many connections the server takes.

    What the server chooses when it starts is left out.

    Args:
        rows: the answer to `IN_FORCE`.
    """
    found = {
        name: postgresql()[name].shown(value)
        for name, value in in_force(rows).items()
        if name not in _CHOSEN_BY_SERVER
    }
    connections = re.search(r"^max_connections\|(\d+)\|", rows, re.MULTILINE)
    return found if connections is None else {**found, "max_connections": connections[1]}


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
        elif expected == _CHOSEN_BY_SERVER.get(name):
            continue  # what it tells is what it chose
        found[name] = value
    return found


def as_chosen(present: Mapping[str, Value], rows: str) -> dict[str, Value]:
    """The values in force, with the special value where the server chooses: it chooses anew when it starts.

    Args:
        present: the values in force.
        rows: the answer to `CHOSEN`.
    """
    free = {name: value for name, value in _CHOSEN_BY_SERVER.items() if name in rows.split()}
    return {name: free.get(name, value) for name, value in present.items()}
