"""A profile of TuneD in force: `postgresql`, which includes `throughput-performance`, for the whole machine.

Of Debian 12's package tuned 2.20.0, `/usr/lib/tuned/*/tuned.conf`.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ascar.errors import AscarError, Refused
from ascar.systems.keeper import Keeper

if TYPE_CHECKING:
    from collections.abc import Generator

    from .server_rivals_testbed import Testbed

_LOCKED_S = 120.0

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
