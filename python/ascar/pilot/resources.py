"""Which resource limited a result, and what measuring it cost (Li's thesis, 4.3, defaults 4 and 5).

A thread reads the kernel's counters while rounds run; the difference of two readings is what was used.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ascar.pilot.usage import Usage, read_usage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType
    from typing import Self

# At these shares a resource counts as the limit.
_CPU_LIMIT = 0.9
_DISK_LIMIT = 0.9
_NETWORK_LIMIT = 0.85
_MEMORY_LEFT_LIMIT = 0.03
_PRESSURE_LIMIT = 0.2
_RUN_QUEUE_LIMIT = 2.0
_SECONDS_MIN = 0.25
# The kernel counts a disk's milliseconds in 32 bits, which last for 50 days.
_DISK_WRAPS_S = 2**32 / 1000
# A program that keeps this much of one core busy, and no more than one, waits for that core.
_ONE_CORE = (0.9, 1.1)


@dataclass(frozen=True, slots=True)
class Resources:
    """What was used over an interval, as shares of what there is.

    Attributes:
        seconds: the interval's length.
        cpu: share of all cores' time.
        cpu_busiest: share of the busiest core's time.
        programs_cores: cores' worth of processor time that the measured programs used; 0 where none ended.
        cores: the number of cores.
        run_queue_mean: processes that ran or could run.
        memory_available_min: least share of memory that was available.
        disk: share of the time with a request under way, by disk.
        network: share of the interface's speed, where it is known.
        pressure: share of the time in which some process waited, by resource.
        own_cores: cores' worth of processor time that this process used for measuring.
        samples: the number of times that the counters were read.
    """

    seconds: float
    cpu: float
    cpu_busiest: float
    programs_cores: float
    cores: int
    run_queue_mean: float
    memory_available_min: float
    disk: Mapping[str, float]
    network: Mapping[str, float]
    pressure: Mapping[str, float]
    own_cores: float
    samples: int


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """A resource that was used up.

    Attributes:
        resource: "cpu", "one core", "run queue", "memory", "disk NAME", "network NAME", "waiting for NAME".
        used: share of it that was used; for the run queue, processes a core.
    """

    resource: str
    used: float


def bottlenecks(used: Resources) -> tuple[Bottleneck, ...]:
    """The resources that limited a result, the fullest first; empty where none was near its limit.

    A disk that is never idle need not be at its limit: one that serves many requests at once can be busy all
    the time and have more to give. Nothing is said of less than a quarter of a second: the kernel counts in
    steps of 10 ms.
    """
    if used.seconds < _SECONDS_MIN:
        return ()
    found = [Bottleneck(f"disk {name}", share) for name, share in used.disk.items() if share >= _DISK_LIMIT]
    found += [Bottleneck(f"network {name}", s) for name, s in used.network.items() if s >= _NETWORK_LIMIT]
    if used.cpu >= _CPU_LIMIT:
        found.append(Bottleneck("cpu", used.cpu))
    elif used.cpu_busiest >= _CPU_LIMIT or _ONE_CORE[0] <= used.programs_cores <= _ONE_CORE[1]:
        found.append(Bottleneck("one core", max(used.cpu_busiest, used.programs_cores)))
    if used.cores and used.run_queue_mean >= _RUN_QUEUE_LIMIT * used.cores:
        found.append(Bottleneck("run queue", used.run_queue_mean / used.cores))
    if used.memory_available_min <= _MEMORY_LEFT_LIMIT:
        found.append(Bottleneck("memory", 1 - used.memory_available_min))
    found += [
        Bottleneck(f"waiting for {name}", share)
        for name, share in used.pressure.items()
        if share >= _PRESSURE_LIMIT
    ]
    return tuple(sorted(found, key=lambda bottleneck: -bottleneck.used))


def used_between(usages: list[Usage]) -> Resources:
    """What was used between the first and the last of at least two looks at the counters."""
    first, last = usages[0], usages[-1]
    seconds = max(last.at_s - first.at_s, 1e-9)
    busy = list(_shares(first.cpu_busy_s, last.cpu_busy_s, seconds).values())
    return Resources(
        seconds=seconds,
        cpu=sum(busy) / len(busy) if busy else 0.0,
        cpu_busiest=max(busy, default=0.0),
        programs_cores=max(last.programs_cpu_s - first.programs_cpu_s, 0.0) / seconds,
        cores=len(busy),
        run_queue_mean=sum(usage.run_queue for usage in usages) / len(usages),
        memory_available_min=min(usage.memory_available for usage in usages),
        disk=_shares(first.disk_busy_s, last.disk_busy_s, seconds, _DISK_WRAPS_S),
        network={
            name: _moved(first.network_bytes[name], last.network_bytes[name]) / seconds / most
            for name, most in last.network_bytes_per_s_max.items()
            if name in first.network_bytes and name in last.network_bytes
        },
        pressure=_shares(first.pressure_s, last.pressure_s, seconds),
        own_cores=(last.own_cpu_s - first.own_cpu_s) / seconds,
        samples=len(usages),
    )


def _shares(
    first: Mapping[str, float], last: Mapping[str, float], seconds: float, wraps_s: float = 0.0
) -> dict[str, float]:
    """Share of the time, 0 to 1, by name; a counter that fell has wrapped, or else begun again."""
    shares: dict[str, float] = {}
    for name, now in last.items():
        if name in first:
            grown = now - first[name]
            if grown < 0 and wraps_s:
                grown += wraps_s
            shares[name] = min(max(grown / seconds, 0.0), 1.0)
    return shares


def _moved(first: tuple[int, int], last: tuple[int, int]) -> int:
    """Bytes in the direction in which more were moved; each has the interface's whole speed."""
    return max(0, *(b - a for a, b in zip(first, last, strict=True)))


@dataclass(slots=True)
class Sampler:
    """Reads the counters every `period_s` in a thread of its own, between entering and leaving.

    Attributes:
        period_s: seconds between looks; each takes about a millisecond.
        read: the counters.
    """

    period_s: float = 1.0
    read: Callable[[], Usage] = read_usage
    _usages: list[Usage] = field(default_factory=list[Usage], repr=False)
    _over: threading.Event = field(default_factory=threading.Event, repr=False)
    _thread: threading.Thread | None = field(default=None, repr=False)

    def __enter__(self) -> Self:
        self._over.clear()
        self._usages = [self.read()]
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
            if len(self._usages) > _LOOKS_MAX:
                # A session may last for days: every other look goes, and looks become as many fewer.
                del self._usages[1:-1:2]
                self.period_s *= 2

    @property
    def used(self) -> Resources:
        """What was used so far."""
        return used_between(self._usages if len(self._usages) > 1 else [*self._usages, self.read()])


_LOOKS_MAX = 10_000
