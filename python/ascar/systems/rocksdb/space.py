"""The spaces of RocksDB: an expert's, and all options that bear on speed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from ascar.catalogues.rocksdb import rocksdb
from ascar.expression import parse
from ascar.space import Guarantee, Space

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ascar.catalogues.rocksdb import RocksOption
    from ascar.program.rocksdb import OptionsInForce
    from ascar.systems.own_server import Given

_BUFFERS, _BUFFER, _CACHE = "max_write_buffer_number", "write_buffer_size", "block_cache"
_ASCENDING = (
    ("level0_file_num_compaction_trigger", "<=", "level0_slowdown_writes_trigger"),
    ("level0_slowdown_writes_trigger", "<=", "level0_stop_writes_trigger"),
    ("min_write_buffer_number_to_merge", "<", _BUFFERS),
    ("soft_pending_compaction_bytes_limit", "<=", "hard_pending_compaction_bytes_limit"),
)
"""Options of which RocksDB changes one where it does not fit the other."""


def options_here(told: OptionsInForce) -> Iterator[RocksOption]:
    """The options that the installed version has, with its own defaults and compressions.

    Args:
        told: what it has in an empty database.
    """
    for one in rocksdb().values():
        if one.name not in told.values:
            continue
        values = tuple(word for word in one.values if _has(told, word))
        when = one.when if _names(one.when) <= {rocksdb_name(name) for name in told.values} else ""
        yield replace(one, values=values, when=when).installed(told.values[one.name])


def rocksdb_space(
    parameters: str, known: Sequence[RocksOption], given: Mapping[str, Given], memory_bytes: int
) -> Space:
    """The options that a study searches.

    All memtables and the block cache have to fit into the memory. A smaller memory than the database of
    today may use allows what that may use.

    Args:
        parameters: "expert" or "wide".
        known: those that the installed version has.
        given: the values in force before the study, by name.
        memory_bytes: the memory that the database may use.
    """
    today = {one.name: given.get(one.name, one.default) for one in known}
    most = {_BUFFER: memory_bytes // 2, _CACHE: memory_bytes}
    chosen = [one for one in known if one.is_searched(parameters)]
    made = (one.up_to(most.get(one.name), today[one.name]).parameter(today[one.name]) for one in chosen)
    space = Space(tuple(made), name="rocksdb", allow_weaker=tuple(Guarantee))
    names = set(space.names)
    limits = [f"{lower} {sign} {upper}" for lower, sign, upper in _ASCENDING if {lower, upper} <= names]
    if {_BUFFERS, _BUFFER, _CACHE} <= names:
        used_bytes = int(today[_BUFFERS]) * int(today[_BUFFER]) + int(today[_CACHE])
        limits.append(f"{_BUFFERS} * {_BUFFER} + {_CACHE} <= {max(used_bytes, memory_bytes)}")
    return space.constrain(*limits)


def rocksdb_name(name: str) -> str:
    """The name in a study of an option of RocksDB."""
    known = rocksdb().get(name)
    return name if known is None else known.parameter_name


def _names(formula: str) -> set[str]:
    return set(parse(formula).names) if formula else set()


def _has(told: OptionsInForce, word: str) -> bool:
    """Whether a word is a compression that the library was built with, or none at all."""
    every = {one for name in ("compression", "wal_compression") for one in rocksdb()[name].values}
    return word not in every or word in told.compressions
