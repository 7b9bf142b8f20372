"""The spaces of RocksDB: an expert's, and all options that bear on speed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from ascar.catalogues.rocksdb import rocksdb
from ascar.errors import EnvironmentLacks, StudyError
from ascar.expression import parse
from ascar.space import Guarantee, Space
from ascar.systems.rocksdb.options_file import options_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ascar.catalogues.rocksdb import RocksOption
    from ascar.catalogues.server_setting import RankedSetting
    from ascar.program.rocksdb import OptionsInForce, RocksPrograms
    from ascar.systems.own_server import Given

_BUFFERS, _BUFFER, _CACHE = "max_write_buffer_number", "write_buffer_size", "block_cache"
_KEPT = "max_write_buffer_size_to_maintain"
_ASCENDING = (
    ("level0_file_num_compaction_trigger", "<=", "level0_slowdown_writes_trigger"),
    ("level0_slowdown_writes_trigger", "<=", "level0_stop_writes_trigger"),
    ("min_write_buffer_number_to_merge", "<", _BUFFERS),
    ("soft_pending_compaction_bytes_limit", "<=", "hard_pending_compaction_bytes_limit"),
)
"""Options of which RocksDB changes one where it does not fit the other."""
BY_OTHERS = ("compaction_readahead_size", "max_open_files")
"""Options that RocksDB sets itself where others ask for it: direct reads, and the limit of open files."""
EXAMPLES = {
    "allow_cost": '#allow_cost = ["dyn-app", "app-restart"]',
    "weaker": "durability",
    "pinned": "bloom_bits = 10",
    "constraint": "write_buffer_size <= 268435456",
    "forbidden": 'compression = "kZSTD", block_size = 65536',
}
"""What a study file to start from shows of `[space]`."""


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

    All memtables, those that are kept after their flush among them, and the block cache have to fit into
    the memory. A smaller memory than the database of today may use allows what that may use.

    Args:
        parameters: "expert" or "wide".
        known: those that the installed version has.
        given: the values in force before the study, by name.
        memory_bytes: the memory that the database may use.
    """
    today = {one.name: given.get(one.name, one.default) for one in known}
    most = {_BUFFER: memory_bytes // 2, _CACHE: memory_bytes}
    chosen = [one for one in known if one.is_searched(parameters)]
    made = (
        one.up_to(most.get(one.name), today[one.name]).parameter_in_force(today[one.name]) for one in chosen
    )
    space = Space(tuple(made), name="rocksdb", allow_weaker=tuple(Guarantee))
    names = set(space.names)
    limits = [f"{lower} {sign} {upper}" for lower, sign, upper in _ASCENDING if {lower, upper} <= names]
    if {_BUFFERS, _BUFFER, _CACHE} <= names:
        total = f"{_BUFFERS} * {_BUFFER}"
        if _KEPT in today:
            kept = _KEPT if _KEPT in names else str(today[_KEPT])
            total = f"max({total}, {kept} + {_BUFFER})"
        total += f" + {_CACHE}"
        used_bytes = parse(total).number({name: today[name] for name in parse(total).names})
        limits.append(f"{total} <= {max(int(used_bytes), memory_bytes)}")
    return space.constrain(*limits)


def options_in_force(
    programs: RocksPrograms, known: Mapping[str, RankedSetting], given: Mapping[str, Given]
) -> dict[str, Given]:
    """The options of a database of today: those that are given, and others that RocksDB changes for them.

    Args:
        programs: the version.
        known: the options that it has, by its names.
        given: those that the database has, by RocksDB's names.

    Raises:
        StudyError: RocksDB would make another value of one, or opens no database with them.
    """
    wanted = {known[name].parameter_name: value for name, value in given.items()}
    try:
        told = programs.opened(options_lines(programs, wanted)).values
    except EnvironmentLacks as error:
        raise StudyError(f"target.settings: {error.message}") from None
    for name, value in given.items():
        made = known[name].value(told.get(name, ""))
        if name not in BY_OTHERS and made != value:
            raise StudyError(f"target.settings.{name} = {value!r}: RocksDB would make {made!r:.40} of it")
    alone = programs.defaults().values
    changed = [name for name in known if name not in BY_OTHERS and told.get(name) != alone.get(name)]
    return {**{name: known[name].value(told[name]) for name in changed if name in told}, **given}


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
