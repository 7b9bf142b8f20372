"""What the keeper answers: one value an operation."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - msgspec reads the annotations

import msgspec

from ascar.results.machine import (  # noqa: TC001 - msgspec reads the annotations
    PendingConfirmation,
    RestoreReport,
)


class Capabilities(msgspec.Struct, frozen=True):
    """What this machine offers.

    `file_systems` are those that the kernel mounts and that have their mkfs here; `cgroup_memory` is the
    interface that bounds memory ("v1", "v2" or None).
    """

    file_systems: tuple[str, ...]
    cgroup_memory: str | None
    schedulers: tuple[str, ...]
    kernel: str


class Hello(msgspec.Struct, frozen=True):
    """Who the keeper is, for whom it works (`uid`, `gid`), and what dead keepers had left behind."""

    version: int
    boot_id: str
    pid: int
    uid: int
    gid: int
    capabilities: Capabilities
    restored: RestoreReport


class Reverted(msgspec.Struct, frozen=True):
    """What was put back last because nobody confirmed it, when, and what came of that."""

    owner: str
    at_unix_s: int
    report: RestoreReport


class Confirmation(msgspec.Struct, frozen=True):
    """What waits for a confirmation, and what was put back for the lack of one."""

    unconfirmed: tuple[PendingConfirmation, ...]
    reverted: Reverted | None


class ConfirmedChanges(msgspec.Struct, frozen=True):
    """How many changes stay."""

    changes: int


class FileReplaced(msgspec.Struct, frozen=True):
    """A file was replaced; its real path."""

    path: Path


class Nothing(msgspec.Struct, frozen=True):
    """Done; there is nothing to tell."""


class DoneReply(msgspec.Struct, frozen=True):
    """Done, and how long it took."""

    seconds: float


class KnobReply(msgspec.Struct, frozen=True):
    """A knob's value in force, and what it may be set to: one of `choices`, or a number within the bounds."""

    knob: str
    value: int | str
    choices: tuple[str, ...]
    minimum: int | None
    maximum: int | None


class KnobWritten(msgspec.Struct, frozen=True):
    """A knob's value before and after (the kernel may round), and those of the knobs it changes as well."""

    knob: str
    old: int | str
    effective: int | str
    coupled: dict[str, int | str]


class Image(msgspec.Struct, frozen=True):
    """An image file that goes with the session."""

    path: Path
    size_bytes: int


class Attached(msgspec.Struct, frozen=True):
    """A loop device: `device` is "/dev/loop0", `name` "loop0"."""

    device: Path
    name: str
    direct_io: bool


class Claimed(msgspec.Struct, frozen=True):
    """A block device of the machine that may be written."""

    device: Path
    name: str
    size_bytes: int


class Copied(msgspec.Struct, frozen=True):
    """How an image was copied: "reflink" shares its blocks, "copy" copies those that are not holes."""

    seconds: float
    copied_bytes: int
    method: str


class Formatted(msgspec.Struct, frozen=True):
    """A file system that was made, with the exact command."""

    seconds: float
    command: tuple[str, ...]
    output: str


class Mounted(msgspec.Struct, frozen=True):
    """A mounted file system, with the options that are really in force."""

    mountpoint: Path
    options: tuple[str, ...]
    capacity_bytes: int
    available_bytes: int
    seconds: float


class Cgroup(msgspec.Struct, frozen=True):
    """A control group with bounded memory."""

    path: Path
    version: str
    memory_bytes: int


class CgroupUse(msgspec.Struct, frozen=True):
    """What the processes of the control group use; None where the kernel does not say."""

    memory_now_bytes: int | None
    memory_peak_bytes: int | None
    oom_kills: int | None
    processes: int


class JournalEntry(msgspec.Struct, frozen=True):
    """Something that is changed now; `old` and `expected` are what was there and what we put there."""

    kind: str
    target: str
    old: str | None
    expected: str | None


class Status(msgspec.Struct, frozen=True):
    """Everything that is changed now, in the order it was changed."""

    changes: tuple[JournalEntry, ...]
