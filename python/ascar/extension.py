"""How kinds of things are found by name: entry points, ours and third parties' alike."""

from __future__ import annotations

import sys
from contextlib import suppress
from difflib import get_close_matches
from functools import lru_cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ascar.errors import EnvironmentLacks, StudyError
from ascar.extras import lacking

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint, EntryPoints


def entries(group: str) -> EntryPoints:
    """The entry points of a group; read again only after a package was installed or removed."""
    changed: list[tuple[str, int]] = []
    for folder in sys.path:
        with suppress(OSError, ValueError):
            changed.append((folder, Path(folder).stat().st_mtime_ns))
    return _all_entries(tuple(changed)).select(group=group)


@lru_cache(maxsize=1)
def _all_entries(changed: tuple[tuple[str, int], ...]) -> EntryPoints:  # noqa: ARG001 - the key
    # A file of each installed package is read: milliseconds.
    found: Any = entry_points()
    return found


def kinds(group: str) -> list[str]:
    """Names registered in an entry-point group such as "ascar.systems", sorted."""
    return sorted({entry.name for entry in entries(group)})


def find(group: str, name: str, key: str) -> EntryPoint:
    """Where the object is that `name` stands for in `group`; it is not loaded.

    Args:
        group: entry-point group, e.g. "ascar.optimizers".
        name: the kind asked for.
        key: the key that the name came from, for the error, e.g. "optimizer.kind".

    Raises:
        StudyError: no such kind; names the nearest one.
    """
    found = [entry for entry in entries(group) if entry.name == name]
    if not found:
        known = kinds(group)
        near = get_close_matches(name, known, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise StudyError(f"{key} = {name!r}: must be one of {', '.join(known)}{hint}")
    return found[0]


def load(group: str, name: str, key: str) -> Any:
    """The object that `name` stands for in `group`; see `find`.

    Raises:
        StudyError: no such kind; names the nearest one.
        EnvironmentLacks: the kind is registered, but its package cannot be imported.
    """
    found = find(group, name, key)
    try:
        return found.load()
    except ImportError as error:
        if (lack := lacking(error)) is not None:
            raise EnvironmentLacks(f"{key} = {name!r}: {lack.message}") from error
        raise EnvironmentLacks(f"{key} = {name!r}: its package cannot be imported: {error}") from error
