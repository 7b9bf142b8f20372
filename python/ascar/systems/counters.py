"""Totals that only grow, read from the kernel: their differences over a load become metrics.

device_*     the device under the file system: the loop device, or the one named
backing_*    the device that the image file is on (all of its traffic, whoever caused it)
cpu_busy_s   of all processors, whoever used them: a file system's work is done by kernel threads too
stall_*_s    pressure stall information: time in which some task waited for I/O, memory or a processor
energy_j     of all processor packages (RAPL), where the machine has the counters and lets us read them
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from ascar.systems.kernel_files import KernelFiles

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_SECTOR_BYTES = 512
_SYS = Path("/sys")
_PROC = Path("/proc")
_RESOURCES = ("io", "memory", "cpu")


class Counters:
    """Reads the counters of some devices and of the machine.

    Args:
        devices: kernel names of block devices, by the prefix of their counters.
        sys: the mount point of sysfs.
        proc: the mount point of procfs.
        files: reads them, of this machine or of a node, whose energy is not known.
    """

    def __init__(
        self,
        devices: Mapping[str, str],
        *,
        sys: Path = _SYS,
        proc: Path = _PROC,
        files: KernelFiles = KernelFiles(),  # noqa: B008 - it is frozen
    ) -> None:
        self._stat_files = {prefix: sys / "class/block" / name / "stat" for prefix, name in devices.items()}
        self._stat, self._pressure = proc / "stat", {one: proc / "pressure" / one for one in _RESOURCES}
        self._files = files
        domains = sorted((sys / "class/powercap").glob("intel-rapl:*")) if files.node is None else ()
        self._energy = [_EnergyDomain(path) for path in domains]
        # Sub-domains (intel-rapl:0:0) are part of their package and would count twice.
        self._energy = [domain for domain in self._energy if domain.is_package and domain.readable]

    def read(self) -> dict[str, float]:
        """The totals now, by name with unit; the same names each time."""
        texts = self._files.texts((self._stat, *self._pressure.values(), *self._stat_files.values()))
        totals = {"cpu_busy_s": _cpu_busy_s(texts[self._stat])}
        for resource, path in self._pressure.items():
            totals |= _stalls(resource, texts[path])
        for prefix, path in self._stat_files.items():
            totals |= device_totals(prefix, texts[path])
        if self._energy:
            totals["energy_j"] = sum(domain.joules() for domain in self._energy)
        return totals


def counter_names(prefixes: Iterable[str]) -> frozenset[str]:
    """The names that `Counters` of devices with these prefixes reads on this machine."""
    totals = dict.fromkeys(Counters({}).read())
    for prefix in prefixes:
        totals |= dict.fromkeys(device_totals(prefix, ""))
    return frozenset(totals)


class _EnergyDomain:
    """A RAPL package; its counter wraps around."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._last_uj: int | None = None
        self._total_uj = 0
        self._range_uj = int(_read(path / "max_energy_range_uj") or 0)

    @property
    def is_package(self) -> bool:
        return _read(self._path / "name").startswith("package")

    @property
    def readable(self) -> bool:
        return _read(self._path / "energy_uj") != ""

    def joules(self) -> float:
        """Since the first reading."""
        now_uj = int(_read(self._path / "energy_uj") or 0)
        if self._last_uj is not None:
            step_uj = now_uj - self._last_uj
            self._total_uj += step_uj if step_uj >= 0 else step_uj + self._range_uj
        self._last_uj = now_uj
        return self._total_uj / 1e6


def _cpu_busy_s(stat: str) -> float:
    """Seconds that processors did not idle, by the text of /proc/stat."""
    fields = [int(text) for text in stat.splitlines()[0].split()[1:]]
    user, nice, system, _idle, _iowait, irq, softirq = (*fields, 0, 0, 0)[:7]
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def _stalls(resource: str, pressure: str) -> dict[str, float]:
    """Seconds in which some task waited, by the text of /proc/pressure/RESOURCE."""
    some = [one for one in pressure.splitlines() if one.startswith("some") and " total=" in one]
    return {f"stall_{resource}_s": int(line.rpartition("total=")[2]) / 1e6 for line in some}


def device_totals(prefix: str, stat: str) -> dict[str, float]:
    """Operations, bytes and busy time of a device or a partition (Documentation/block/stat.rst)."""
    fields = [int(text) for text in stat.split()]
    fields += [0] * (17 - len(fields))  # older kernels count neither discards nor flushes
    return {
        f"{prefix}_read_ios": float(fields[0]),
        f"{prefix}_read_bytes": float(fields[2] * _SECTOR_BYTES),
        f"{prefix}_write_ios": float(fields[4]),
        f"{prefix}_write_bytes": float(fields[6] * _SECTOR_BYTES),
        f"{prefix}_flush_ios": float(fields[15]),
        f"{prefix}_busy_s": fields[9] / 1000,
    }


def _read(path: Path) -> str:
    try:
        return path.read_text("ascii", errors="replace").strip()
    except OSError:
        return ""
