"""Checksums of what the history holds: damage on the disk is named, and never read as other data.

Each covers all columns of its rows, their key among them: a row that has become another trial's does not fit.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from ascar.errors import HistoryError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_NUMBERS = ("score", "duration_s", "value")
_OWN = ("checksum", "readings_checksum")
# Columns that came later count where they say something: the checksums from before them still fit.
_LATER = ("imported",)


def trial_checksum(row: Mapping[str, Any], metrics: Iterable[Mapping[str, Any]]) -> str:
    """Of a trial's row with its run's id, and of the rows of its metrics.

    Args:
        row: the columns of the trial; checksums among them are left out.
        metrics: the rows of its metrics, in any order.
    """
    rows = sorted(metrics, key=_by_name)
    named = [(one["name"], _number(one["value"])) for one in rows]
    return _digest({"trial": _plain(row), "metrics": named})


def readings_checksum(readings: Iterable[Mapping[str, Any]]) -> str:
    """Of all unit readings of a trial.

    Args:
        readings: their rows, in any order.
    """
    rows = sorted(readings, key=_by_name)
    return _digest(
        [[one["name"], one["count"], _hex(one["seconds_f64"]), _hex(one["values_f64"])] for one in rows]
    )


def run_checksum(row: Mapping[str, Any], machine: str) -> str:
    """Of a run's row and the description of its machine.

    Args:
        row: the columns of the run; its checksum among them is left out.
        machine: the description, as its row has it.
    """
    return _digest({"run": _plain(row), "machine": machine})


def see(expected: str | None, found: str, where: str) -> None:
    """See that a checksum fits.

    Raises:
        HistoryError: it does not.
    """
    if expected != found:
        raise HistoryError(
            f"{where}: is damaged, its checksum does not fit; put back a copy of the history "
            "(`ascar history check` names all that is damaged)"
        )


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _number(value) if name in _NUMBERS else value
        for name, value in row.items()
        if name not in _OWN and (value is not None or name not in _LATER)
    }


# A damaged row may hold anything in any column: bytes where text was, or text where a number was.


def _by_name(row: Mapping[str, Any]) -> tuple[bool, str]:
    name = row["name"]
    return not isinstance(name, str), name if isinstance(name, str) else repr(name)


def _number(value: Any) -> Any:
    return float(value) + 0.0 if isinstance(value, (int, float)) else value  # SQLite keeps no negative zero


def _hex(blob: Any) -> str:
    content = blob if isinstance(blob, bytes) else repr(blob).encode()
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), default=repr)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
