"""What an installed server says of its settings otherwise than its catalogue in `ascar.catalogues`.

    python scripts/catalogue.py postgresql         what differs, a line each; exit status 1: something does
    python scripts/catalogue.py postgresql --new   also what the catalogue does not list, as entries of it

The server is started with its own defaults, as a study starts one, and removed again. With `--version 15` it
is that major version instead of the newest one that is installed: a catalogue is brought up to date with one
run for each version in the field, on a machine that has it. Asked are pg_settings of PostgreSQL,
information_schema.system_variables of MariaDB, `config help` of an OSD of Ceph, CONFIG GET of Redis and
Valkey, and the OPTIONS file of RocksDB. The last two tell values alone: neither ranges, nor when a change
takes effect.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ascar.catalogues.ceph import ceph
from ascar.catalogues.mariadb import mariadb
from ascar.catalogues.postgresql import BYTES, PostgresSetting, postgresql_of
from ascar.catalogues.redis import redis_of
from ascar.catalogues.rocksdb import rocksdb
from ascar.errors import AscarError
from ascar.program.rocksdb import RocksPrograms
from ascar.systems.ceph import Ceph
from ascar.systems.ceph.admin_socket import ask_daemon
from ascar.systems.mariadb import MariaDB
from ascar.systems.own_server.target import START_S
from ascar.systems.postgresql import PostgreSQL
from ascar.systems.redis import Redis

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from ascar.catalogues.server_setting import ServerSetting
    from ascar.systems.ceph.cluster import CephCluster
    from ascar.systems.mariadb.server import MariaServer
    from ascar.systems.postgresql.server import PostgresServer
    from ascar.systems.redis.server import RedisServer

_PG_SETTINGS = """
SELECT name, vartype, context, coalesce(boot_val, ''), coalesce(unit, ''), coalesce(min_val, ''),
       coalesce(max_val, ''), coalesce(array_to_string(enumvals, ','), ''), replace(short_desc, '|', '/')
FROM pg_settings WHERE context <> 'internal' AND name !~ '[.]' AND strpos(coalesce(boot_val, ''), '|') = 0"""
_SYSTEM_VARIABLES = """
SELECT lower(variable_name), variable_scope, variable_type, coalesce(numeric_min_value, ''),
       coalesce(numeric_max_value, ''), coalesce(numeric_block_size, ''), coalesce(enum_value_list, ''),
       read_only, coalesce(default_value, ''), replace(replace(variable_comment, '\\n', ' '), '\\t', ' ')
FROM information_schema.system_variables"""
_PG_KINDS = {"bool": "boolean", "integer": "integer", "real": "real", "enum": "choice", "string": ""}
_CEPH_KINDS = {"bool": ("boolean",), "float": ("real",), "str": ("choice",)}
_DECIDED = {
    "postgresql": {"effective_io_concurrency"},
    "mariadb": {"innodb_io_capacity_max", "log_bin"},
    "redis": {"maxmemory"},
}
"""Defaults that depend on the build, that the server decides when it starts, and that a study sets."""
_STARTED_ANEW = {"innodb_buffer_pool_size", "innodb_log_file_size", "innodb_doublewrite"}
"""A new start where the server takes a statement: it would resize in the background, and within other limits.

Before MariaDB 11.0, the doublewrite buffer takes a new start.
"""
_ONCE_A_CONNECTION = {"binlog_cache_size", "binlog_stmt_cache_size"}
"""Global variables whose value each connection takes once (THD::binlog_setup_trx_data in log.cc)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldSetting:
    """What a server says of one of its settings; what it does not say is empty.

    Attributes:
        name: the name.
        default: the default, as the server writes it.
        kinds: what a catalogue may call it.
        contexts: the words that a catalogue may have for when a change takes effect.
        least: the least number, as the server writes it.
        most: the greatest number.
        step: the distance of the numbers.
        unit: the unit of the numbers.
        values: the words.
        what: what it does.
    """

    name: str
    default: str
    kinds: tuple[str, ...] = ()
    contexts: tuple[str, ...] = ()
    least: str = ""
    most: str = ""
    step: int = 1
    unit: str = ""
    values: tuple[str, ...] = ()
    what: str = ""


def told_by_postgresql(server: PostgresServer) -> Iterator[ToldSetting]:
    """What pg_settings says."""
    for row in server.ask(_PG_SETTINGS).splitlines():
        name, kind, context, default, unit, least, most, words, what = row.split("|")
        yield ToldSetting(
            name=name,
            default=default,
            kinds=(_PG_KINDS[kind],),
            contexts=(context,),
            least=least,
            most=most,
            unit=unit,
            values=tuple(words.split(",")) if words else (),
            what=what,
        )


def told_by_mariadb(server: MariaServer) -> Iterator[ToldSetting]:
    """What information_schema.system_variables says."""
    for row in server.ask(_SYSTEM_VARIABLES).splitlines():
        name, scope, kind, least, most, step, words, read_only, default, what = row.split("\t")
        is_copied = scope != "GLOBAL" or name in _ONCE_A_CONNECTION
        context = "restart" if read_only == "YES" else "connection" if is_copied else "dynamic"
        is_short = "INT" in kind and int(most) - int(least) < 100
        numbers = [str(one) for one in range(int(least), int(most) + 1)] if is_short else []
        kinds = {"BOOLEAN": ("boolean",), "ENUM": ("choice", "boolean"), "DOUBLE": ("real",)}
        yield ToldSetting(
            name=name,
            default=default,
            kinds=("integer", "choice") if "INT" in kind else kinds.get(kind, ("choice",)),
            contexts=("restart",) if name in _STARTED_ANEW else (context,),
            least=least,
            most=most,
            step=max(1, int(step or 1)),
            values=tuple(words.split(",") if words else numbers),
            what=what,
        )


def told_by_ceph(cluster: CephCluster) -> Iterator[ToldSetting]:
    """What `config help` of an OSD says; the levels of its logs it says only one by one."""
    path = cluster.place / "osd.0.asok"
    listed = ask_daemon(path, "config help", 30.0)["options"]
    names = {told["name"] for told in listed}
    single = [
        ask_daemon(path, "config help", 10.0, var=name)["option"] for name in ceph() if name not in names
    ]
    for told in (*listed, *single):
        default = told["default"]
        yield ToldSetting(
            name=told["name"],
            kinds=_CEPH_KINDS.get(told["type"], ("integer", "real")),
            default=str(default).lower() if isinstance(default, bool) else str(default),
            contexts=() if told["can_update_at_runtime"] else ("connection", "restart"),
            least=str(told.get("min", "")),
            most=str(told.get("max", "")),
            values=tuple(told.get("enum_values") or ()),
            what=told["desc"],
        )


def told_by_redis(server: RedisServer) -> Iterator[ToldSetting]:
    """What CONFIG GET says of a server that runs with its own defaults."""
    return (ToldSetting(name=name, default=value) for name, value in server.settings().items())


def told_by_rocksdb(programs: RocksPrograms) -> Iterator[ToldSetting]:
    """What the OPTIONS file says that the library writes."""
    return (ToldSetting(name=name, default=value) for name, value in programs.defaults().values.items())


def differences(system: str, known: Iterable[ServerSetting], told: Mapping[str, ToldSetting]) -> list[str]:
    """What a server says otherwise than a catalogue, a line each.

    Args:
        system: the kind of the server.
        known: the catalogue's settings, as the server's version has them.
        told: what the server says, by name.
    """
    decided = _DECIDED.get(system, ())
    return [
        f"{one.name}: {line}"
        for one in known
        for line in _differences(one, told.get(one.name), is_decided=one.name in decided)
    ]


def _differences(one: ServerSetting, told: ToldSetting | None, *, is_decided: bool) -> Iterator[str]:
    """What is different of a setting; a default that is decided elsewhere is not compared."""
    if told is None:
        yield "the server has no such setting"
        return
    if told.kinds and one.kind not in told.kinds:
        yield f"kind = {one.kind!r}: the server says {' or '.join(told.kinds)}"
        return
    context = getattr(one, "context", "")
    if told.contexts and context not in told.contexts:
        yield f"context = {context!r}: the server says {' or '.join(told.contexts)}"
    same_measure = told.unit in BYTES and one.unit in BYTES
    if isinstance(one, PostgresSetting) and told.unit != one.unit and not same_measure:
        yield f"unit = {one.unit!r}: the server says {told.unit!r}"
        return
    default = _value(one, told, told.default)
    if not is_decided and (default != one.default or type(default) is not type(one.default)):
        yield f"default = {one.default!r}: the server says {default!r}"
    if one.kind == "choice" and told.values and (unknown := set(one.values) - set(told.values)):
        yield f"values = {sorted(unknown)}: the server takes {', '.join(told.values)}"
    if one.kind in ("integer", "real"):
        yield from _outside(one, told)


def _outside(one: ServerSetting, told: ToldSetting) -> Iterator[str]:
    """Which numbers of a setting the server does not take."""
    least, most = (float(_value(one, told, end)) if end else None for end in (told.least, told.most))
    ends = ["" if end is None else f"{end:.15g}" for end in (least, most)]
    allowed = f"the server takes {' to '.join(ends)}"
    for key, numbers in (("search", one.search), ("special", map(float, one.special))):
        for number in numbers:
            if (least is not None and number < least) or (most is not None and number > most):
                yield f"{key} = {number:.15g}: {allowed}"
    step = max(
        told.step, BYTES[told.unit] // BYTES[one.unit] if told.unit in BYTES and one.unit in BYTES else 1
    )
    if one.kind == "integer" and one.step % step:
        yield f"step = {one.step}: the server takes multiples of {step}"


def _value(one: ServerSetting, told: ToldSetting, text: str) -> bool | int | float | str:
    if isinstance(one, PostgresSetting):
        return one.value(text, told.unit)
    return one.value(text)


def entry(told: ToldSetting) -> str:
    """A setting as a catalogue would list it; a person narrows its range, and adds what is missing."""
    kind = told.kinds[0] if told.kinds else ""
    lines = ["[[setting]]", f"name = {json.dumps(told.name)}", f"kind = {json.dumps(kind)}"]
    if kind == "choice":
        lines.append(f"values = {json.dumps(list(told.values))}")
    elif told.least:
        lines.append(f"search = [{told.least}, {told.most}]")
    is_number = kind in ("integer", "real") and told.default
    lines.append(f"default = {told.default if is_number else json.dumps(told.default)}")
    lines += [f"unit = {json.dumps(told.unit)}"] if told.unit else []
    lines += [f"context = {json.dumps(told.contexts[0])}"] if told.contexts else []
    return "\n".join([*lines, f"what = {json.dumps(told.what)}", 'manual = ""', ""])


SYSTEMS: dict[str, tuple[type[Any], dict[str, Any], Callable[[Any], Iterable[ToldSetting]]]] = {
    "postgresql": (PostgreSQL, {}, told_by_postgresql),
    "mariadb": (MariaDB, {}, told_by_mariadb),
    "ceph": (Ceph, {"osds": 1, "replicas": 1, "memory": "1 GiB"}, told_by_ceph),
    "redis": (Redis, {}, told_by_redis),
}
"""The servers that have to run to be asked: their targets, the keys of `[target]`, and what asks them."""


def asked(
    system: str, version: int | None = None
) -> tuple[str, dict[str, ServerSetting], dict[str, ToldSetting]]:
    """The installed version, the catalogue's settings as it has them, and what it says itself.

    Args:
        system: the kind of the server.
        version: the major version; None: the newest one that is installed.

    Raises:
        AscarError: it is not installed, or does not start.
    """
    if system == "rocksdb":
        programs = RocksPrograms.find(version)
        told = list(told_by_rocksdb(programs))
    else:
        target, keys, ask = SYSTEMS[system]
        with target({**keys, "version": version}) as entered:
            server = entered._entered()  # noqa: SLF001 - a load has no way to the server itself
            server.create()
            server.begin([], START_S)
            programs, told = server.programs, list(ask(server))
    names = {one.name for one in told}
    known: dict[str, Callable[[], Mapping[str, ServerSetting]]] = {
        "postgresql": lambda: postgresql_of(programs.major),
        "redis": lambda: redis_of(programs.flavour, programs.number),
        # Its catalogue lists the settings of all versions alike.
        "mariadb": lambda: {name: one for name, one in mariadb().items() if name in names},
        "ceph": ceph,
        "rocksdb": rocksdb,
    }
    return programs.version, dict(known[system]()), {one.name: one for one in told}


def main() -> int:
    """Ask a server, and print what is different."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("system", choices=[*SYSTEMS, "rocksdb"])
    parser.add_argument("--new", action="store_true", help="print entries for settings that are not listed")
    parser.add_argument("--version", type=int, help="major version; else the newest one that is installed")
    given = parser.parse_args()
    try:
        version, known, told = asked(given.system, given.version)
    except AscarError as error:
        sys.stderr.write(f"{error.message}\n")
        return error.exit_status
    found = differences(given.system, known.values(), told)
    new = sorted(set(told) - set(known))
    lines = [f"# {given.system} {version}: {len(known)} settings are listed, {len(new)} others are not"]
    lines += [*found, ""]
    if given.new:
        lines += [entry(told[name]) for name in new]
    sys.stdout.write("\n".join(lines))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
