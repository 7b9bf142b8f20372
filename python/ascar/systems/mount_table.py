"""What is mounted, as the kernel tells it in `/proc/self/mountinfo` (proc(5))."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

from ascar.errors import StageFailed

MOUNTINFO = "/proc/self/mountinfo"
_ESCAPED = re.compile(r"\\([0-7]{3})")


class KernelMount(NamedTuple):
    """A mount.

    Attributes:
        id: the mount's number.
        below: the number of the mount that it lies on.
        device: the number of its device, such as "8:1".
        place: the mount point.
        kind: the type of the file system.
        source: what is mounted: a device, or a server and its export.
        options: its options and those of the file system, each once.
        root: the directory of the file system that is seen there.
    """

    id: str
    below: str
    device: str
    place: str
    kind: str
    source: str
    options: tuple[str, ...]
    root: str = "/"

    @property
    def is_bound(self) -> bool:
        """Whether a part of a file system is mounted that is mounted elsewhere, too (mount(8), --bind)."""
        subvolume = next((one for one in self.options if one.startswith("subvol=")), "")
        return self.root != (plain(subvolume.removeprefix("subvol=")) or "/")


def mounts_in(mountinfo: str) -> list[KernelMount]:
    """The mounts of a text, the latest of each place last; lines that cannot be read are left out."""
    found: list[KernelMount] = []
    for line in mountinfo.split("\n"):  # a name may have what Python takes for other ends of a line
        before, _, behind = line.partition(" - ")
        own, last = before.split(" "), behind.split(" ")
        if len(own) > 5 and len(last) == 3:
            options = tuple(dict.fromkeys(one for one in (*own[5].split(","), *last[2].split(",")) if one))
            place, source, root = plain(own[4]), plain(last[1]), plain(own[3])
            found.append(KernelMount(own[0], own[1], own[2], place, last[0], source, options, root))
    return found


def mounts_here() -> list[KernelMount]:
    """The mounts that this process sees; none where the kernel does not tell."""
    try:
        return mounts_in(Path(MOUNTINFO).read_text("utf-8", errors="replace"))
    except OSError:
        return []


def mount_around(path: str) -> KernelMount:
    """The mount that a directory is on, as the kernel tells it of an open file (proc(5), fdinfo).

    Raises:
        StageFailed: the directory cannot be opened, or the kernel does not tell.
    """
    try:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            with open(f"/proc/self/fdinfo/{opened}", encoding="ascii") as file:  # noqa: PTH123 - a number's
                number = next((line.split()[1] for line in file if line.startswith("mnt_id:")), "")
        finally:
            os.close(opened)
    except OSError as error:
        raise StageFailed("mount", f"{path}: {error.strerror}") from error
    mount = next((one for one in mounts_here() if one.id == number), None)
    if mount is None:
        raise StageFailed("mount", f"{path}: the kernel does not tell what is mounted there")
    return mount


def plain(word: str) -> str:
    r"""A word of the kernel's, in which a space is `\040`."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 8)), word)
