"""What users are told without a measurement: pgtune's formula, and a profile of TuneD.

pgtune: https://github.com/le0pard/pgtune, `src/features/configuration/configurationSlice.js`, as of 2026.
TuneD: the profile `postgresql`, which includes `throughput-performance`, of Debian 12's package tuned 2.20.0,
`/usr/lib/tuned/*/tuned.conf`.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ascar.errors import AscarError, Refused
from ascar.space import Choices
from ascar.systems.keeper import Keeper

from .postgresql_rivals_reach import reach

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from ascar.space import Configuration, Space, Value

    from .postgresql_rivals_testbed import Testbed

GIB_KIB, MIB_KIB = 2**20, 2**10
_LOCKED_S = 120.0


def pgtune(memory_kib: int, connections: int, processors: int, *, warehouse: bool) -> dict[str, Value]:
    """The advice of pgtune for PostgreSQL 15 to 17 on Linux and an SSD, for data larger than the memory.

    Settings that it leaves at the server's defaults are left out, and so is `max_connections`, a given.

    Args:
        memory_kib: the memory of the machine.
        connections: the connections of the server.
        processors: the processors of the machine; below four it says nothing of parallel workers.
        warehouse: whether the type is "Data warehouse"; else it is "Online transaction processing".
    """
    shared = memory_kib // 4
    workers = processors if processors >= 4 else 8
    per_sort = (memory_kib - shared) / ((connections + workers) * 3)
    sort = int(int(per_sort / 2 if warehouse else per_sort) * 0.9)
    wal_buffers = min(3 * shared // 100, 16 * MIB_KIB)
    if 14 * MIB_KIB < wal_buffers < 16 * MIB_KIB:
        wal_buffers = 16 * MIB_KIB
    advice: dict[str, Value] = {
        "shared_buffers": shared,
        "effective_cache_size": memory_kib * 3 // 4,
        "maintenance_work_mem": min(memory_kib // (8 if warehouse else 16), 8 * GIB_KIB),
        "checkpoint_completion_target": 0.9,
        "wal_buffers": max(wal_buffers, 32),
        "random_page_cost": 4.0 if warehouse else 1.1,
        "effective_io_concurrency": 200,
        "work_mem": max(sort, 4 * MIB_KIB),
        "huge_pages": "try" if shared >= 2 * GIB_KIB else "off",
        "max_wal_size": 16384 if warehouse else 8192,
        "min_wal_size": 4096 if warehouse else 2048,
        "wal_compression": "lz4",
    }
    if warehouse:
        advice["default_statistics_target"] = 500
    else:
        advice["jit"] = False
    if processors >= 4:
        half = (processors + 1) // 2
        advice |= {
            "max_worker_processes": processors,
            "max_parallel_workers": processors,
            "max_parallel_workers_per_gather": half if warehouse else min(half, 4),
            "max_parallel_maintenance_workers": min(half, 4),
        }
    return advice


def within(space: Space, advice: Mapping[str, Value]) -> tuple[Configuration, dict[str, Value]]:
    """Advice as a configuration of a space: what it forbids is the nearest value that it allows.

    Args:
        space: the space, in which nothing weakens a guarantee.
        advice: values by parameter, taken up one after the other; of others the default stays.

    Returns:
        The configuration, and what is not in force as advised.
    """
    found, kept = dict(space.default()), dict[str, "Value"]()
    for name, value in advice.items():
        if name not in space.names:
            kept[name] = value
            continue
        domain = space.domain(name)
        if isinstance(domain, Choices):
            found[name] = value if value in domain.values else found[name]
            near = found[name] == value
        else:
            assert not isinstance(value, str), "a range has numbers"
            position = domain.position(min(max(value, domain.low), domain.high))
            found[name] = reach(space, found, name, position)
            near = abs(float(found[name]) - value) <= (domain.step or 0)
        if not near:
            kept[name] = value
    return space.validate(found), kept


TUNED: dict[str, int] = {
    "vm.dirty_bytes": 536_870_912,
    "vm.dirty_background_bytes": 67_108_864,
    "vm.swappiness": 3,
}
"""The settings of TuneD's profile `postgresql` for the whole machine that a keeper may set, in this order."""

TUNED_READ_AHEAD_KIB = 4096

TUNED_ELSEWHERE: dict[str, tuple[str, str]] = {
    "transparent_hugepages": ("/sys/kernel/mm/transparent_hugepage/enabled", "never"),
    "kernel.sched_autogroup_enabled": ("/proc/sys/kernel/sched_autogroup_enabled", "0"),
    "cpu governor": ("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance"),
    "force_latency": ("/sys/devices/system/cpu/cpuidle/current_driver", "none"),
    "net.core.somaxconn": ("/proc/sys/net/core/somaxconn", "2048"),
    "sched_min_granularity_ns": ("/sys/kernel/debug/sched/min_granularity_ns", "10000000"),
    "sched_migration_cost_ns": ("/sys/kernel/debug/sched/migration_cost_ns", "50000000"),
}
"""What else the profile sets: the file, and its value. No keeper sets these."""


def left_out() -> list[str]:
    """The settings of the profile that this machine has with another value, and that are left as they are."""
    found: list[str] = []
    for name, (path, wanted) in TUNED_ELSEWHERE.items():
        try:
            now = Path(path).read_text("ascii").strip()
        except OSError:
            continue  # the machine does not have it
        in_force = now.partition("[")[2].partition("]")[0] or now
        enough = in_force.isdigit() and wanted.isdigit() and int(in_force) >= int(wanted) > 0
        if in_force != wanted and not enough:
            found.append(name)
    return found


class ProfileHeld(RuntimeError):
    """Another study holds a setting of the profile."""


@contextmanager
def tuned(bed: Testbed) -> Generator[None]:
    """TuneD's profile in force, journaled by keepers, which put everything back.

    Raises:
        ProfileHeld: another study holds one of the settings for two minutes; none was set.
        RuntimeError: the kernel refuses a value.
    """
    keeper = _holding(tuple(TUNED))
    try:
        for name, value in TUNED.items():
            try:
                keeper.knob_write(name, value)
            except AscarError as error:
                raise RuntimeError(error.message) from error
        with bed.read_ahead(TUNED_READ_AHEAD_KIB):
            yield
    finally:
        keeper.close()


def _holding(settings: tuple[str, ...]) -> Keeper:
    """A keeper that holds the settings, all or none."""
    ends_s = time.monotonic() + _LOCKED_S
    while True:
        keeper = Keeper("TuneD's profile").start()
        try:
            keeper.lock(*settings)
        except Refused as refused:
            keeper.close()
            if time.monotonic() > ends_s:
                raise ProfileHeld(refused.message) from refused
            time.sleep(2)
        except BaseException:
            keeper.close()
            raise
        else:
            return keeper
