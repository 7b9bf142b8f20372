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

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_SECTOR_BYTES = 512
_SYS = Path("/sys")
_PROC = Path("/proc")


class Counters:
    """Reads the counters of some devices and of the machine.

    Args:
        devices: kernel names of block devices, by the prefix of their counters.
        sys: the mount point of sysfs.
        proc: the mount point of procfs.
    """

    def __init__(self, devices: Mapping[str, str], *, sys: Path = _SYS, proc: Path = _PROC) -> None:
        self._stat_files = {prefix: _stat_file(name, sys) for prefix, name in devices.items()}
        self._proc = proc
        self._energy = [_EnergyDomain(path) for path in sorted((sys / "class/powercap").glob("intel-rapl:*"))]
        # Sub-domains (intel-rapl:0:0) are part of their package and would count twice.
        self._energy = [domain for domain in self._energy if domain.is_package and domain.readable]

    def read(self) -> dict[str, float]:
        """The totals now, by name with unit; the same names each time."""
        totals = {"cpu_busy_s": self._cpu_busy_s(), **self._stalls()}
        for prefix, path in self._stat_files.items():
            totals |= _device_totals(prefix, path)
        if self._energy:
            totals["energy_j"] = sum(domain.joules() for domain in self._energy)
        return totals

    def _cpu_busy_s(self) -> float:
        """Seconds that processors did not idle."""
        fields = [int(text) for text in _read(self._proc / "stat").splitlines()[0].split()[1:]]
        user, nice, system, _idle, _iowait, irq, softirq = (*fields, 0, 0, 0)[:7]
        return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")

    def _stalls(self) -> dict[str, float]:
        totals: dict[str, float] = {}
        for resource in ("io", "memory", "cpu"):
            for line in _read(self._proc / "pressure" / resource).splitlines():
                if line.startswith("some") and " total=" in line:
                    totals[f"stall_{resource}_s"] = int(line.rpartition("total=")[2]) / 1e6
        return totals


def counter_names(prefixes: Iterable[str]) -> frozenset[str]:
    """The names that `Counters` of devices with these prefixes reads on this machine."""
    totals = dict.fromkeys(Counters({}).read())
    for prefix in prefixes:
        totals |= dict.fromkeys(_device_totals(prefix, Path("/nonexistent")))
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


def _stat_file(name: str, sys: Path) -> Path:
    """A device's or a partition's statistics."""
    return sys / "class/block" / name / "stat"


def _device_totals(prefix: str, path: Path) -> dict[str, float]:
    """Operations, bytes and busy time (Documentation/block/stat.rst)."""
    fields = [int(text) for text in _read(path).split()]
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
