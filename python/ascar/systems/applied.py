"""What `ascar apply` has in force on this machine, from the keeper's journals; read, never written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Iterator

JOURNALS = Path("/var/lib/ascar/journal")
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_SCHEMAS = (1, 2)


def applied_knobs(journals: Path = JOURNALS) -> dict[str, str]:
    """Knobs that stay set until `ascar restore`, with their values; empty where journals cannot be read.

    Only root can read them. A journal that ends with "held" is one whose changes are to stay; runtime knobs
    of an earlier boot are gone.
    """
    applied: dict[str, str] = {}
    try:
        boot_id = _BOOT_ID.read_text("ascii").strip()
        for path in sorted(journals.glob("*.jsonl")):  # by time: the latest wins
            applied.update(_held(path, boot_id))
    except OSError:
        return applied
    return applied


def _held(path: Path, boot_id: str) -> dict[str, str]:
    """The knobs of one journal; none where it is not to stay, of another boot, or not understood."""
    knobs: dict[int, tuple[str, str]] = {}
    held = False
    lines = _lines(path)
    head = next(lines, None)
    if not isinstance(head, dict) or head.get("boot_id") != boot_id or head.get("schema") not in _SCHEMAS:
        return {}
    for line in lines:
        if line == "held":
            held = True
        elif isinstance(line, dict):
            change = line.get("change", {})
            if change.get("change", {}).get("kind") == "knob":
                knobs[change["n"]] = (change["change"]["target"], change["change"]["expected"])
            for number in line.get("undone", {}).get("n", ()):
                knobs.pop(number, None)
    return dict(knobs.values()) if held else {}


def _lines(path: Path) -> Iterator[dict[str, Any] | str]:
    for text in path.read_text("utf-8", errors="replace").splitlines():
        try:
            yield cast("dict[str, Any] | str", json.loads(text))
        except ValueError:
            return  # the last line of a keeper that was killed may be half of one
