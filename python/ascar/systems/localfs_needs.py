"""What the local file system needs of a machine: rights, programs, file systems of the kernel."""

from __future__ import annotations

import platform
from pathlib import Path

from ascar.results.machine import Need
from ascar.systems.needs import keeper_needs, program_need, text_of

_KIND = ("localfs",)
_E2FS = ("e2fsprogs", "e2fsprogs")
_UTIL = ("util-linux", "util-linux")


def localfs_needs() -> tuple[Need, ...]:
    """Everything that it needs, found or not; what it can do without has no kind."""
    return (
        *keeper_needs(_KIND),
        _loop_devices(),
        program_need("mount", "mount file systems", ("mount", "util-linux"), _KIND),
        program_need("blkid", "see what a device holds before it is written", _UTIL, _KIND),
        program_need("mkfs.ext4", "make ext2, ext3, ext4", _E2FS, _KIND),
        program_need("mkfs.xfs", "make xfs", ("xfsprogs", "xfsprogs")),
        program_need("mkfs.btrfs", "make btrfs", ("btrfs-progs", "btrfs-progs")),
        program_need("mkfs.nilfs2", "make nilfs2", ("nilfs-tools", "nilfs-utils")),
        program_need("mkreiserfs", "make reiserfs", ("reiserfsprogs", "reiserfs-utils")),
        program_need("fio", "the load of most studies", ("fio", "fio"), _KIND),
        *(_file_system(name) for name in ("ext4", "xfs", "btrfs")),
        _memory_group(),
    )


def _loop_devices() -> Need:
    device = Path("/dev/loop-control")
    remedy = "run `modprobe loop`; in a container, pass /dev/loop-control and the loop devices through"
    return Need(
        "loop devices",
        "image files as disks",
        str(device) if device.exists() else None,
        _KIND,
        remedy=remedy,
    )


def _file_system(name: str) -> Need:
    known = name in text_of(Path("/proc/filesystems")).split()
    module = Path("/lib/modules", platform.release())
    lists = "".join(text_of(module / listing) for listing in ("modules.dep", "modules.builtin"))
    found = "kernel" if known else "module" if f"/{name}.ko" in lists else None
    remedy = f"install the kernel's module {name}, or leave {name} out of the study"
    return Need(f"kernel: {name}", "a file system to compare", found, remedy=remedy)


def _memory_group() -> Need:
    """A control group that limits memory: v2's file of controllers, or v1's directory."""
    found = None
    for controllers in (
        Path("/sys/fs/cgroup/cgroup.controllers"),
        Path("/sys/fs/cgroup/unified/cgroup.controllers"),
    ):
        if "memory" in text_of(controllers).split():
            found = "version 2"
    if Path("/sys/fs/cgroup/memory/memory.limit_in_bytes").exists():
        found = found or "version 1"
    remedy = "boot with cgroup_enable=memory, or mount the memory controller"
    return Need("memory control group", "limit the page cache that a load may use", found, remedy=remedy)
