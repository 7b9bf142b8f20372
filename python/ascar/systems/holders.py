"""Who holds a knob or a server now: keepers' lock files and the kernel's list of locks; none is taken."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, cast

from ascar.catalogues.coupling import lock_of
from ascar.systems.applied import users_journals

if TYPE_CHECKING:
    from collections.abc import Iterable

LOCKS = Path("/run/ascar/locks")
_HELD = Path("/proc/locks")


def holder_of(resources: Iterable[str]) -> str | None:
    """The owner of the session that holds a knob or a server, with its keeper's process; None: nobody does.

    Args:
        resources: knobs, which root's keepers hold, with a device's name where they have one, such as
            "block.sda.read_ahead_kb"; other names, which this user's keepers hold, such as "postgresql:7".
    """
    held = _held()
    for resource in resources:
        for place in (LOCKS, users_journals() / "locks"):
            path = place / f"{lock_of(resource).replace('/', '!')}.lock"
            try:
                if path.stat().st_ino in held:
                    return _owner(path)
            except OSError:
                continue  # nobody ever held it
    return None


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
