"""Which resource limited a result, and what measuring it cost (Li's thesis, 4.3, defaults 4 and 5).

A thread reads the kernel's counters while rounds run; the difference of two readings is what was used.
"""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType
    from typing import Self

__all__ = ["Bottleneck", "Resources", "Sampler", "Usage", "bottlenecks", "read_usage"]

# At these shares a resource counts as the limit.
_CPU_LIMIT = 0.9
_DISK_LIMIT = 0.9
_NETWORK_LIMIT = 0.85
_MEMORY_LEFT_LIMIT = 0.03
_PRESSURE_LIMIT = 0.2


@dataclass(frozen=True, slots=True)
class Usage:
    """The kernel's counters at one moment; all but the gauges only grow.

    Attributes:
        at_s: monotonic seconds.
        cpu_busy_s: seconds of work, one number a core.
        run_queue: processes that run or could run, a gauge.
        memory_available: share of the memory that is available, a gauge.
        disk_busy_s: seconds with a request under way, by whole disk.
        network_bytes: received and sent, by interface.
        network_bytes_per_s_max: what an interface can do one way, where it tells.
        pressure_s: seconds in which some process waited, by resource (PSI), where the kernel has it on.
    """

    at_s: float
    cpu_busy_s: tuple[float, ...]
    run_queue: int
    memory_available: float
    disk_busy_s: Mapping[str, float]
    network_bytes: Mapping[str, int]
    network_bytes_per_s_max: Mapping[str, float]
    pressure_s: Mapping[str, float]


def read_usage(proc: Path = Path("/proc"), sys: Path = Path("/sys")) -> Usage:
    """The counters now; what the machine does not tell is left out."""
    cores, run_queue = _cpu(proc)
    sent, limits = _network(proc, sys)
    return Usage(
        at_s=time.monotonic(),
        cpu_busy_s=cores,
        run_queue=run_queue,
        memory_available=_memory(proc),
        disk_busy_s=_disks(proc, sys),
        network_bytes=sent,
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
        if line.startswith("cpu") and not line.startswith("cpu "):
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
        if len(cells) > 12 and (sys / "block" / cells[2]).exists():
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
        speed = "".join(_lines(sys / "class/net" / name.strip() / "speed"))
        if speed.lstrip("-").isdigit() and int(speed) > 0:
            limits[name.strip()] = int(speed) * 1e6 / 8
    return moved, limits


def _pressure(proc: Path) -> dict[str, float]:
    waited: dict[str, float] = {}
    for resource in ("cpu", "io", "memory"):
        for line in _lines(proc / "pressure" / resource):
            if line.startswith("some") and "total=" in line:
                waited[resource] = int(line.rpartition("total=")[2]) / 1e6
    return waited


@dataclass(frozen=True, slots=True)
class Resources:
    """What was used over an interval, as shares of what there is.

    Attributes:
        seconds: the interval's length.
        cpu: share of all cores' time.
        cpu_busiest: share of the busiest core's time.
        run_queue_mean: processes that ran or could run.
        cores: how many there are.
        memory_available_min: least share of memory that was available.
        disk: share of the time with a request under way, by disk.
        network: share of the interface's speed, where it is known.
        pressure: share of the time in which some process waited, by resource.
        own_cpu: share of one core's time that this process used for measuring.
        samples: how often the counters were read.
    """

    seconds: float
    cpu: float
    cpu_busiest: float
    run_queue_mean: float
    cores: int
    memory_available_min: float
    disk: Mapping[str, float]
    network: Mapping[str, float]
    pressure: Mapping[str, float]
    own_cpu: float
    samples: int


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """A resource that was used up.

    Attributes:
        resource: "cpu", "one core", "memory", "disk NAME", "network NAME", "waiting for io".
        share: of it, that was used.
    """

    resource: str
    share: float


def bottlenecks(used: Resources) -> tuple[Bottleneck, ...]:
    """The resources that limited a result, the fullest first; empty where none was near its limit."""
    found = [Bottleneck(f"disk {name}", share) for name, share in used.disk.items() if share >= _DISK_LIMIT]
    found += [Bottleneck(f"network {name}", s) for name, s in used.network.items() if s >= _NETWORK_LIMIT]
    if used.cpu >= _CPU_LIMIT:
        found.append(Bottleneck("cpu", used.cpu))
    elif used.cpu_busiest >= _CPU_LIMIT:
        found.append(Bottleneck("one core", used.cpu_busiest))
    if used.memory_available_min <= _MEMORY_LEFT_LIMIT:
        found.append(Bottleneck("memory", 1 - used.memory_available_min))
    if used.pressure.get("io", 0.0) >= _PRESSURE_LIMIT:
        found.append(Bottleneck("waiting for io", used.pressure["io"]))
    return tuple(sorted(found, key=lambda bottleneck: -bottleneck.share))


@dataclass(slots=True)
class Sampler:
    """Reads the counters every `period_s` in a thread of its own, between entering and leaving."""

    period_s: float = 0.5
    read: Callable[[], Usage] = read_usage
    _usages: list[Usage] = field(default_factory=list[Usage], repr=False)
    _over: threading.Event = field(default_factory=threading.Event, repr=False)
    _thread: threading.Thread | None = field(default=None, repr=False)
    _cpu_start_s: float = field(default=0.0, repr=False)

    def __enter__(self) -> Self:
        self._usages = [self.read()]
        self._cpu_start_s = time.process_time()
        self._thread = threading.Thread(target=self._watch, name="ascar-resources", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()
        self._usages.append(self.read())

    def _watch(self) -> None:
        while not self._over.wait(self.period_s):
            self._usages.append(self.read())

    @property
    def used(self) -> Resources:
        """What was used so far."""
        usages = self._usages if len(self._usages) > 1 else [*self._usages, self.read()]
        first, last = usages[0], usages[-1]
        seconds = max(last.at_s - first.at_s, 1e-9)
        busy = [(b - a) / seconds for a, b in zip(first.cpu_busy_s, last.cpu_busy_s, strict=False)]
        return Resources(
            seconds=seconds,
            cpu=sum(busy) / len(busy) if busy else 0.0,
            cpu_busiest=max(busy, default=0.0),
            run_queue_mean=sum(usage.run_queue for usage in usages) / len(usages),
            cores=len(busy),
            memory_available_min=min(usage.memory_available for usage in usages),
            disk=_shares(first.disk_busy_s, last.disk_busy_s, seconds),
            network={
                name: (last.network_bytes[name] - first.network_bytes.get(name, 0)) / seconds / most
                for name, most in last.network_bytes_per_s_max.items()
            },
            pressure=_shares(first.pressure_s, last.pressure_s, seconds),
            own_cpu=(time.process_time() - self._cpu_start_s) / seconds,
            samples=len(usages),
        )


def _shares(first: Mapping[str, float], last: Mapping[str, float], seconds: float) -> dict[str, float]:
    return {name: (last[name] - first[name]) / seconds for name in last if name in first}
