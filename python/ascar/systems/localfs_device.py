"""The device that a file system under tuning lives on: what the keeper does for us, step by step, timed."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ascar.errors import EnvironmentLacks, InputError, StageFailed, StudyError
from ascar.nodes.process import output_of
from ascar.systems.localfs_options import SIZE_BYTES_MIN
from ascar.systems.machine import disk_of
from ascar.systems.recipe import KNOBS
from ascar.systems.steps import SecondsByStep
from ascar.units import format_size

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from ascar.nodes import Node
    from ascar.systems.keeper import Keeper
    from ascar.systems.keeper_replies import Copied
    from ascar.systems.localfs_options import LocalFileSystemSettings
    from ascar.systems.recipe import Recipe

_QUEUE, _SCHEDULER, _DEPTH = "block.", "block.DEV.scheduler", "block.DEV.nr_requests"
_DIRTY = ("vm.dirty_background_ratio", "vm.dirty_ratio")


class DeviceSteps(SecondsByStep):
    """Seconds by step of what the keeper does to a device."""

    @contextmanager
    def step(self, name: str) -> Generator[None]:
        """Time a step; a request that the keeper calls wrong is a step that failed.

        A configuration can ask for what this kernel does not take; that is the configuration's failure and
        not the study's.
        """
        try:
            with super().step(name):
                yield
        except InputError as error:
            raise StageFailed(name, error.message) from error


class Device:
    """A device of the session.

    Args:
        keeper: started; it owns the device.
        path: e.g. /dev/loop0.
        name: the kernel's name for it, e.g. loop0.
        owner: uid and gid of whom the files belong to; None: the caller.
        settings: the study's.
        node: the machine that it is of; None: this one.
    """

    def __init__(
        self,
        keeper: Keeper,
        path: Path,
        name: str,
        owner: tuple[int, int] | None,
        settings: LocalFileSystemSettings,
        *,
        node: Node | None = None,
    ) -> None:
        self.name = name
        self._queue = disk_of(name)
        self._node = node
        self.mountpoint: Path | None = None
        self._keeper = keeper
        self._path = path
        self._owner = owner
        self._limit_s = settings.step_limit_s
        self._knobs: dict[str, int | str] = {}

    @classmethod
    def take(
        cls,
        keeper: Keeper,
        settings: LocalFileSystemSettings,
        owner: tuple[int, int] | None,
        node: Node | None = None,
    ) -> dict[str, Device]:
        """Claim the devices that a study names, or make an image file and a loop device on it.

        Args:
            keeper: started.
            settings: the study's.
            owner: see `Device`.
            node: the keeper's machine; None: this one.

        Returns:
            The devices by the study's name for each; the image's is "".

        Raises:
            EnvironmentLacks: a device is too small.
            Refused: it is in use, read-only, or not confirmed.
            StudyError: a limit is asked for that it cannot have.
        """
        found: dict[str, tuple[Path, str]] = {}
        for device in settings.devices:
            claimed = keeper.device_claim(Path(device), confirmed=device in settings.confirmed)
            if claimed.size_bytes < SIZE_BYTES_MIN:
                raise EnvironmentLacks(
                    f"target.device = {device!r}: has {format_size(claimed.size_bytes)}; "
                    f"name one with at least {format_size(SIZE_BYTES_MIN)}"
                )
            if settings.options.iops is not None and disk_of(claimed.name) != claimed.name:
                raise StudyError(
                    f"target.iops = {settings.options.iops}: limits a whole disk, and {device!r} is a part "
                    "of one; leave the key out, or name a disk"
                )
            found[device] = claimed.device, claimed.name
        if not found:
            image = keeper.image_create(settings.image, settings.size_bytes)
            attached = keeper.image_attach(image.path, direct_io=settings.options.direct_io)
            found[""] = attached.device, attached.name
        return {
            given: cls(keeper, path, name, owner, settings, node=node)
            for given, (path, name) in found.items()
        }

    def format(self, recipe: Recipe, steps: DeviceSteps) -> None:
        """Make the recipe's file system."""
        with steps.step("format"):
            self._keeper.format(recipe.fs, recipe.format, device=self._path, timeout_s=self._limit_s)

    def mount(self, recipe: Recipe, steps: DeviceSteps) -> None:
        """Mount it; settings that exist only while it is mounted are the kernel's defaults afterwards."""
        with steps.step("mount"):
            mounted = self._keeper.mount(
                recipe.fs, recipe.mount, self._path, owner=self._owner, timeout_s=self._limit_s
            )
            self.mountpoint = mounted.mountpoint
            for knob in [knob for knob in self._knobs if knob in self._named(recipe.mounted_knobs)]:
                del self._knobs[knob]
        self.set_knobs(recipe.mounted_knobs, steps)

    def remount(self, recipe: Recipe, steps: DeviceSteps) -> None:
        """Change the options that can be changed while it is mounted."""
        with steps.step("remount"):
            self._keeper.remount(recipe.remount, self._path, timeout_s=self._limit_s)
        self.set_knobs(recipe.mounted_knobs, steps)

    def unmount(self, steps: DeviceSteps) -> None:
        """Write everything back and unmount, if it is mounted."""
        if self.mountpoint is not None:
            with steps.step("unmount"):
                self._keeper.unmount(self._path, timeout_s=self._limit_s)
                self.mountpoint = None

    def save(self, name: str, steps: DeviceSteps) -> Copied:
        """Keep a copy of the unmounted image."""
        with steps.step("save"):
            return self._keeper.image_save(name, self._path, timeout_s=self._limit_s)

    def load(self, name: str, steps: DeviceSteps) -> Copied:
        """Bring a kept copy back."""
        with steps.step("restore"):
            return self._keeper.image_load(name, self._path, timeout_s=self._limit_s)

    def forget(self, name: str) -> None:
        """Remove a kept copy."""
        self._keeper.image_forget(name, self._path)

    def sync(self, steps: DeviceSteps, limit_s: float | None = None) -> None:
        """Write everything back, within the limit of a step unless another one is given."""
        with steps.step("sync"):
            self._keeper.sync_fs(self._path, timeout_s=self._limit_s if limit_s is None else limit_s)

    def drop_caches(self, steps: DeviceSteps) -> None:
        """Forget clean pages, inodes and directory entries."""
        with steps.step("drop caches"):
            self._keeper.drop_caches(timeout_s=self._limit_s)

    def knob(self, name: str) -> int | str:
        """A knob's value in force; "DEV" in its name stands for the device's."""
        return self._keeper.knob_read(self._here(name)).value

    def queue(self) -> dict[str, tuple[str, ...]]:
        """The settings of its queue with the words that each offers, which none but words has.

        A partition has those of its disk. What has no queue, such as a volume of the device mapper or a RAM
        disk, has no scheduler and no depth: its kernel hides them, or shows them and refuses to change them.
        """
        found: dict[str, tuple[str, ...]] = {}
        for knob in KNOBS.values():
            if knob.startswith(_QUEUE):
                with suppress(InputError):  # there is none of that name
                    found[knob] = self._keeper.knob_read(self._here(knob)).choices
        if len(found.get(_SCHEDULER, ())) < 2:
            return {knob: words for knob, words in found.items() if knob not in (_SCHEDULER, _DEPTH)}
        return found

    def set_knobs(self, knobs: Mapping[str, int | str], steps: DeviceSteps) -> None:
        """Set what is not set so already, in the order given but for the dirty ratios."""
        wanted = {knob: value for knob, value in self._named(knobs).items() if self._knobs.get(knob) != value}
        if not wanted:
            return
        with steps.step("knobs"):
            for knob in self._in_order(wanted, self._named(knobs)):
                self._write(knob, self._named(knobs)[knob])

    def forget_knobs(self) -> None:
        """After a failure: what is in force is not known, and all is set anew."""
        self._knobs.clear()

    def workspace(self) -> Path:
        """The load's directory, made when it is not there."""
        assert self.mountpoint is not None, "the file system is mounted before it is filled"
        directory = self.mountpoint / "load"
        if self._node is not None:
            owner = [] if self._owner is None else ["-o", str(self._owner[0]), "-g", str(self._owner[1])]
            words = ["install", "-d", *owner, str(directory)]
            output_of(self._node, "fill", "make a directory", words, self._limit_s)
            return directory
        directory.mkdir(exist_ok=True)
        if self._owner is not None:
            os.chown(directory, *self._owner)
        return directory

    def _here(self, knob: str) -> str:
        """A knob with the kernel's name for DEV: of a partition, the queue is its disk's."""
        return knob.replace("DEV", self._queue if knob.startswith(_QUEUE) else self.name)

    def _named(self, knobs: Mapping[str, int | str]) -> dict[str, int | str]:
        return {self._here(knob): value for knob, value in knobs.items()}

    def _in_order(self, wanted: Mapping[str, int | str], given: Mapping[str, int | str]) -> list[str]:
        """The knobs to write: a new scheduler brings its own queue depth, which is written again after it."""
        scheduler, depth = self._here(_SCHEDULER), self._here(_DEPTH)
        written = [knob for knob in given if knob in wanted or (knob == depth and scheduler in wanted)]
        background, ratio = _DIRTY
        if background in given and ratio in given and (background in wanted or ratio in wanted):
            # The background ratio stays below the other one at every moment: the kernel halves it silently
            # where it does not. Going up, the upper one moves first; going down, the lower one.
            present = self._keeper.knob_read(ratio).value
            up = int(present) <= int(given[ratio])
            written = [knob for knob in written if knob not in _DIRTY]
            written += [
                knob for knob in ((ratio, background) if up else (background, ratio)) if knob in wanted
            ]
        return written

    def _write(self, knob: str, value: int | str) -> None:
        effective = self._keeper.knob_write(knob, value).effective
        if effective != value:
            raise StageFailed("knobs", f"{knob} = {value}: the kernel made it {effective}")
        self._knobs[knob] = value
