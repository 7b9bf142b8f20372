"""Workloads that libraries are bootstrapped with: the common workload set (Li, 3.1.7), as scenarios."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ascar.errors import InputError
from ascar.simulation import preset, scenario_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ascar.simulation import Scenario

RATIOS = (0.1, 2.0, 4.0, 6.0, 8.0, 12.0)
"""Reads to writes: 0.1, 2, 4, 6, 8 and, for "> 10", 12."""

READ_MIB: Mapping[str, float] = {
    "over-40": 48.0,
    "30-to-40": 35.0,
    "20-to-30": 25.0,
    "10-to-20": 15.0,
    "5-to-10": 7.0,
    "1-to-5": 3.0,
}
"""Random reads by class of size: the middle of each."""

PRESETS = (
    "sequential-write",
    "sequential-read",
    "random-write",
    "random-read",
    "random-shared",
    "fileserver",
    "btio-b",
    "btio-c",
)
"""Rows of Table 3.4, which are common in high-performance computing."""

_DATA_MIB = 5120.0  # of a client and kind, as in section 3.2.2
_PLACES_MIN = 8  # of a file, so that places can be random
_PAUSE_S = 1e-4  # between operations: what a program takes to come back


@dataclass(frozen=True, slots=True)
class Mix:
    """Reads and writes mixed, on files larger than memory.

    Attributes:
        read_to_write: ratio of counts.
        read_mib: size of a read.
        read_random: whether reads are at random positions; otherwise they are sequential.
        write_mib: size of a write.
        write_random: whether writes are at random positions; otherwise they are sequential.
        threads: the number of threads on each client.
        clients: nodes.
        direct: past the client's cache.
        think_s: between two operations of a thread.
    """

    read_to_write: float
    read_mib: float = 1.0
    read_random: bool = True
    write_mib: float = 1.0
    write_random: bool = True
    threads: int = 8
    clients: int = 5
    direct: bool = False
    think_s: float = 0.0

    def __post_init__(self) -> None:
        """Check what a scenario cannot.

        Raises:
            InputError: a size or ratio is out of range.
        """
        for name in ("read_to_write", "read_mib", "write_mib"):
            value = getattr(self, name)
            if not 1e-3 <= value <= 1e3:
                raise InputError(f"{name} = {value}: must be from 0.001 to 1000")

    def scenario(self, name: str, **changes: Any) -> Scenario:
        """The workload on the simulated cluster of section 3.2.2.

        Args:
            name: the name of the scenario.
            changes: other keys of the scenario, such as `duration_s`.
        """
        share = self.read_to_write / (1 + self.read_to_write)
        read = self._flowop("read", self.read_mib, random=self.read_random)
        write = self._flowop("write", self.write_mib, random=self.write_random)
        pause = {"op": "delay", "value_s": _PAUSE_S + self.think_s}
        if self.read_random or self.write_random:
            read["probability_percent"], write["probability_percent"] = 100 * share, 100 * (1 - share)
            groups = [{"instances": self.threads, "flowops": [read, write, pause]}]
        else:
            # A thread has one place to go on from, so those that read and those that write are two kinds.
            reading = min(max(round(share * self.threads), 1), self.threads - 1) or 1
            groups = [
                {"instances": reading, "flowops": [read, pause]},
                {"instances": max(self.threads - reading, 1), "flowops": [write, pause]},
            ]
        sets = [self._fileset("read", self.read_mib), self._fileset("write", self.write_mib)]
        table: dict[str, Any] = {
            "name": name,
            "clients": [{"count": self.clients, "workload": "mix", "cache": {"page_cache_mib": 0}}],
            "workloads": [{"name": "mix", "filesets": sets, "threads": groups}],
            "noise": {"service_sd_percent": 10},
            **changes,
        }
        return scenario_of(table)

    def _flowop(self, kind: str, size_mib: float, *, random: bool) -> dict[str, Any]:
        return {
            "op": kind,
            "fileset": kind,
            "iosize_kib": 1024 * size_mib,
            "random": random,
            "directio": self.direct,
            "file_per_thread": True,
        }

    def _fileset(self, kind: str, size_mib: float) -> dict[str, Any]:
        files = max(1, min(self.threads, int(_DATA_MIB / (_PLACES_MIN * size_mib))))
        return {"name": kind, "entries": files, "size_mib": max(_DATA_MIB / files, size_mib)}


def _combinations() -> dict[str, Mix]:
    """Ratio and kind of read, each with each (section 3.1.7)."""
    found: dict[str, Mix] = {}
    for ratio in RATIOS:
        found[f"{ratio:g}-sequential"] = Mix(ratio, 1.0, read_random=False)
        found |= {f"{ratio:g}-random-{size}": Mix(ratio, mib) for size, mib in READ_MIB.items()}
    return found


COMMON: Mapping[str, Mix] = _combinations()
"""The 42 combinations of section 3.1.7, with random writes of 1 MiB."""


def common_set() -> dict[str, Scenario]:
    """The workloads to bootstrap with: the combinations of section 3.1.7, and the rows of Table 3.4."""
    mixed = {name: mix.scenario(name) for name, mix in COMMON.items()}
    return {**{name: preset(name) for name in PRESETS}, **mixed}
