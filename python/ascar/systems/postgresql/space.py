"""The spaces of PostgreSQL: an expert's, and all that bear on speed; with or without what needs a restart."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ascar.catalogues.postgresql import postgresql, postgresql_of
from ascar.errors import SpaceError, StudyError
from ascar.expression import parse
from ascar.space import Guarantee, Space
from ascar.space.suggestion import hint

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ascar.catalogues.postgresql import PostgresSetting
    from ascar.program.postgresql import Programs
    from ascar.space import Parameter, Value
    from ascar.systems.own_server import Given

_AUTOVACUUM_WORKERS = 3
EXAMPLES = {
    "allow_cost": '#allow_cost = ["dyn-app"]',
    "weaker": "availability",
    "pinned": "jit = false",
    "constraint": "work_mem <= 65536",
    "forbidden": "jit = true, random_page_cost = 1.0",
}
"""What a study file to start from shows of `[space]`."""
RAISED_ON_STANDBYS_FIRST = "max_worker_processes"
"""The one setting of the list of which a standby must not have less than its primary."""


def settings_here(programs: Programs) -> Iterator[PostgresSetting]:
    """The settings that the installed server has, with the words and the numbers that it takes."""
    known = programs.settings()
    listed = {name: one for name, one in postgresql_of(programs.major).items() if name in known}
    for setting in _in_range(programs, listed).values():
        if setting.kind != "choice":
            yield setting
        elif len(values := tuple(one for one in setting.values if programs.takes(setting.name, one))) > 1:
            yield replace(setting, values=values)


def _in_range(programs: Programs, listed: Mapping[str, PostgresSetting]) -> Mapping[str, PostgresSetting]:
    """Settings with what the server takes of their range; those whose default it refuses are left out."""
    found = dict(listed)
    for end in (0, 1):
        tried = {name: one.end(end) for name, one in found.items() if one.kind in ("integer", "real")}
        while (refused := programs.refused(tried.items())) is not None and refused.name in tried:
            del tried[refused.name]
            if not refused.least:
                continue  # whether it fits to the other values, a start tells
            within = found.pop(refused.name).within(refused.least, refused.most, refused.unit)
            if within is not None:
                found[refused.name] = within
    return {name: found[name] for name in listed if name in found}


def settings_of_today(
    settings: Mapping[str, Given], known: Mapping[str, PostgresSetting]
) -> dict[str, Value]:
    """What a study says of the settings of a server of today.

    Args:
        settings: as the study gives them.
        known: the settings that the installed server has.

    Raises:
        StudyError: there is no such setting, or it cannot have that value.
    """
    found: dict[str, Value] = {}
    for name, value in settings.items():
        key = f"target.settings.{name[:60]}"
        one = known.get(name.lower())
        if one is None:
            raise StudyError(
                f"{key}: must be a setting that bears on speed, as the wide space lists them"
                f"{hint(name, list(known))}"
            )
        try:
            found[one.name] = one.given(value)
            one.found(found[one.name])
        except SpaceError as error:
            raise StudyError(f"{key} = {value!r:.80}: {error.message}") from None
    return found


def postgresql_space(
    parameters: str,
    settings: Iterable[PostgresSetting],
    max_connections: int,
    memory_bytes: int,
    given: Mapping[str, Value] | None = None,
) -> Space:
    """The settings that a study searches.

    The memory that the server may come to use at `max_connections` has to fit; see `_with_memory`. A smaller
    memory than the defaults may use allows what the defaults may use.

    Args:
        parameters: "expert" or "wide".
        settings: those that the server has.
        max_connections: the connections that the server takes.
        memory_bytes: the memory that the server may use.
        given: the values in force today, where they are others than the server's defaults.
    """
    today = given or {}
    made = (
        one.found(today[one.name]) if one.name in today else one.parameter()
        for one in settings
        if one.is_searched(parameters)
    )
    space = _space_of([one for one in made if one is not None])
    return _with_memory(_with_orders(space), space.default(), max_connections, memory_bytes)


def live_space(
    parameters: str,
    in_force: Mapping[str, Value] | None,
    max_connections: int = 0,
    memory_bytes: int = 0,
    *,
    settings: Mapping[str, PostgresSetting] | None = None,
    restarts: bool = False,
    standbys: bool = False,
) -> Space:
    """The settings that a running server takes, with the values in force as defaults.

    Args:
        parameters: "expert" or "wide".
        in_force: the values of the settings that the server has; None: nobody has asked it yet.
        max_connections: the connections that the server takes.
        memory_bytes: the memory that the server may use.
        settings: those that the server has, with the values that it takes; None: all of the catalogue.
        restarts: whether those are among them for which the server has to be started anew.
        standbys: whether standbys follow the server: one that has less of `RAISED_ON_STANDBYS_FIRST` than its
            primary stops replaying (manual, "Hot Standby", Administrator's Overview), so it is not raised.
    """
    known = postgresql() if settings is None else settings
    wanted = [
        one
        for one in known.values()
        if (restarts or one.context != "postmaster") and one.is_searched(parameters)
    ]
    if in_force is None:
        return _space_of([one.parameter() for one in wanted])
    found = [
        parameter
        for one in wanted
        if one.name in in_force and (parameter := one.found(in_force[one.name])) is not None
    ]
    space = _with_orders(_space_of(found))
    if standbys and RAISED_ON_STANDBYS_FIRST in space.names:
        space = space.constrain(f"{RAISED_ON_STANDBYS_FIRST} <= {in_force[RAISED_ON_STANDBYS_FIRST]}")
    if (
        "io_combine_limit" in space.names
        and "io_max_combine_limit" not in space.names
        and "io_max_combine_limit" in in_force
    ):
        # What is above it the server cuts without a word.
        space = space.constrain(f"io_combine_limit <= {in_force['io_max_combine_limit']}")
    return _with_memory(space, in_force, max_connections, memory_bytes)


_ORDERS = (("min_wal_size", "max_wal_size"), ("io_combine_limit", "io_max_combine_limit"))
"""Pairs of settings of which the first must not be above the second."""


def _with_orders(space: Space) -> Space:
    """With the orders of those pairs of which the server has both."""
    both = [(low, high) for low, high in _ORDERS if {low, high} <= set(space.names)]
    return space.constrain(*(f"{low} <= {high}" for low, high in both))


def _with_memory(space: Space, present: Mapping[str, Value], connections: int, memory_bytes: int) -> Space:
    """With a bound of the memory that the server may come to use (manual, section 20.4.1).

    That is shared buffers, what each connection takes for sorts, hashes and temporary tables, and maintenance
    in each autovacuum worker. What the values in force may use is allowed in any case.

    Args:
        space: the space.
        present: the values in force.
        connections: the connections that the server takes.
        memory_bytes: the memory that there is.
    """
    workers = "autovacuum_max_workers" if "autovacuum_max_workers" in space else f"{_AUTOVACUUM_WORKERS}"
    # A hash table may take a multiple of work_mem; what is in force is taken to fit.
    hashes = f" * hash_mem_multiplier / {present.get('hash_mem_multiplier', 1)}"
    maintenance = "max(maintenance_work_mem, autovacuum_work_mem)"
    parts = {
        "shared_buffers": "shared_buffers",
        "work_mem": f"{connections} * work_mem{hashes if 'hash_mem_multiplier' in space else ''}",
        "maintenance_work_mem": f"{workers} * "
        + (maintenance if "autovacuum_work_mem" in space else "maintenance_work_mem"),
    }
    total = " + ".join(part for name, part in parts.items() if name in space)
    if not total:
        return space
    most_kib = memory_bytes // 1024
    if "shared_buffers" not in space:
        most_kib -= int(present.get("shared_buffers", 0))
    if "temp_buffers" in space:
        # Few sessions use temporary tables: what they may take today is not counted.
        total += f" + {connections} * (temp_buffers - {present['temp_buffers']})"
    used_kib = parse(total).number(dict(present))
    return space.constrain(f"{total} <= {math.ceil(max(used_kib, most_kib))}")


def _space_of(parameters: list[Parameter]) -> Space:
    return Space(tuple(parameters), name="postgresql", allow_weaker=tuple(Guarantee))
