"""Steps from one version of the schema to the next; a step once released never changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import sqlalchemy as sa

__all__ = ["MIGRATIONS"]

MIGRATIONS: Mapping[int, Callable[[sa.Connection], None]] = {}
"""From a version to the step that leads to the next one."""
