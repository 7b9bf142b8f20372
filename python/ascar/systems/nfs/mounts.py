"""Mounts of NFS as the kernel tells them, in `/proc/self/mountinfo` and `mountstats`, and who uses one."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ascar.errors import Refused, StageFailed, StudyError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MOUNTINFO, MOUNTSTATS = "/proc/self/mountinfo", "/proc/self/mountstats"
COUNTERS = (
    "nfs_operations",
    "nfs_transmissions",
    "nfs_timeouts",
    "nfs_queue_s",
    "nfs_round_trip_s",
    "nfs_execute_s",
    "nfs_read_bytes",
    "nfs_write_bytes",
)
"""What `counters_of` tells of a mount, all operations together."""
_KINDS = ("nfs", "nfs4")
_MOUNT_AGAIN = ("autofs", *_KINDS)
_USERS_SHOWN = 3
_ESCAPED = re.compile(r"\\([0-7]{3})")
# What the kernel adds for one connection, and what is another file system's.
_DERIVED = ("addr=", "clientaddr=", "mountaddr=", "mountport=", "namlen=")
_NUMBER = re.compile(r"[0-9]{1,20}")


@dataclass(frozen=True, slots=True)
class NfsMounted:
    """A mount.

    Attributes:
        source: the server and its export.
        place: the mount point.
        kind: nfs or nfs4.
        number: of its backing device information, such as "0:45".
        options: all of its options, as the kernel has them.
    """

    source: str
    place: str
    kind: str
    number: str
    options: tuple[str, ...]

    @property
    def given(self) -> tuple[str, ...]:
        """The options that mount the same again."""
        return tuple(one for one in self.options if not one.startswith(_DERIVED))

    @property
    def server(self) -> str:
        """The server's address, or its name where the kernel does not tell the address."""
        told = next((one for one in self.options if one.startswith("addr=")), "")
        return told.removeprefix("addr=") or self.source.rpartition(":/")[0]


def mount_points(mountinfo: str) -> list[str]:
    """Where something is mounted, of whatever kind; a place with several mounts is there several times.

    Args:
        mountinfo: the text of `/proc/self/mountinfo`, see proc(5).
    """
    return [_plain(own[4]) for own, _ in _lines_of(mountinfo)]


def kind_below(mountinfo: str, place: str) -> str:
    """The kind of the file system that a mount point of NFS lies on; empty: it is not told.

    One on autofs is mounted again as soon as its path is looked up, and so is a server's inner file system on
    the mount of its outer one.

    Args:
        mountinfo: the text of `/proc/self/mountinfo`.
        place: the mount point.
    """
    kinds: dict[str, str] = {}
    below = ""
    for own, last in _lines_of(mountinfo):
        kinds[own[0]] = last[0]
        below = own[1] if last[0] in _KINDS and _plain(own[4]) == place else below
    return kinds.get(below, "")


def sharing(mountinfo: str, mount: NfsMounted) -> list[str]:
    """Where else the same server is mounted; such mounts share their connections, and the slots of these.

    Args:
        mountinfo: the text of `/proc/self/mountinfo`.
        mount: one of its mounts.
    """
    return sorted({one.place for one in mounted(mountinfo) if one.server == mount.server} - {mount.place})


def mounted(mountinfo: str) -> list[NfsMounted]:
    """The mounts of NFS, the latest of each place last; what cannot be read is left out.

    Args:
        mountinfo: the text of `/proc/self/mountinfo`, see proc(5).
    """
    found: list[NfsMounted] = []
    for own, last in _lines_of(mountinfo):
        if len(own) > 5 and len(last) == 3 and last[0] in _KINDS:
            options = dict.fromkeys(one for one in (*own[5].split(","), *last[2].split(",")) if one)
            found.append(NfsMounted(_plain(last[1]), _plain(own[4]), last[0], own[2], tuple(options)))
    return found


def mount_at(mountinfo: str, place: str) -> NfsMounted | None:
    """The mount whose mount point a path is; None: there is none."""
    return next((one for one in reversed(mounted(mountinfo)) if one.place == place), None)


def check_idle(place: str, mountinfo: str) -> None:
    """See that nobody uses a mount.

    Args:
        place: the mount point.
        mountinfo: the text of `/proc/self/mountinfo`.

    Raises:
        Refused: a process has a file or a directory of it open, something else is mounted on it, or it would
            be mounted again by itself.
    """
    points = mount_points(mountinfo)
    if (kind := kind_below(mountinfo, place)) in _MOUNT_AGAIN:
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


def mount_around(mountinfo: str, path: str) -> NfsMounted:
    """The mount that a directory is on.

    Raises:
        StudyError: it is on none of NFS.
    """
    real = os.path.realpath(path)
    around = [one for one in mounted(mountinfo) if real == one.place or real.startswith(f"{one.place}/")]
    if not around:
        raise StudyError(
            f"target.path = {path!r:.80}: is on no mount of NFS; mount it first, or leave out target.server "
            "for a server of the study's own"
        )
    return max(around, key=lambda one: len(one.place))


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
            is_it = is_it and _plain(words[4]) == place
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
    """The numbers of an operation: count, transmissions, time-outs, bytes, times in milliseconds."""
    if len(words) < 8 or not all(map(_NUMBER.fullmatch, words)):
        return
    count, transmissions, timeouts, _, _, queue_ms, round_trip_ms, execute_ms = map(float, words)
    totals["nfs_operations"] += count
    totals["nfs_transmissions"] += transmissions
    totals["nfs_timeouts"] += timeouts
    totals["nfs_queue_s"] += queue_ms / 1e3
    totals["nfs_round_trip_s"] += round_trip_ms / 1e3
    totals["nfs_execute_s"] += execute_ms / 1e3


def _lines_of(mountinfo: str) -> Iterator[tuple[list[str], list[str]]]:
    """The words of each mount: what it is, and behind the dash its kind, source and options."""
    for line in mountinfo.split("\n"):
        own, _, rest = line.partition(" - ")
        if len(words := own.split(" ")) > 4:
            yield words, rest.split(" ")


def _plain(word: str) -> str:
    r"""A word of the kernel's, in which a space is `\040`."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 8)), word)
