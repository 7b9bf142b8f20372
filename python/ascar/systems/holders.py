"""Who holds a knob now: the keeper's lock files and the kernel's list of locks, read without taking one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Iterable

LOCKS = Path("/run/ascar/locks")
_HELD = Path("/proc/locks")


def holder_of(knobs: Iterable[str]) -> str | None:
    """The owner of the session that holds one of the knobs, with its keeper's process; None: nobody does.

    Args:
        knobs: names with a device's name where they have one, e.g. "block.sda.read_ahead_kb".
    """
    held = _held()
    for knob in knobs:
        for name in _coupled(knob):
            path = LOCKS / f"{name.replace('/', '!')}.lock"
            try:
                if path.stat().st_ino in held:
                    return _owner(path)
            except OSError:
                continue  # nobody ever held it
    return None


def _coupled(knob: str) -> tuple[str, ...]:
    """The names under which the keeper locks a knob: those that one write changes together share a lock."""
    kind, _, rest = knob.partition(".")
    if kind == "vm":
        return knob, knob.replace("_ratio", "_bytes")
    device, _, file = rest.partition(".")
    if kind == "block" and (file in ("scheduler", "nr_requests") or file.startswith("iosched/")):
        return (f"block.{device}.scheduler",)
    return (knob,)


def _held() -> set[int]:
    """Inodes of files that somebody holds a flock on."""
    held: set[int] = set()
    for line in _HELD.read_text("ascii", errors="replace").splitlines():
        fields = line.split()
        if len(fields) > 5 and fields[1] == "FLOCK":  # those who wait have "->" there
            held.add(int(fields[5].rpartition(":")[2]))
    return held


def _owner(path: Path) -> str:
    try:
        told = json.loads(path.read_bytes()[:4096])
    except (OSError, ValueError):
        told = None
    if not isinstance(told, dict):
        return "another session"
    known = cast("dict[str, object]", told)
    return f"{known.get('owner')!r} (keeper {known.get('pid')})"
