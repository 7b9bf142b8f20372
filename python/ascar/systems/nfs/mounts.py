"""What a client's kernel tells of its mounts of NFS: `/proc/self/mountinfo`, `/proc/self/mountstats`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ascar.errors import StageFailed

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
    return [_plain(words[4]) for line in mountinfo.split("\n") if len(words := line.split(" ")) > 4]


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
    for line in mountinfo.split("\n"):
        words, last = line.split(" "), line.partition(" - ")[2].split(" ")
        if len(words) > 4:
            kinds[words[0]] = last[0]
            below = words[1] if last[0] in _KINDS and _plain(words[4]) == place else below
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
    for line in mountinfo.split("\n"):
        own, dash, rest = line.partition(" - ")
        words, last = own.split(" "), rest.split(" ")
        if not dash or len(words) < 6 or len(last) != 3 or last[0] not in _KINDS:
            continue
        options = dict.fromkeys(one for one in (*words[5].split(","), *last[2].split(",")) if one)
        place, source = _plain(words[4]), _plain(last[1])
        found.append(NfsMounted(source, place, last[0], words[2], tuple(options)))
    return found


def mount_at(mountinfo: str, place: str) -> NfsMounted | None:
    """The mount whose mount point a path is; None: there is none."""
    return next((one for one in reversed(mounted(mountinfo)) if one.place == place), None)


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


def _plain(word: str) -> str:
    r"""A word of the kernel's, in which a space is `\040`."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 8)), word)
