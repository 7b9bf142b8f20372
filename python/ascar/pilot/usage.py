"""The kernel's counters of what is used: read, not judged."""

from __future__ import annotations

import os
import resource
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

# 2^64 has 20.
_DIGITS_MAX = 20


@dataclass(frozen=True, slots=True)
class Usage:
    """The counters at one moment; all but the gauges only grow.

    Attributes:
        at_s: monotonic seconds.
        cpu_busy_s: seconds of work, by core; a core may go and come.
        programs_cpu_s: seconds of processor time of the programs that we ran and that have ended.
        own_cpu_s: seconds of processor time of this process.
        run_queue: threads that run or could run, but for the one that reads this, a gauge.
        memory_available: share of the memory that is available, a gauge.
        disk_busy_s: seconds with a request under way, by whole disk.
        network_bytes: received and sent, by interface.
        network_bytes_per_s_max: the most that an interface can carry one way, where it tells.
        pressure_s: seconds in which some process waited, by resource (PSI), where the kernel has it on.
    """

    at_s: float
    cpu_busy_s: Mapping[str, float]
    programs_cpu_s: float
    own_cpu_s: float
    run_queue: int
    memory_available: float
    disk_busy_s: Mapping[str, float]
    network_bytes: Mapping[str, tuple[int, int]]
    network_bytes_per_s_max: Mapping[str, float]
    pressure_s: Mapping[str, float]


def read_usage(proc: Path = Path("/proc"), sys: Path = Path("/sys")) -> Usage:
    """The counters now; what the machine does not tell is left out.

    Args:
        proc: the mount point of procfs.
        sys: the mount point of sysfs.
    """
    cores, run_queue = _cpu(proc)
    moved, limits = _network(proc, sys)
    programs = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Usage(
        at_s=time.monotonic(),
        cpu_busy_s=cores,
        programs_cpu_s=programs.ru_utime + programs.ru_stime,
        own_cpu_s=time.process_time(),
        run_queue=run_queue,
        memory_available=_memory(proc),
        disk_busy_s=_disks(proc, sys),
        network_bytes=moved,
        network_bytes_per_s_max=limits,
        pressure_s=_pressure(proc),
    )


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text("utf-8", "replace").splitlines()
    except OSError:
        return []


def _count(text: str) -> int | None:
    """A counter; None for what is none, so that one strange line costs no more than itself."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX else None


def _counts(cells: list[str]) -> list[int]:
    return [-1 if (count := _count(cell)) is None else count for cell in cells]


def _cpu(proc: Path) -> tuple[dict[str, float], int]:
    tick = os.sysconf("SC_CLK_TCK")
    cores: dict[str, float] = {}
    running = 0
    for line in _lines(proc / "stat"):
        cells = line.split()
        if line.startswith("cpu") and not line.startswith("cpu ") and len(cells) > 5:
            # user nice system idle iowait irq softirq steal; time of guests is in user already.
            counts = _counts(cells[1:9])
            if min(counts) >= 0:
                cores[cells[0]] = (sum(counts) - counts[3] - counts[4]) / tick
        elif line.startswith("procs_running") and len(cells) > 1:
            running = _count(cells[1]) or 0
    # Whoever reads this is running.
    return cores, max(running - 1, 0)


def _memory(proc: Path) -> float:
    kib: dict[str, int] = {}
    for line in _lines(proc / "meminfo"):
        name, _, rest = line.partition(":")
        cells = rest.split()
        count = _count(cells[0]) if cells else None
        if count is not None:
            kib[name] = count
    total = kib.get("MemTotal", 0)
    return min(kib.get("MemAvailable", total) / total, 1.0) if total else 1.0


def _disks(proc: Path, sys: Path) -> dict[str, float]:
    busy: dict[str, float] = {}
    for line in _lines(proc / "diskstats"):
        cells = line.split()
        if len(cells) <= 12 or not (sys / "block" / cells[2].replace("/", "!")).exists():
            continue
        milliseconds = _count(cells[12])
        if milliseconds is not None:
            busy[cells[2]] = milliseconds / 1000
    return busy


def _network(proc: Path, sys: Path) -> tuple[dict[str, tuple[int, int]], dict[str, float]]:
    moved: dict[str, tuple[int, int]] = {}
    limits: dict[str, float] = {}
    for line in _lines(proc / "net/dev")[2:]:
        name, _, rest = line.partition(":")
        name, cells = name.strip(), rest.split()
        received, sent = _counts([cells[0], cells[8]]) if len(cells) > 8 else (-1, -1)
        if not name or received < 0 or sent < 0:
            continue
        moved[name] = received, sent
        # Megabits a second; interfaces that have no speed give -1, or an error.
        speed = _count("".join(_lines(sys / "class/net" / name.replace("/", "!") / "speed")).strip())
        if speed:
            limits[name] = speed * 1e6 / 8
    return moved, limits


def _pressure(proc: Path) -> dict[str, float]:
    waited: dict[str, float] = {}
    for kind in ("cpu", "io", "memory"):
        for line in _lines(proc / "pressure" / kind):
            total = _count(line.rpartition("total=")[2].strip())
            if line.startswith("some") and total is not None:
                waited[kind] = total / 1e6
    return waited
