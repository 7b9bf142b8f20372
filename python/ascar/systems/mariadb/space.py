"""The spaces of MariaDB: an expert's, and all settings that bear on speed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ascar.catalogues.mariadb import mariadb
from ascar.errors import StudyError
from ascar.expression import parse
from ascar.space import Guarantee, Space

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ascar.catalogues.mariadb import MariaSetting
    from ascar.catalogues.server_setting import RankedSetting
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
    "mrr_buffer_size",
    "query_prealloc_size",
    "transaction_prealloc_size",
    "net_buffer_length",
    "binlog_cache_size",
    "binlog_stmt_cache_size",
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
_CHUNK = ("innodb_buffer_pool_chunk_size", "innodb_buffer_pool_size")
"""A chunk is no larger than the pool; before 10.11.12 the server would make it so."""
LEAVES_SOMETHING: Mapping[str, str] = {
    "innodb_checksum_algorithm": "new files keep its form; the strict ones refuse pages of older servers",
    "innodb_stats_auto_recalc": "statistics that were counted meanwhile stay on the disk",
    "innodb_stats_persistent_sample_pages": "statistics that were counted meanwhile stay on the disk",
    "innodb_stats_method": "statistics that were counted meanwhile stay on the disk",
    "innodb_fill_factor": "indexes that were made meanwhile stay as full",
    "innodb_autoextend_increment": "the system tablespace stays as large",
    "binlog_checksum": "each change begins a new file of the binary log",
    "max_binlog_size": "files of the binary log stay as large",
    "log_bin_compress": "events of the binary log stay compressed",
    "log_bin_compress_min_len": "events of the binary log stay compressed",
    "host_cache_size": "which hosts are blocked is forgotten",
}
"""Settings that a study of a server in use never changes, for what is left of a trial."""
EXAMPLES = {
    "allow_cost": '#allow_cost = ["dyn-app"]',
    "weaker": "availability",
    "pinned": 'innodb_flush_neighbors = "0"',
    "constraint": "innodb_io_capacity <= 5000",
    "forbidden": 'innodb_adaptive_hash_index = true, innodb_flush_neighbors = "2"',
}
"""What a study file to start from shows of `[space]`."""

_FILES_OF_SERVER = 31  # beside those of connections and tables (init_common_variables in mysqld.cc)
_IO_CAPACITY_MAX_LEAST = 2000


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


def settings_in_force(
    programs: MariaPrograms,
    max_connections: int,
    known: Mapping[str, RankedSetting],
    given: Mapping[str, Given],
) -> dict[str, Given]:
    """The settings of a server of today: those that are given, and others that the server changes for them.

    Args:
        programs: the version.
        max_connections: the connections that the server takes.
        known: the settings that it has.
        given: those that its my.cnf has, by name.

    Raises:
        StudyError: the server would make another value of one.
    """
    alone = programs.settings(max_connections)
    told = programs.settings(
        max_connections, {name: known[name].text(value) for name, value in given.items()}
    )
    # Of a setting whose own default it does not tell, it tells nothing else either.
    asked = [name for name, one in known.items() if one.value(alone.get(name, "")) == one.default]
    made = {name: known[name].value(told.get(name, "")) for name in asked}
    for name, value in given.items():
        if name in made and made[name] != value:
            raise StudyError(
                f"target.settings.{name} = {value!r}: MariaDB would make {made[name]!r:.40} of it"
            )
    others = {name: value for name, value in made.items() if value != known[name].default}
    return _as_innodb_begins({**others, **given}, {name: one.default for name, one in known.items()})


def _as_innodb_begins(given: Mapping[str, Given], default: Mapping[str, Given]) -> dict[str, Given]:
    """Given settings, and what InnoDB makes of others when it starts (innodb_init_params in ha_innodb.cc)."""
    found, today = dict(given), {**default, **given}
    if "innodb_io_capacity" in given and "innodb_io_capacity_max" not in given:
        most = max(2 * int(today["innodb_io_capacity"]), _IO_CAPACITY_MAX_LEAST)
        found["innodb_io_capacity_max"] = today["innodb_io_capacity_max"] = most
    for lower, upper in PAIRS:
        if {lower, upper} <= today.keys() and float(today[lower]) > float(today[upper]):
            found[lower] = today[upper]
    return found


def mariadb_space(
    parameters: str,
    known: Sequence[MariaSetting],
    given: Mapping[str, Given],
    max_connections: int,
    memory_bytes: int,
    *,
    files: int | None = None,
    live: bool = False,
) -> Space:
    """The settings that a study searches.

    The memory that the server may come to use has to fit: what it has once, what each of `max_connections`
    has, and a temporary table for each processor, since a statement that builds one keeps it busy. A smaller
    memory than the server of today may use allows what that may use. The redo log is no larger than the
    memory, for the changed pages that it stands for have to be there; the server keeps no more threads than
    connections; and it opens a table by two files, of which there are only so many.

    Args:
        parameters: "expert" or "wide".
        known: those that the server has.
        given: the values in force before the study, by name.
        max_connections: the connections that the server takes.
        memory_bytes: the memory that the server may use.
        files: the files that it may have open. None: nobody knows.
        live: whether people use the server: what takes a new start, what each session copies when it begins,
            and what leaves something behind then stays as it is.
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
    if files is not None:
        most["table_open_cache"] = (files - max_connections - _FILES_OF_SERVER) // 2
    chosen = [one for one in known if one.is_searched(parameters) and (not live or _is_live(one))]
    made = (
        one.up_to(most.get(one.name), today[one.name]).parameter_in_force(today[one.name]) for one in chosen
    )
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
        *(f"{lower} <= {upper}" for lower, upper in (*PAIRS, _CHUNK) if lower in space and upper in space),
    )


def live_mariadb_space(
    parameters: str,
    told: Mapping[str, str] | None,
    memory_bytes: int,
    taken: Mapping[str, MariaSetting] | None = None,
) -> Space:
    """The settings of a server that people use, with the values in force as defaults.

    Args:
        parameters: "expert" or "wide".
        told: what the server says of its settings. None: nobody has asked it yet.
        memory_bytes: the memory that the server may use.
        taken: the settings as the server takes them. None: as the list has them.
    """
    listed = (mariadb() if taken is None else taken).values()
    every = [replace(one, when="") for one in listed if told is None or _counts(one, told)]
    if told is None:
        return mariadb_space(parameters, tuple(every), {}, _CONNECTIONS, memory_bytes, live=True)
    known = (one.found(told[one.name]) for one in every)
    connections = int(told.get("max_connections", _CONNECTIONS))
    usable = tuple(one for one in known if one is not None)
    files = int(told["open_files_limit"]) if told.get("open_files_limit", "").isdigit() else None
    return mariadb_space(parameters, usable, {}, connections, memory_bytes, files=files, live=True)


def _is_live(one: MariaSetting) -> bool:
    """Whether a change reaches every client at once, and nothing is left of it when it is taken back."""
    return one.context == "dynamic" and one.name not in LEAVES_SOMETHING


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
