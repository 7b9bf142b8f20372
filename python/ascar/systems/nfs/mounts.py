"""Mounts of NFS as the kernel tells them, in its table and in `/proc/self/mountstats`, and who uses one."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ascar.errors import Refused, StageFailed
from ascar.systems.mount_table import KernelMount, mounts_in, plain

if TYPE_CHECKING:
    from collections.abc import Iterable

MOUNTSTATS = "/proc/self/mountstats"
# Where they stand among an operation's numbers, and what makes one: times are in milliseconds.
_OF_OPERATIONS = {
    "nfs_operations": (0, 1),
    "nfs_transmissions": (1, 1),
    "nfs_timeouts": (2, 1),
    "nfs_queue_s": (5, 1000),
    "nfs_round_trip_s": (6, 1000),
    "nfs_execute_s": (7, 1000),
}
COUNTERS = (*_OF_OPERATIONS, "nfs_read_bytes", "nfs_write_bytes")
"""What `counters_of` tells of a mount, all operations together."""
KINDS = ("nfs", "nfs4")
"""What the kernel calls mounts of NFS."""
_MOUNT_AGAIN = ("autofs", *KINDS)
_USERS_SHOWN = 3
# What the kernel adds for one connection, and what is another file system's.
_DERIVED = ("addr=", "clientaddr=", "mountaddr=", "mountport=", "namlen=")
_NUMBER = re.compile(r"[0-9]{1,20}")


class NfsMounted(KernelMount):
    """A mount of NFS."""

    __slots__ = ()

    @property
    def given(self) -> tuple[str, ...]:
        """The options that mount the same again."""
        return tuple(one for one in self.options if not one.startswith(_DERIVED))

    @property
    def server(self) -> str:
        """The server's address, or its name where the kernel does not tell the address."""
        told = next((one for one in self.options if one.startswith("addr=")), "")
        return told.removeprefix("addr=") or self.source.rpartition(":/")[0]


def sharing(mountinfo: str, mount: NfsMounted) -> list[str]:
    """Where else the same server is mounted; such mounts share their connections, and the slots of these.

    Args:
        mountinfo: the text of `/proc/self/mountinfo`.
        mount: one of its mounts.
    """
    return sorted({one.place for one in mounted(mountinfo) if one.server == mount.server} - {mount.place})


def mounted(mountinfo: str) -> list[NfsMounted]:
    """The mounts of NFS, the latest of each place last; what cannot be read is left out."""
    return [NfsMounted(*one) for one in mounts_in(mountinfo) if one.kind in KINDS]


def mount_at(mountinfo: str, place: str) -> NfsMounted | None:
    """What is seen at a mount point, also of another kind; None: nothing is mounted there."""
    return next((NfsMounted(*one) for one in reversed(mounts_in(mountinfo)) if one.place == place), None)


def check_idle(place: str, mountinfo: str) -> None:
    """See that nobody uses a mount.

    Args:
        place: the mount point.
        mountinfo: the text of `/proc/self/mountinfo`.

    Raises:
        Refused: a process has a file or a directory of it open, something else is mounted on it, or it would
            be mounted again by itself.
    """
    points = [one.place for one in mounts_in(mountinfo)]
    own, kinds = mount_at(mountinfo, place), {one.id: one.kind for one in mounts_in(mountinfo)}
    # One on autofs is mounted again as soon as its path is looked up, as a server's inner file system on the
    # mount of its outer one is.
    if own is not None and (kind := kinds.get(own.below, "")) in _MOUNT_AGAIN:
        raise Refused(
            f"target.path: {place} is mounted below {kind}, which mounts it again by itself; leave out "
            "target.remounts, or mount it elsewhere by hand"
        )
    if any(point.startswith(f"{place}/") for point in points) or points.count(place) > 1:
        raise Refused(f"target.path: something else is mounted on {place}; it is not unmounted")
    users = sorted(set(_users(place)))
    if users:
        names = ", ".join(f"{name} (process {pid})" for pid, name in users[:_USERS_SHOWN])
        raise Refused(
            f"target.path: {place} is in use by {names}; it is not unmounted: end them, or leave out "
            "target.remounts"
        )


def _users(place: str) -> Iterable[tuple[int, str]]:
    """Processes that have something of a mount as their directory, their program, or an open file."""
    for process in Path("/proc").iterdir():
        if not process.name.isdecimal():
            continue
        with suppress(OSError):
            links = [process / "cwd", process / "root", process / "exe", *(process / "fd").iterdir()]
            for link in links:
                with suppress(OSError):
                    file = os.readlink(link)  # noqa: PTH115 - also of what no path names
                    if file == place or file.startswith(f"{place}/"):
                        yield int(process.name), (process / "comm").read_text().strip()


def counters_of(mountstats: str, place: str) -> dict[str, float]:
    """The totals of a mount, all operations together; see `COUNTERS`.

    Args:
        mountstats: the text of `/proc/self/mountstats`.
        place: the mount point.

    Raises:
        StageFailed: nothing of NFS is mounted there.
    """
    totals = dict.fromkeys(COUNTERS, 0.0)
    is_it = is_found = is_operations = False
    for line in mountstats.split("\n"):
        words = line.split()
        if line.startswith("device "):
            is_it = words[2:4] == ["mounted", "on"] and words[7:8] in (["nfs"], ["nfs4"])
            is_it = is_it and plain(words[4]) == place
            is_found, is_operations = is_found or is_it, False
        elif not is_it or not words:
            continue
        elif words[0] == "per-op":
            is_operations = True
        elif is_operations:
            _add(totals, words[1:9])
        elif words[0] == "bytes:" and len(words) > 6 and all(map(_NUMBER.fullmatch, words[5:7])):
            totals["nfs_read_bytes"], totals["nfs_write_bytes"] = (float(word) for word in words[5:7])
    if not is_found:
        raise StageFailed("sample", f"{place}: nothing of NFS is mounted there")
    return totals


def _add(totals: dict[str, float], words: list[str]) -> None:
    """Count the numbers of an operation, if they are whole."""
    if len(words) == 8 and all(map(_NUMBER.fullmatch, words)):
        for name, (place, unit) in _OF_OPERATIONS.items():
            totals[name] += float(words[place]) / unit
