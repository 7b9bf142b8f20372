"""The spaces of MariaDB: an expert's, and all settings that bear on speed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ascar.catalogues.mariadb import mariadb
from ascar.expression import parse
from ascar.space import Guarantee, Space

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ascar.catalogues.mariadb import MariaSetting
    from ascar.program.mariadb import MariaPrograms
    from ascar.systems.own_server import Given

_ONCE = (
    "innodb_buffer_pool_size",
    "innodb_log_buffer_size",
    "key_buffer_size",
    "aria_pagecache_buffer_size",
    "query_cache_size",
)
_EACH = (
    "sort_buffer_size",
    "join_buffer_size",
    "read_buffer_size",
    "read_rnd_buffer_size",
    "binlog_cache_size",
)
_CONNECTIONS = 151  # the default of max_connections
_STACK_BYTES = 299_008
"""The stack of a connection's thread (thread_stack)."""
BY_FILE_SYSTEM = ("innodb_log_file_buffering", "innodb_data_file_buffering")
"""Settings that the server decides by itself where a file system needs a cache."""
PAIRS = (
    ("innodb_io_capacity", "innodb_io_capacity_max"),
    ("innodb_max_dirty_pages_pct_lwm", "innodb_max_dirty_pages_pct"),
)
"""Settings of which the server lowers the first to the second, or raises the second to the first."""


def settings_here(
    programs: MariaPrograms, max_connections: int, *, binary_log: bool
) -> Iterator[MariaSetting]:
    """The settings that the installed server has, with its own defaults.

    Args:
        programs: the version.
        max_connections: the connections that the server takes.
        binary_log: whether the server keeps a binary log, without which some have no effect.
    """
    told = programs.settings(max_connections)
    for one in mariadb().values():
        if one.name in told and (binary_log or not one.binary_log):
            yield one.installed(told[one.name])


def mariadb_space(
    parameters: str,
    known: Sequence[MariaSetting],
    given: Mapping[str, Given],
    max_connections: int,
    memory_bytes: int,
    *,
    live: bool = False,
) -> Space:
    """The settings that a study searches.

    The memory that the server may come to use has to fit: what it has once, what each of `max_connections`
    has, and a temporary table for each processor, since a statement that builds one keeps it busy. A smaller
    memory than the server of today may use allows what that may use. The redo log is no larger than the
    memory, for the changed pages that it stands for have to be there; and the server keeps no more threads
    than connections.

    Args:
        parameters: "expert" or "wide".
        known: those that the server has.
        given: the values in force before the study, by name.
        max_connections: the connections that the server takes.
        memory_bytes: the memory that the server may use.
        live: whether people use the server: what takes a new start, and what each session copies when it
            begins, then stays as it is.
    """
    today = {one.name: given.get(one.name, one.default) for one in known}
    counts = {
        **dict.fromkeys(_ONCE, 1),
        **dict.fromkeys(_EACH, max_connections),
        "tmp_table_size": os.cpu_count() or 1,
    }
    counts = {name: count for name, count in counts.items() if name in today}
    most = {name: memory_bytes // count for name, count in counts.items()}
    most |= {"innodb_log_file_size": memory_bytes, "thread_cache_size": max_connections}
    chosen = [one for one in known if one.is_searched(parameters) and (not live or one.context == "dynamic")]
    made = (one.up_to(most.get(one.name), today[one.name]).parameter(today[one.name]) for one in chosen)
    space = Space(tuple(made), name="mariadb", allow_weaker=tuple(Guarantee))
    stacks_bytes = max_connections * _STACK_BYTES
    used_bytes = stacks_bytes + sum(count * int(today[name]) for name, count in counts.items())
    others_bytes = stacks_bytes + sum(
        count * int(today[name]) for name, count in counts.items() if name not in space
    )
    total = " + ".join(
        name if count == 1 else f"{count} * {name}" for name, count in counts.items() if name in space
    )
    return space.constrain(
        *((f"{total} <= {max(used_bytes, memory_bytes) - others_bytes}",) if total else ()),
        *(f"{lower} <= {upper}" for lower, upper in PAIRS if lower in space and upper in space),
    )


def live_mariadb_space(parameters: str, told: Mapping[str, str] | None, memory_bytes: int) -> Space:
    """The settings of a server that people use, with the values in force as defaults.

    Args:
        parameters: "expert" or "wide".
        told: what the server says of its settings. None: nobody has asked it yet.
        memory_bytes: the memory that the server may use.
    """
    every = [replace(one, when="") for one in mariadb().values() if told is None or _counts(one, told)]
    if told is None:
        return mariadb_space(parameters, tuple(every), {}, _CONNECTIONS, memory_bytes, live=True)
    known = (one.found(told[one.name]) for one in every)
    connections = int(told.get("max_connections", _CONNECTIONS))
    usable = tuple(one for one in known if one is not None)
    return mariadb_space(parameters, usable, {}, connections, memory_bytes, live=True)


def _counts(one: MariaSetting, told: Mapping[str, str]) -> bool:
    """Whether a server has a setting, and it has an effect there."""
    if one.name not in told or one.name in BY_FILE_SYSTEM:
        return False
    if one.binary_log and told.get("log_bin") != "ON":
        return False
    if not one.when:
        return True
    condition = parse(one.when)
    known = {name: mariadb()[name].value(told[name]) for name in condition.names if name in told}
    return set(known) == set(condition.names) and bool(condition.evaluate(known))
