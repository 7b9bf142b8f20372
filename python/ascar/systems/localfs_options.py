"""The `[target]` table of kind "localfs", and what of it can be checked before anything is touched."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Literal

import msgspec

from ascar.errors import EnvironmentLacks, Refused, StudyError
from ascar.program.found import find_program
from ascar.space import preset
from ascar.study import duration, size
from ascar.systems.machine import missing_program
from ascar.units import format_size

FILE_SYSTEMS = ("ext2", "ext3", "ext4", "xfs", "btrfs", "nilfs2", "reiserfs")
MKFS = {
    "ext2": "mke2fs",
    "ext3": "mke2fs",
    "ext4": "mke2fs",
    "xfs": "mkfs.xfs",
    "btrfs": "mkfs.btrfs",
    "nilfs2": "mkfs.nilfs2",
    "reiserfs": "mkreiserfs",
}
MIB = 2**20
SIZE_BYTES_MIN = 320 * MIB  # mkfs.xfs refuses less than 300 MiB
MEMORY_BYTES_MIN = 32 * MIB  # below, a load's own code hardly fits
DEVICES_MAX = 64
RATIO_MIN, RATIO_MAX = 0.01, 1000.0
IOPS_MIN, IOPS_MAX = 10, 10_000_000
IOPS_CONTROL = Path("/sys/fs/cgroup/blkio/blkio.throttle.write_iops_device")


class LocalFileSystemOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[target]` of kind "localfs".

    Attributes:
        image: path of the image file that becomes the disk; it must not exist yet and is removed at the end.
            None: a file in ~/.cache/ascar.
        size: the size of the image file, at least 320 MiB; the disk must have so much free space.
        device: a block device to use instead of an image. Everything on it is lost. Several, as a list: the
            study compares them, by its parameter `device`; the first one is the default.
        confirmed_device: the same path or paths again, as the confirmation; --format-device sets it.
        memory: page cache and memory that the load may use; "none" for no limit.
        dataset_to_memory: instead of memory: how many times as large as the memory the load's data is.
        state: the state in which each trial starts. "fresh": a new file system. "restored": the filled image,
            saved after its first fill and copied back. "auto": whichever of the two is measured to be faster.
            "reuse": the state that the previous trial left, formatted only where a parameter needs it:
            faster, and biased by age.
        saved: disk space for saved images.
        kernel: "user-mode": file systems are made, mounted and loaded in a node of user-mode Linux, whose
            kernel (Debian's) has some that the machine's lacks. Root is not needed; the image is the node's
            disk. None: the machine's kernel.
        preset: the space: what present kernels offer (storage-v5), or one that Cao published, "storage-v1" to
            "storage-v4".
        file_systems: the file systems to compare. None: all that this machine can make and mount.
        user: account that the load runs as. None: the account that runs ascar.
        direct_io: whether the image bypasses the page cache of the disk below it, as a real disk does.
        iops: the limit on reads a second and on writes a second while the load runs, as a cloud volume of
            that class has; the journal's writes count too. None: as fast as the disk below, whose cache may
            acknowledge a flush for free. Needs version 1 of the control group blkio.
        machine_wide: whether the study may touch what the whole machine shares: it tunes `vm.*`, and drops
            all caches before each load. If false, `vm.*` stays as it is, and the device's own caches are
            forgotten by unmounting it, so that two such studies can run side by side. "settings": it tunes
            `vm.*`, and forgets the device's own caches alone; a session's default.
        step_limit: a step of changing the configuration (format, mount, ...) that takes longer has failed.
    """

    image: str | None = None
    size: str = "2560 MiB"
    device: str | tuple[str, ...] | None = None
    confirmed_device: str | tuple[str, ...] | None = None
    memory: str | None = None
    dataset_to_memory: float | None = None
    state: Literal["auto", "fresh", "restored", "reuse"] = "auto"
    saved: str = "4 GiB"
    kernel: Literal["user-mode"] | None = None
    preset: Literal["storage-v1", "storage-v2", "storage-v3", "storage-v4", "storage-v5"] = "storage-v5"
    file_systems: tuple[str, ...] | None = None
    user: str | None = None
    direct_io: bool = True
    iops: int | None = None
    machine_wide: bool | Literal["settings"] = True
    step_limit: str = "2 min"


MEMORY_BYTES = 256 * MIB


class LocalFileSystemSettings(msgspec.Struct, frozen=True):
    """The options, read: sizes in bytes, durations in seconds.

    Attributes:
        options: the options as given.
        size_bytes: the size of the image.
        memory_bytes: limit on the load; None where there is none, or none yet.
        saved_bytes: disk space for saved images.
        step_limit_s: limit on each step.
    """

    options: LocalFileSystemOptions
    size_bytes: int
    memory_bytes: int | None
    saved_bytes: int
    step_limit_s: float

    @classmethod
    def read(cls, options: LocalFileSystemOptions) -> LocalFileSystemSettings:
        """Check what does not depend on the machine.

        Raises:
            StudyError: a value is impossible, or two contradict each other.
        """
        _check_choice(options)
        size_bytes = size("target.size", options.size)
        if size_bytes < SIZE_BYTES_MIN or size_bytes % 4096:
            raise StudyError(
                f"target.size = {options.size!r}: must be at least {format_size(SIZE_BYTES_MIN)}, "
                "in multiples of 4096 bytes"
            )
        if options.iops is not None and not IOPS_MIN <= options.iops <= IOPS_MAX:
            raise StudyError(f"target.iops = {options.iops}: must be from {IOPS_MIN} to {IOPS_MAX}")
        for fs in options.file_systems or ():
            if fs not in FILE_SYSTEMS:
                raise StudyError(f"target.file_systems: {fs!r}: must be some of {', '.join(FILE_SYSTEMS)}")
        if options.file_systems is not None and not options.file_systems:
            raise StudyError(f"target.file_systems = []: must name at least one of {', '.join(FILE_SYSTEMS)}")
        return cls(
            options,
            size_bytes,
            _memory(options),
            size("target.saved", options.saved),
            _limit(options.step_limit),
        )

    @property
    def image(self) -> Path:
        """The image file."""
        if self.options.image is not None:
            return Path(self.options.image).expanduser().absolute()
        cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
        return Path(cache).expanduser().absolute() / "ascar" / f"localfs-{os.getpid()}.img"

    @property
    def devices(self) -> tuple[str, ...]:
        """The block devices that the study names; none: an image."""
        return _names(self.options.device)

    @property
    def confirmed(self) -> tuple[str, ...]:
        """The block devices that may be formatted."""
        return _names(self.options.confirmed_device)

    @property
    def place(self) -> str:
        """The image or the devices, for people."""
        return ", ".join(self.devices) or str(self.image)

    @property
    def device_bytes(self) -> int:
        """Size of what is made into a file system: the image, or the smallest of the devices."""
        return min((self._bytes_of(device) for device in self.devices), default=self.size_bytes)

    def _bytes_of(self, device: str) -> int:
        name = Path(device).resolve().name
        try:
            return 512 * int((Path("/sys/class/block") / name / "size").read_text("ascii"))
        except (OSError, ValueError):
            return self.size_bytes  # not here: entering says so

    def check_machine(self) -> None:
        """Check that this machine has what is needed; nothing is touched.

        Raises:
            EnvironmentLacks: a program or disk space is missing.
            StudyError: a path of the study leads nowhere.
            Refused: the device is not confirmed.
        """
        first = str(preset(self.options.preset)["fs"].default)
        for program in ("blkid", *sorted({MKFS[fs] for fs in self.options.file_systems or (first,)})):
            if find_program(program) is None:
                raise EnvironmentLacks(f"target.kind = 'localfs': {missing_program(program)}")
        if self.options.iops is not None and not IOPS_CONTROL.exists():
            raise EnvironmentLacks(
                f"target.iops = {self.options.iops}: this machine has no control group blkio of version 1 "
                f"({IOPS_CONTROL}); leave the key out"
            )
        if not self.devices:
            self._check_image()
        numbers: dict[int, str] = {}
        for device in self.devices:
            self._check_device(device, numbers)

    def _check_device(self, device: str, numbers: dict[int, str]) -> None:
        """Check one; `numbers` has those before it, by the number that the kernel gives a device."""
        try:
            status = Path(device).stat()
        except OSError as error:
            raise StudyError(f"target.device = {device!r}: {error.strerror}; name a block device") from error
        if not stat.S_ISBLK(status.st_mode):
            raise StudyError(
                f"target.device = {device!r}: is not a block device; use target.image for a file"
            )
        if (other := numbers.setdefault(status.st_rdev, device)) != device:
            raise StudyError(f"target.device = {device!r}: is the same device as {other!r}; name it once")
        if device not in self.confirmed:
            raise Refused(
                f"target.device = {device!r}: everything on it would be lost; "
                f"confirm with --format-device {device}"
            )

    def _check_image(self) -> None:
        image, given = self.image, self.options.image
        key = f"target.image = {given!r}" if given is not None else f"image file {str(image)!r}"
        directory = image.parent
        if given is None:
            try:
                directory.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise StudyError(f"{key}: {error.strerror}; name another place in target.image") from error
        try:
            is_directory = stat.S_ISDIR(directory.stat().st_mode)
        except FileNotFoundError:
            is_directory = False
        except OSError as error:
            raise StudyError(f"{key}: {error.strerror}; name another place in target.image") from error
        if not is_directory:
            raise StudyError(
                f"{key}: there is no directory {str(directory)!r}; make it, or name another place"
            )
        if os.path.lexists(image):
            raise StudyError(f"{key}: exists already; remove it, or name another file")
        if not os.access(directory, os.W_OK | os.X_OK):
            raise StudyError(f"{key}: its directory cannot be written; name another place in target.image")
        space = os.statvfs(directory)
        free_bytes = space.f_bavail * space.f_frsize
        if free_bytes < self.size_bytes:
            raise EnvironmentLacks(
                f"target.size = {self.options.size!r}: only {format_size(free_bytes)} are free in "
                f"{str(directory)!r}; free some space, ask for less, or name another place in target.image"
            )


def _check_choice(options: LocalFileSystemOptions) -> None:
    if options.kernel is not None:
        _check_kernel_choice(options)
    if options.device is not None:
        if options.image is not None:
            raise StudyError("target.image: cannot be given together with target.device; give one of them")
        if not (devices := _names(options.device)):
            raise StudyError("target.device = []: must name at least one block device")
        for device in devices:
            if not device.startswith("/dev/") or "\0" in device:
                raise StudyError(f"target.device = {device!r:.200}: must be a path below /dev")
            if devices.count(device) > 1:
                raise StudyError(f"target.device = {device!r:.200}: is named twice; name it once")
        if len(devices) > DEVICES_MAX:
            raise StudyError(f"target.device: names {len(devices)} devices; must be at most {DEVICES_MAX}")
        if options.state == "restored":
            raise StudyError(
                "target.state = 'restored': needs an image, not a device; choose 'fresh' or 'reuse'"
            )
    elif options.confirmed_device is not None:
        raise StudyError(
            f"target.confirmed_device = {options.confirmed_device!r}: confirms nothing; set target.device"
        )
    if options.image is not None and (not options.image or "\0" in options.image):
        raise StudyError(f"target.image = {options.image!r}: must be a path")


def _check_kernel_choice(options: LocalFileSystemOptions) -> None:
    """Refuse what a node that is a kernel does not have."""
    if options.device is not None:
        raise StudyError("target.device: cannot be given together with target.kernel; name a target.image")
    if options.state == "restored":
        raise StudyError(
            "target.state = 'restored': cannot be given together with target.kernel, whose disk is no image "
            "there; choose 'fresh' or 'reuse'"
        )
    if options.iops is not None:
        raise StudyError(
            f"target.iops = {options.iops}: cannot be given together with target.kernel, which has no "
            "control group blkio of version 1; leave the key out"
        )


def _names(given: str | tuple[str, ...] | None) -> tuple[str, ...]:
    """One or several, as a tuple."""
    return (given,) if isinstance(given, str) else given or ()


def _memory(options: LocalFileSystemOptions) -> int | None:
    ratio = options.dataset_to_memory
    if ratio is not None:
        if options.memory is not None:
            raise StudyError(
                "target.memory: cannot be given together with target.dataset_to_memory; give one of them"
            )
        if not RATIO_MIN <= ratio <= RATIO_MAX:
            raise StudyError(
                f"target.dataset_to_memory = {ratio!r}: must be from {RATIO_MIN:g} to {RATIO_MAX:g}"
            )
        return None
    if options.memory is None:
        return MEMORY_BYTES
    if options.memory == "none":
        return None
    memory_bytes = size("target.memory", options.memory)
    if memory_bytes < MEMORY_BYTES_MIN:
        raise StudyError(
            f"target.memory = {options.memory!r}: must be at least {format_size(MEMORY_BYTES_MIN)}, or 'none'"
        )
    return memory_bytes


def _limit(text: str) -> float:
    limit_s = duration("target.step_limit", text)
    if limit_s > 3600:
        raise StudyError(f"target.step_limit = {text!r}: must be at most one hour")
    return limit_s
