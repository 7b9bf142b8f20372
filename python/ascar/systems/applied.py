"""What `ascar apply` has in force on this machine, from the keepers' journals; read, never written."""

from __future__ import annotations

import json
import math
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ascar.results.machine import PendingConfirmation

if TYPE_CHECKING:
    from collections.abc import Iterator

JOURNALS = Path("/var/lib/ascar/journal")
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_SCHEMAS = (1, 2, 3, 4, 5)


@dataclass(slots=True)
class _Told:
    """What a journal tells.

    Attributes:
        owner: whose changes these are.
        of_this_boot: whether they were made since the machine booted.
        knobs: the changed knobs with their values, by the number of the change.
        changes: the numbers of all changes that are in force.
        held: whether they stay.
        until: if they stay only when they are confirmed: the deadline, in seconds of the day's clock and in
            milliseconds since the boot.
    """

    owner: str
    of_this_boot: bool
    knobs: dict[int, tuple[str, str]] = field(default_factory=dict[int, tuple[str, str]])
    changes: set[int] = field(default_factory=set[int])
    held: bool = False
    until: tuple[int, int] | None = None


def applied_knobs(journals: Path = JOURNALS) -> dict[str, str]:
    """Knobs that stay set until `ascar restore`, with their values; empty where journals cannot be read.

    Only root can read them. Those that wait for a confirmation are in force as well. Runtime knobs of an
    earlier boot are gone.
    """
    applied: dict[str, str] = {}
    for told in _all(journals):  # by time: the latest wins
        if told.of_this_boot and (told.held or told.until is not None):
            applied.update(told.knobs.values())
    return applied


def unconfirmed(*journals: Path) -> tuple[PendingConfirmation, ...]:
    """What waits for its confirmation, as far as this user may read journals: root's, and their own.

    Args:
        journals: the directories of journals; none: root's and the user's.
    """
    now_ms = time.clock_gettime(time.CLOCK_BOOTTIME) * 1000
    found: list[PendingConfirmation] = []
    for place in journals or (JOURNALS, users_journals()):
        for told in _all(place):
            if told.until is not None and not told.held and told.of_this_boot:
                until_unix_s, until_boot_ms = told.until
                left_s = math.floor((until_boot_ms - now_ms) / 1000)
                if left_s >= 0:
                    found.append(PendingConfirmation(told.owner, left_s, until_unix_s, len(told.changes)))
    return tuple(found)


def users_journals() -> Path:
    """Where the keeper of this user has its journals, and its locks below them."""
    state = os.environ.get("XDG_STATE_HOME") or Path("~/.local/state").expanduser()
    return Path(state, "ascar/journal")


def _all(journals: Path) -> Iterator[_Told]:
    try:
        boot_id = _BOOT_ID.read_text("ascii").strip()
        paths = sorted(journals.glob("*.jsonl"))
    except OSError:
        return
    for path in paths:
        try:
            told = _told(path, boot_id)
        except (OSError, KeyError, TypeError, ValueError, AttributeError):
            continue  # gone meanwhile, not to be read, or not understood: `ascar restore` names it
        if told is not None:
            yield told


def _told(path: Path, boot_id: str) -> _Told | None:
    """What one journal tells; None where it is of another format."""
    lines = _lines(path)
    head = next(lines, None)
    if not isinstance(head, dict) or head.get("schema") not in _SCHEMAS:
        return None
    told = _Told(str(head.get("owner")), head.get("boot_id") == boot_id)
    for line in lines:
        if line == "held":
            told.held = True
        elif isinstance(line, dict):
            _take(told, line)
    return told


def _take(told: _Told, line: dict[str, Any]) -> None:
    if "unconfirmed" in line:
        until = line["unconfirmed"]["until"]
        told.until = int(until["unix_s"]), int(until["boot_ms"])
    if "change" in line:
        change = line["change"]
        told.changes.add(change["n"])
        if change["change"].get("kind") == "knob":
            told.knobs[change["n"]] = (change["change"]["target"], change["change"]["expected"])
    for number in line.get("undone", {}).get("n", ()):
        told.knobs.pop(number, None)
        told.changes.discard(number)


def _lines(path: Path) -> Iterator[dict[str, Any] | str]:
    for text in path.read_text("utf-8", errors="replace").splitlines():
        try:
            yield cast("dict[str, Any] | str", json.loads(text))
        except ValueError:
            return  # the last line of a keeper that was killed may be half of one
