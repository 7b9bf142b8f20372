"""Whether results hold for the same machine, and the same version and settings of what was tuned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Mapping

_MEMORY = "machine_memory_bytes"
_OTHERS = "other_settings"
_VERSIONS = ("ceph", "mariadb", "postgresql", "redis", "rocksdb", "valkey")
# A kernel may reserve a little more or less of the memory at its next boot.
_MEMORY_SHARE_MAX = 0.02


def machine_difference(before: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    """What tells the machines of two descriptions apart, e.g. "cpu: was A, is now B"; None: nothing does.

    What only one of them tells is no difference; a few pages of memory more or less are none either.
    """
    for key in ("machine_id", "architecture", "cpu", "cpus", "kernel", "disk_identity", *_VERSIONS, _MEMORY):
        one, other = before.get(key), now.get(key)
        same = one == other
        if key == _MEMORY and isinstance(one, int) and isinstance(other, int):
            same = abs(one - other) <= _MEMORY_SHARE_MAX * max(one, other)
        if one is not None and other is not None and not same:
            return f"{key}: was {one}, is now {other}"
    others, present = (cast("Mapping[str, str]", told.get(_OTHERS) or {}) for told in (before, now))
    for name in others:
        if present.get(name, others[name]) != others[name]:
            return f"{name}: was {others[name]}, is now {present[name]}"
    return None
