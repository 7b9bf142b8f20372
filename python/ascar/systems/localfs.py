"""A local file system on an image file or a block device, made, mounted and set as each configuration says.

What Cao found to make results vary (sections 6.6.1 and 6.6.2) is kept the same from trial to trial: each one
starts on a new file system or on the restored image of a filled one, nothing is initialised lazily, ext4's
hash seed is fixed, the file system is unmounted and mounted again after the fill and the caches are dropped.
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ascar.errors import AscarError, EnvironmentLacks, StageFailed, StudyError
from ascar.program.node_binary import find_ascard
from ascar.results.trial import Change
from ascar.space import ChangeCost, Guarantee
from ascar.study import convert
from ascar.systems import Placement, Sample, Starter, Target
from ascar.systems.administration import command_lines
from ascar.systems.applied import applied_knobs
from ascar.systems.catalogue import KnownParameter, catalogue_of
from ascar.systems.counters import Counters, counter_names
from ascar.systems.keeper import Keeper, restore_all, warned
from ascar.systems.kernel_files import KernelFiles
from ascar.systems.localfs_cycles import cycle_s
from ascar.systems.localfs_description import localfs_description
from ascar.systems.localfs_device import Device, DeviceSteps
from ascar.systems.localfs_images import SavedImages
from ascar.systems.localfs_memory import MemoryLimit
from ascar.systems.localfs_needs import localfs_needs
from ascar.systems.localfs_options import FILE_SYSTEMS, LocalFileSystemOptions, LocalFileSystemSettings
from ascar.systems.localfs_placement import placed
from ascar.systems.localfs_rights import check_root, lacks_root, owner_of_load
from ascar.systems.localfs_space import (
    file_systems_of,
    known_file_systems,
    localfs_space,
    with_devices,
    with_kernel_defaults,
    with_queues,
    without_machine_wide,
)
from ascar.systems.machine import backing_of
from ascar.systems.published_spaces import published_space
from ascar.systems.recipe import DEVICE_PARAMETER, KNOBS, Recipe, knobs_of, recipe_of
from ascar.units import format_size
from ascar.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from types import TracebackType

    from ascar.results.machine import Need, RestoreReport
    from ascar.space import Configuration, Space, Value
    from ascar.systems import System
    from ascar.systems.place import Place

_log = logging.getLogger(__name__)
_QUEUE = {name: knob for name, knob in KNOBS.items() if knob.startswith("block.")}


_STARTER_SPACE = {
    "preset": '#preset = "storage-v5"',
    "allow_cost": 'allow_cost = ["dyn-kernel", "remount", "umount-mount", "reformat-restore"]',
    "weaker": "btrfs_data_mode=nodatasum",
    "pinned": 'fs = "ext4"',
    "constraint": "vm_dirty_ratio <= 40",
    "forbidden": 'fs = "btrfs", block_scheduler = "bfq"',
}


def _mail_server() -> Mapping[str, str]:
    """Filebench's mail server; fio's small files where `ascard`, which runs it, is not installed."""
    try:
        find_ascard()
    except EnvironmentLacks:
        return {"kind": '"fio"', "preset": '"small-files-fsync"'}
    return {"kind": '"filebench"', "personality": '"mailserver"'}


class LocalFileSystem(Target):
    """The target of kind "localfs".

    Args:
        options: the `[target]` table without its kind.

    Raises:
        StudyError: a key is wrong.
        EnvironmentLacks: a file system that was asked for cannot be made here.
    """

    default_workload: str | None = "fio"
    initialises_lazily = False
    starter = Starter(space=_STARTER_SPACE, workload=_mail_server)

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.settings = LocalFileSystemSettings.read(convert(options, LocalFileSystemOptions, "target"))
        chosen = self.settings.options
        self.space = localfs_space(self.settings.device_bytes, chosen.file_systems, chosen.preset)
        if not chosen.machine_wide:
            self.space = without_machine_wide(self.space)
        self.space = with_devices(self.space, self.settings.devices)
        self.owner = f"localfs {self.settings.place}"
        self.takes_device_along = chosen.device is None
        self.mountable: tuple[str, ...] = ()
        """The file systems that can be made and mounted, once it is entered."""
        self.restored: RestoreReport | None = None
        """What was put back on leaving, and what could not be."""
        self._images = SavedImages(chosen.state, self.settings.saved_bytes)
        self._files = KernelFiles()
        self._keeper: Keeper | None = None
        self._devices: Mapping[str, Device] = {}
        self._device: Device | None = None
        self._counters: Counters | None = None
        self._memory: MemoryLimit | None = None
        self._current: Configuration | None = None
        self._recipe: Recipe | None = None
        self._filled = False
        self._settled = False
        self._afresh = False
        self._fill_start_s = 0.0
        self._format_s = 0.0

    left_to_agent = frozenset(KNOBS)

    @classmethod
    def variant(cls, options: Mapping[str, Any]) -> type[System]:
        """With a kernel of its own, the one whose file systems are in a node."""
        if options.get("kernel") is None:
            return cls
        from ascar.systems.localfs_node import NodeFileSystem

        return NodeFileSystem

    @classmethod
    def for_session(cls, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """Unmounting forgets the device's caches; those of the machine are nobody's to drop here.

        Raises:
            StudyError: several devices, which nothing can exchange while a load runs.
        """
        if isinstance(devices := options.get("device"), list):
            raise StudyError(
                f"target.device = {devices!r:.200}: a session tunes one device while it is used: name one"
            )
        return {"machine_wide": "settings", **options}

    @classmethod
    def needs(cls) -> tuple[Need, ...]:
        """Root, the keeper, programs, file systems of the kernel."""
        return localfs_needs()

    @classmethod
    def placement(
        cls,
        options: Mapping[str, Any],  # noqa: ARG003
        space: Space,
        configuration: Configuration,
        place: Place,
    ) -> Placement:
        """The kernel's knobs are set at once; mounts and new file systems are left to the user."""
        return placed(space, configuration, place)

    # Taking and giving back.

    def __enter__(self) -> LocalFileSystem:
        """Take the device.

        Raises:
            EnvironmentLacks: no root, no program, no disk space, no control groups.
            StudyError: a path of the study is wrong.
            Refused: the device is in use or not confirmed, or another study holds what this one needs.
        """
        check_root()
        self.settings.check_machine()
        owner = owner_of_load(self.settings.options.user)
        try:
            self._keeper = Keeper(self.owner).start()
        except EnvironmentLacks as error:
            raise lacks_root(error) from error
        if applied := applied_knobs():
            _log.warning(
                "`ascar apply` is in force: %s; this study takes that for the default. `ascar restore` first "
                "puts back what was there",
                ", ".join(f"{knob} is {value}" for knob, value in applied.items()),
            )
        try:
            self._take(self._keeper, owner)
        except BaseException:
            self._leave()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Put everything back."""
        self._leave()

    def _take(self, keeper: Keeper, owner: tuple[int, int] | None) -> None:
        self.mountable = keeper.capabilities.file_systems
        self._check_kernel(self.mountable)
        self._memory = MemoryLimit(self.settings, keeper, self._files)
        if self.settings.options.machine_wide is True:
            keeper.lock("vm.drop_caches")
        self._devices = Device.take(keeper, self.settings, owner, self._files.node)
        self._use(next(iter(self._devices.values())))
        queues = [device.queue() for device in self._devices.values()]
        self.space = with_kernel_defaults(
            self.space,
            {name: self._entered().knob(knob) for name, knob in _QUEUE.items() if knob in queues[0]},
        )
        self.space = with_queues(self.space, queues)
        self._memory.enforce()

    def _check_kernel(self, mountable: tuple[str, ...]) -> None:
        """Leave out file systems that the kernel cannot mount, unless the study names them."""
        wanted = file_systems_of(self.space)
        missing = [fs for fs in wanted if fs not in mountable]
        named = self.settings.options.file_systems or (self.space["fs"].default,)
        for fs in missing:
            if fs in named:
                raise EnvironmentLacks(
                    f"target.file_systems: {fs}: this kernel cannot mount it; install its module, or set "
                    'target.kernel = "user-mode", whose kernel may have it'
                )
        if missing:
            self.space = self.space.only("fs", [fs for fs in wanted if fs in mountable])
        published = published_space(self.settings.options.preset)
        lacking = known_file_systems(published) - set(file_systems_of(self.space))
        if lacking and self.settings.options.file_systems is None:
            whole = published.permit_weaker(Guarantee)
            _log.warning(
                "%s: %s cannot be made or mounted here: %s of %s configurations are left",
                *(whole.name, ", ".join(sorted(lacking)), self.space.count(), whole.count()),
            )

    def _leave(self) -> None:
        keeper, self._keeper, self._device, self._current = self._keeper, None, None, None
        self._devices = {}
        if keeper is None:
            return
        self.restored = keeper.close()
        if self.restored is None:
            try:
                self.restored = warned(restore_all())
            except AscarError as error:
                _log.warning("the keeper is gone, and nothing was put back: %s", error.message)
            else:
                _log.warning(
                    "the keeper was gone before it put everything back; another one undid %d changes instead",
                    len(self.restored.restored),
                )

    # One trial.

    def apply(self, configuration: Configuration) -> Change:
        """Make, mount and set the file system that a configuration asks for.

        Raises:
            StageFailed: a step failed or ran out of time.
        """
        recipe, device, steps = recipe_of(configuration, self.space), self._entered(), DeviceSteps()
        before, self._current = self._current, None
        difference = self.space.change(before or {}, configuration)
        self._end_load(steps)
        try:
            chosen = self._devices[str(configuration.get(DEVICE_PARAMETER, next(iter(self._devices))))]
            if chosen is not device:
                device.unmount(steps)
                self._use(chosen)
            if self.reuses_state and before is not None and not self._afresh:
                self._reuse(recipe, difference.cost, steps)
            else:
                self._make_or_restore(recipe, steps)
        except StageFailed:
            self._entered().forget_knobs()
            raise
        self._current, self._recipe, self._settled, self._afresh = configuration, recipe, False, False
        self._format_s, self._fill_start_s = steps.seconds.get("format", 0.0), time.monotonic()
        return Change.of(difference, steps.seconds, filled=self._filled)

    def settle(self) -> Mapping[str, float]:
        """After the fill: write back, unmount and mount, drop the caches (Cao 6.6.2).

        Raises:
            StageFailed: a step failed or ran out of time.
        """
        device, recipe, steps = self._entered(), self._recipe, DeviceSteps()
        assert recipe is not None, "a configuration is applied before the load settles"
        configuration, self._current = self._current, None
        assert self._memory is not None, "a target is entered before it is used"
        self._memory.measure(device.workspace())
        if self._filled and self.settings.options.machine_wide is True:
            device.sync(steps)
        elif self._filled:
            device.unmount(steps)  # forgets the device's caches, and nobody else's
            device.mount(recipe, steps)
        else:
            fresh_s = self._format_s + time.monotonic() - self._fill_start_s
            self._images.filled(recipe.layout, fresh_s)
            device.unmount(steps)
            self._save(recipe, steps)
            device.mount(recipe, steps)
            self._filled = True
        if self.settings.options.machine_wide is True:
            device.drop_caches(steps)
        self._limit_iops(self.settings.options.iops, steps)
        self._memory.settle()
        self._current, self._settled = configuration, True
        return steps.seconds

    def read(self, names: Collection[str]) -> Mapping[str, Value]:
        """The kernel's settings in force; what was given to mkfs and mount is not asked for."""
        if self._recipe is None or self._current is None:
            return {}
        device, known = self._entered(), {**self._recipe.knobs, **self._recipe.mounted_knobs}
        knobs = knobs_of(self.space)
        return {name: device.knob(knob) for name, knob in knobs.items() if name in names and knob in known}

    @property
    def reuses_state(self) -> bool:
        """Whether a trial finds what the one before left."""
        return self.settings.options.state == "reuse"

    def start_afresh(self) -> None:
        """Make the next configuration start on a new file system all the same."""
        self._afresh = True

    @property
    def workspace(self) -> Workspace:
        """Where the load runs; its memory is limited once it has settled, not while it is filled."""
        device, memory = self._entered(), self._memory
        assert memory is not None, "a target is entered before it is used"
        return Workspace(
            directory=device.workspace(),
            memory_bytes=memory.bytes,
            user=self.settings.options.user,
            admit=memory.admit if self._settled else None,
        )

    def sample(self) -> Sample:
        """Device traffic, processor time, stalls, energy (see `ascar.systems.counters`); dirty pages."""
        assert self._counters is not None, "counters are those of the devices that entering takes"
        assert self._memory is not None, "a target is entered before it is used"
        return Sample(self._counters.read(), deferred={"dirty_bytes": self._memory.dirty_bytes})

    def drain(self, limit_s: float) -> None:
        """Write back all dirty pages of the file system and commit its journal, at the speed of its volume.

        Raises:
            StageFailed: that takes longer.
        """
        try:
            self._entered().sync(DeviceSteps(), limit_s)
        except StageFailed as failure:
            assert self._memory is not None, "a target is entered before it is used"
            left = format_size(int(self._memory.dirty_bytes))
            raise StageFailed(
                "drain",
                f"{left} of dirty pages were left {limit_s:g} s after the load ({failure.message}); "
                "make the load smaller, or set [measurement] charge_deferred = false",
                failure.stderr,
            ) from failure

    def cycle_s(self, configuration: Configuration, metrics: Mapping[str, float]) -> float:  # noqa: ARG002
        """The greatest age of dirty pages, or the commit interval where it is longer."""
        return cycle_s(configuration, files=self._files)

    @property
    def sampled(self) -> frozenset[str]:
        """The names of those counters."""
        return counter_names(("device", "backing"))

    def describe(self) -> Mapping[str, Any]:
        """What results are valid for."""
        assert self._memory is not None, "a target is entered before it is used"
        names = [device.name for device in self._devices.values()]
        return localfs_description(self.settings, self.space, names, self._memory)

    @classmethod
    def catalogue(cls, options: Mapping[str, Any]) -> Mapping[str, KnownParameter]:
        """All of the preset that ascar can make, whatever this machine has of it."""
        settings = LocalFileSystemSettings.read(convert(options, LocalFileSystemOptions, "target"))
        space = with_devices(published_space(settings.options.preset), settings.devices)
        known = catalogue_of(space.parameters)
        made = replace(known["fs"], choices=known["fs"].choices & frozenset(FILE_SYSTEMS))
        return {**known, "fs": made}

    def commands(self, configuration: Configuration, chosen: Collection[str]) -> Mapping[str, list[str]]:
        """The chosen part of a configuration in an administrator's words, for a device of his own."""
        return command_lines(configuration, self.space, chosen)

    # What a trial is made of.

    def _make_or_restore(self, recipe: Recipe, steps: DeviceSteps) -> None:
        """A new file system, or the restored image of a filled one."""
        device = self._entered()
        self._filled = False
        device.unmount(steps)
        name = self._images.name_of(recipe.layout)
        if name is None:
            device.format(recipe, steps)
        else:
            self._load(recipe, name, steps)
        device.set_knobs(recipe.knobs, steps)
        device.mount(recipe, steps)
        self._filled = name is not None

    def _reuse(self, recipe: Recipe, cost: ChangeCost | None, steps: DeviceSteps) -> None:
        """As little as takes the device from the configuration before to this one."""
        device = self._entered()
        if cost is not None and cost.rank >= ChangeCost.REFORMAT_RESTORE.rank:
            self._make_or_restore(recipe, steps)
            return
        device.set_knobs(recipe.knobs, steps)
        if cost is ChangeCost.UMOUNT_MOUNT or device.mountpoint is None:
            device.unmount(steps)
            device.mount(recipe, steps)
        elif cost is ChangeCost.REMOUNT:
            device.remount(recipe, steps)
        else:
            device.set_knobs(recipe.mounted_knobs, steps)

    def _save(self, recipe: Recipe, steps: DeviceSteps) -> None:
        """Keep a copy of the filled image where that pays."""
        if self.settings.options.device is not None:
            return
        size_bytes = self.settings.image.stat().st_blocks * 512
        if not self._images.is_worth_saving(recipe.layout, size_bytes):
            return
        device = self._entered()
        for name in self._images.make_room(size_bytes):
            device.forget(name)
        name = self._images.next_name()
        device.save(name, steps)
        self._images.saved(recipe.layout, name, size_bytes)

    def _load(self, recipe: Recipe, name: str, steps: DeviceSteps) -> None:
        """Bring a copy back; one that cannot be brought back is not tried again."""
        device = self._entered()
        try:
            device.load(name, steps)
        except StageFailed:
            if self._images.drop(recipe.layout):
                device.forget(name)
            raise
        if slower := self._images.loaded(recipe.layout, steps.seconds["restore"]):
            device.forget(slower)

    def _end_load(self, steps: DeviceSteps) -> None:
        """Nothing of the last load runs any more, and the device is as fast as it can be."""
        self._limit_iops(0, steps)
        if self._memory is not None and self._memory.bytes is not None:
            with steps.step("end load"):
                self._memory.end_load()

    def _limit_iops(self, iops: int | None, steps: DeviceSteps) -> None:
        """Let so many reads and writes a second through; 0: all. Nothing where the study sets no limit."""
        if self.settings.options.iops is not None and iops is not None:
            limits = {"block.DEV.read_iops_max": iops, "block.DEV.write_iops_max": iops}
            self._entered().set_knobs(limits, steps)

    def _use(self, device: Device) -> None:
        """Make what comes next happen on a device, and count its traffic."""
        self._device, self.device = device, device.name
        watched = {"device": device.name}
        if not self.settings.devices:
            backing = backing_of(self.settings.image.parent)
            if backing is not None:
                watched["backing"] = backing
        self._counters = Counters(watched, files=self._files)

    def _entered(self) -> Device:
        assert self._device is not None, "a target is entered before it is used"
        return self._device
