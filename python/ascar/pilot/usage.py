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

__all__ = ["Usage", "read_usage"]


@dataclass(frozen=True, slots=True)
class Usage:
    """The counters at one moment; all but the gauges only grow.

    Attributes:
        at_s: monotonic seconds.
        cpu_busy_s: seconds of work, one number a core.
        programs_cpu_s: seconds of processor time of the programs that we ran and that have ended.
        own_cpu_s: seconds of processor time of this process.
        run_queue: processes that run or could run, a gauge.
        memory_available: share of the memory that is available, a gauge.
        disk_busy_s: seconds with a request under way, by whole disk.
        network_bytes: received or sent, whichever is more, by interface.
        network_bytes_per_s_max: what an interface can do one way, where it tells.
        pressure_s: seconds in which some process waited, by resource (PSI), where the kernel has it on.
    """

    at_s: float
    cpu_busy_s: tuple[float, ...]
    programs_cpu_s: float
    own_cpu_s: float
    run_queue: int
    memory_available: float
    disk_busy_s: Mapping[str, float]
    network_bytes: Mapping[str, int]
    network_bytes_per_s_max: Mapping[str, float]
    pressure_s: Mapping[str, float]


def read_usage(proc: Path = Path("/proc"), sys: Path = Path("/sys")) -> Usage:
    """The counters now; what the machine does not tell is left out.

    Args:
        proc: where procfs is mounted.
        sys: where sysfs is mounted.
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


def _cpu(proc: Path) -> tuple[tuple[float, ...], int]:
    tick = os.sysconf("SC_CLK_TCK")
    cores: list[float] = []
    running = 0
    for line in _lines(proc / "stat"):
        cells = line.split()
        if line.startswith("cpu") and not line.startswith("cpu ") and len(cells) > 5:
            # user nice system idle iowait irq softirq steal; time of guests is in user already.
            total, idle = sum(map(int, cells[1:9])), int(cells[4]) + int(cells[5])
            cores.append((total - idle) / tick)
        elif line.startswith("procs_running"):
            running = int(cells[1])
    return tuple(cores), running


def _memory(proc: Path) -> float:
    kib = {line.split(":")[0]: int(line.split()[1]) for line in _lines(proc / "meminfo") if ":" in line}
    total = kib.get("MemTotal", 0)
    return kib.get("MemAvailable", total) / total if total else 1.0


def _disks(proc: Path, sys: Path) -> dict[str, float]:
    busy: dict[str, float] = {}
    for line in _lines(proc / "diskstats"):
        cells = line.split()
        if len(cells) > 12 and (sys / "block" / cells[2].replace("/", "!")).exists():
            busy[cells[2]] = int(cells[12]) / 1000
    return busy


def _network(proc: Path, sys: Path) -> tuple[dict[str, int], dict[str, float]]:
    moved: dict[str, int] = {}
    limits: dict[str, float] = {}
    for line in _lines(proc / "net/dev")[2:]:
        name, _, rest = line.partition(":")
        cells = rest.split()
        if len(cells) < 9:
            continue
        moved[name.strip()] = max(int(cells[0]), int(cells[8]))
        # Megabits a second; interfaces that have no speed give -1, or an error.
        speed = "".join(_lines(sys / "class/net" / name.strip() / "speed"))
        if speed.isdigit() and int(speed) > 0:
            limits[name.strip()] = int(speed) * 1e6 / 8
    return moved, limits


def _pressure(proc: Path) -> dict[str, float]:
    waited: dict[str, float] = {}
    for kind in ("cpu", "io", "memory"):
        for line in _lines(proc / "pressure" / kind):
            total = line.rpartition("total=")[2]
            if line.startswith("some") and total.isdigit():
                waited[kind] = int(total) / 1e6
    return waited
