"""The spaces of PostgreSQL: an expert's, and all settings that bear on speed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascar.catalogues.postgresql import postgresql
from ascar.space import Guarantee, Space

if TYPE_CHECKING:
    from collections.abc import Collection

_AUTOVACUUM_WORKERS = 3


def postgresql_space(
    parameters: str, known: Collection[str], max_connections: int, memory_bytes: int
) -> Space:
    """The settings that a study searches.

    The memory that the server may come to use at `max_connections` has to fit: shared buffers, a sort of
    `work_mem` in each connection, and maintenance in each autovacuum worker (manual, section 20.4.1). A
    smaller memory than the defaults may use allows what the defaults may use.

    Args:
        parameters: "expert" or "wide".
        known: the settings that the server has; others are left out.
        max_connections: the connections that the server takes.
        memory_bytes: the memory that the server may use.
    """
    chosen = [
        one for one in postgresql().values() if one.name in known and (one.expert or parameters == "wide")
    ]
    space = Space(tuple(one.parameter() for one in chosen), name="postgresql", allow_weaker=tuple(Guarantee))
    parts = {"shared_buffers": 1, "work_mem": max_connections, "maintenance_work_mem": _AUTOVACUUM_WORKERS}
    default = space.default()
    used_kib = sum(count * int(default[name]) for name, count in parts.items())
    total = " + ".join(f"{count} * {name}" for name, count in parts.items())
    return space.constrain(
        f"{total} <= {max(used_kib, memory_bytes // 1024)}", "min_wal_size <= max_wal_size"
    )
