"""The machine that results are valid for: kernel, processors, memory, block devices, programs."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import subprocess
from pathlib import Path
from typing import Any

from ascar.program.found import find_program
from ascar.systems.mount_table import mounts_here

_PACKAGES = {
    "mke2fs": ("e2fsprogs", "e2fsprogs"),
    "mkfs.xfs": ("xfsprogs", "xfsprogs"),
    "mkfs.btrfs": ("btrfs-progs", "btrfs-progs"),
    "mkfs.nilfs2": ("nilfs-tools", "nilfs-utils"),
    "mkreiserfs": ("reiserfsprogs", "reiserfs-utils"),
    "blkid": ("util-linux", "util-linux"),
    "wipefs": ("util-linux", "util-linux"),
}
_VERSION_LENGTH_MAX = 100
_IDENTITY_LENGTH_MAX = 200
_BLOCK_DEVICES = Path("/sys/class/block")


def missing_program(name: str) -> str:
    """That a program is missing, and how to get it, as half a sentence."""
    debian, fedora = _PACKAGES.get(name, (name, name))
    return f"the program {name} is missing: Debian `apt install {debian}`, Fedora `dnf install {fedora}`"


def program_version(name: str, option: str = "-V") -> str:
    """The first line that a program says about its version; empty where it says none."""
    path = find_program(name)
    if path is None:
        return ""
    try:
        done = subprocess.run(
            [path, option], capture_output=True, text=True, errors="replace", timeout=10, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    words = f"{done.stdout}\n{done.stderr}".strip().splitlines()
    return words[0][:_VERSION_LENGTH_MAX] if words else ""


def describe_machine() -> dict[str, Any]:
    """An id, kernel, distribution, processors, memory."""
    return {
        "machine_id": _machine_id(),
        "kernel": platform.release(),
        "distribution": _distribution(),
        "architecture": platform.machine(),
        "cpu": _cpu(),
        "cpus": len(os.sched_getaffinity(0)),
        "machine_memory_bytes": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        "virtual": _is_virtual(),
    }


def _machine_id() -> str | None:
    """A digest of systemd's machine id, by which two machines are told apart; None where there is none."""
    try:
        known = Path("/etc/machine-id").read_text("ascii").strip()
    except (OSError, UnicodeDecodeError):
        return None
    return hashlib.sha256(f"ascar {known}".encode()).hexdigest()[:16] if known else None


def backing_of(path: Path) -> str | None:
    """The block device below a file or directory, by its kernel name; None where there is none (tmpfs)."""
    number = path.stat().st_dev
    return block_device(os.major(number), os.minor(number))


def block_device(major: int, minor: int) -> str | None:
    """A block device's kernel name; None where there is none of that number, or a container hides them."""
    try:
        return Path(f"/sys/dev/block/{major}:{minor}").resolve(strict=True).name
    except OSError:
        return None


def disk_of(device: str) -> str:
    """The disk of a partition; a device that is no partition is its own."""
    entry = _BLOCK_DEVICES / device
    return entry.resolve().parent.name if (entry / "partition").exists() else device


def disk_identity(device: str) -> str:
    """The world-wide name or serial number that the disk of a device tells; empty: it tells none.

    Names such as sdb go to other disks when the machine starts again.
    """
    disk = _BLOCK_DEVICES / disk_of(device)
    for name in ("wwid", "device/wwid", "serial", "device/serial", "dm/uuid", "md/uuid"):
        if told := " ".join(_lines(disk / name)).strip():
            return told[:_IDENTITY_LENGTH_MAX]
    return ""


def file_system_of(path: Path) -> str:
    """The type of the file system that holds a path; empty where the kernel does not say."""
    number = path.stat().st_dev
    wanted = f"{os.major(number)}:{os.minor(number)}"
    return next((one.kind for one in mounts_here() if one.device == wanted), "")


def _distribution() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "Linux")
    except OSError:
        return platform.system()


def _cpu() -> str:
    for line in _lines(Path("/proc/cpuinfo")):
        match = re.match(r"(?:model name|Model|cpu model)\s*:\s*(.+)", line)
        if match:
            return match[1].strip()
    return platform.processor()


def _is_virtual() -> bool:
    """Whether the processor says that it is a virtual machine's."""
    return any(line.startswith("flags") and " hypervisor" in line for line in _lines(Path("/proc/cpuinfo")))


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text("utf-8", errors="replace").splitlines()
    except OSError:
        return []
