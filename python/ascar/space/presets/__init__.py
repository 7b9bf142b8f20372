"""Spaces that come with the package, by name."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from ascar.errors import SpaceError
from ascar.space.presets.storage_v1 import storage_v1, storage_v2
from ascar.space.presets.storage_v3 import storage_v3
from ascar.space.presets.storage_v4 import storage_v4
from ascar.space.presets.storage_v5 import storage_v5
from ascar.space.suggestion import hint

if TYPE_CHECKING:
    from ascar.space.space import Space

__all__ = ["PRESETS", "preset"]

_MAKERS = {
    "storage-v1": storage_v1,
    "storage-v2": storage_v2,
    "storage-v3": storage_v3,
    "storage-v4": storage_v4,
    "storage-v5": storage_v5,
}

PRESETS = tuple(_MAKERS)
"""Their names."""


@cache
def preset(name: str) -> Space:
    """The space of that name, without the values that promise less than the default.

    `preset(name).permit_weaker(Guarantee)` has those values too.

    Raises:
        SpaceError: there is none.
    """
    if name not in _MAKERS:
        raise SpaceError(f"preset {name!r} is unknown; allowed: {', '.join(_MAKERS)}{hint(name, _MAKERS)}")
    return _MAKERS[name]()
