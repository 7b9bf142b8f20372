"""The spaces of PostgreSQL: an expert's, and all settings that bear on speed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from ascar.catalogues.postgresql import postgresql_of
from ascar.space import Guarantee, Space

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ascar.catalogues.postgresql import PostgresSetting
    from ascar.program.postgresql import Programs

_AUTOVACUUM_WORKERS = 3


def settings_here(programs: Programs) -> Iterator[PostgresSetting]:
    """The settings that the installed server has, with the values that it was built for."""
    known = programs.settings()
    for setting in postgresql_of(programs.major).values():
        if setting.name not in known:
            continue
        if setting.kind != "choice":
            yield setting
        elif len(values := tuple(one for one in setting.values if programs.takes(setting.name, one))) > 1:
            yield replace(setting, values=values)


def postgresql_space(
    parameters: str, settings: Iterable[PostgresSetting], max_connections: int, memory_bytes: int
) -> Space:
    """The settings that a study searches.

    The memory that the server may come to use at `max_connections` has to fit: shared buffers, a sort of
    `work_mem` in each connection, and maintenance in each autovacuum worker (manual, section 20.4.1). A
    smaller memory than the defaults may use allows what the defaults may use.

    Args:
        parameters: "expert" or "wide".
        settings: those that the server has.
        max_connections: the connections that the server takes.
        memory_bytes: the memory that the server may use.
    """
    chosen = [one for one in settings if one.expert or parameters == "wide"]
    space = Space(tuple(one.parameter() for one in chosen), name="postgresql", allow_weaker=tuple(Guarantee))
    parts = {"shared_buffers": 1, "work_mem": max_connections, "maintenance_work_mem": _AUTOVACUUM_WORKERS}
    default = space.default()
    used_kib = sum(count * int(default[name]) for name, count in parts.items())
    total = " + ".join(f"{count} * {name}" for name, count in parts.items())
    bounds = [f"{total} <= {max(used_kib, memory_bytes // 1024)}", "min_wal_size <= max_wal_size"]
    if "io_max_combine_limit" in space.names:
        bounds.append("io_combine_limit <= io_max_combine_limit")
    return space.constrain(*bounds)
