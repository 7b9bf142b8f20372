"""Where a configuration is to be put in force: a block device, a mounted file system, both or neither."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from ascar.errors import InputError
from ascar.systems.machine import disk_of
from ascar.systems.mount_table import KernelMount, mounts_here


@dataclass(frozen=True, slots=True)
class Place:
    """What the user named, looked up.

    Attributes:
        device: path of the block device; None where none was named.
        name: the kernel's name of the device, e.g. "sda1".
        queue: the kernel name of the device whose queue it uses: a partition's disk.
        mountpoint: the mount point of the file system; None if no mount point was named.
        fs: the type of the file system.
        in_use: the mount points of the device and of its partitions.
    """

    device: str | None = None
    name: str | None = None
    queue: str | None = None
    mountpoint: Path | None = None
    fs: str | None = None
    in_use: tuple[str, ...] = ()

    @classmethod
    def named(cls, device: str | None, mountpoint: Path | None) -> Place:
        """The place that the command line names.

        Raises:
            InputError: it is not a block device, nothing is mounted there, or the two do not belong together.
        """
        fs = None
        if mountpoint is not None:
            mount = _mounted(mountpoint)
            source, fs = mount.source, mount.kind
            if not source.startswith("/dev/"):
                raise InputError(
                    f"--mountpoint = {str(mountpoint)!r}: holds a {fs}, which is not on a block device; "
                    "name the mount point of a file system on a disk, or leave it out"
                )
            if device is not None and not _same_device(device, source):
                raise InputError(
                    f"--device = {device!r}: is not what is mounted there; {mountpoint} is on {source!r}"
                )
            device = device or source
        if device is None:
            return cls()
        name = _kernel_name(device)
        return cls(device, name, disk_of(name), mountpoint, fs, _mount_points(name))


def _mounted(mountpoint: Path) -> KernelMount:
    """What is mounted there; of several, the one on top."""
    wanted = str(mountpoint.resolve())
    found = [one for one in mounts_here() if one.place == wanted]
    if not found:
        raise InputError(
            f"--mountpoint = {str(mountpoint)!r}: nothing is mounted there; `findmnt` lists mount points"
        )
    return found[-1]


def _mount_points(name: str) -> tuple[str, ...]:
    """Where a device or one of its partitions is mounted, each place once."""
    entry = Path("/sys/class/block", name).resolve()
    numbers = {path.read_text("ascii").strip() for path in (entry / "dev", *entry.glob("*/dev"))}
    return tuple(dict.fromkeys(one.place for one in mounts_here() if one.device in numbers))


def _kernel_name(device: str) -> str:
    try:
        status = Path(device).stat()
    except OSError as error:
        raise InputError(
            f"device {device!r}: {error.strerror}; name a block device such as /dev/sda"
        ) from error
    link = Path(f"/sys/dev/block/{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}")
    if not stat.S_ISBLK(status.st_mode) or not link.exists():
        raise InputError(f"device {device!r}: is not a block device; name one such as /dev/sda")
    return link.resolve().name


def _same_device(left: str, right: str) -> bool:
    try:
        return Path(left).stat().st_rdev == Path(right).stat().st_rdev
    except OSError:
        return False
