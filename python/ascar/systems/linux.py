"""The kernel of a machine: settings of `ascar.catalogues`, under whatever runs on the machine.

[target]
kind = "linux"
path = "/srv/data"              # a directory of the application; its disk and its file system are tuned
parameters = "expert"           # or "wide"
remounts = "allowed"            # optional: options of the mount that holds the path are tuned too; needs root
cgroup = "system.slice/my.service"  # optional: settings of the application's control group are tuned too
node = "server1"                # optional: the machine, by the name of its [[node]]; else this one

Without [workload], the machine's own applications are the load, seen by the totals of the disk.
"""

from __future__ import annotations

import re
import tempfile
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from ascar.catalogues import DEVICE_MARK, KernelSetting, linux
from ascar.catalogues.cgroup import OF_GROUP, group_settings
from ascar.catalogues.coupling import with_reset
from ascar.catalogues.mount import OF_MOUNT, mount_settings
from ascar.catalogues.server_setting import known_to
from ascar.errors import Refused, StageFailed, StudyError
from ascar.nodes import node_of
from ascar.quoting import comment, sysctl_line
from ascar.results.machine import UNKNOWN, AppliedSetting, LeftToUser, Need
from ascar.space import Guarantee, Space, identifier
from ascar.study import absolute, convert
from ascar.systems import Placement, Starter
from ascar.systems.catalogue import KnownParameter
from ascar.systems.control_group import ControlGroup
from ascar.systems.counters import Counters, counter_names
from ascar.systems.disk_activity import METRICS, DiskActivity
from ascar.systems.existing.load import live_readings
from ascar.systems.group_files import controllers_here
from ascar.systems.holders import holder_of
from ascar.systems.kernel_files import KernelFiles
from ascar.systems.kernel_parameters import (
    DEVICE,
    Devices,
    accepted,
    all_here,
    file_of,
    here,
    known_setting,
    parameter_here,
)
from ascar.systems.linux_forms import playbook_of, udev_rules
from ascar.systems.live_machine import LiveMachine
from ascar.systems.machine import describe_machine
from ascar.systems.mount_options import MountForms, MountOptions
from ascar.systems.needs import keeper_needs

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ascar.nodes import Node
    from ascar.results.measurement import Readings
    from ascar.space import Configuration, Value
    from ascar.systems.noted_settings import NotedSettings
    from ascar.systems.place import Place
    from ascar.workspace import LoadTiming, Workspace

_BESIDE = (OF_MOUNT, OF_GROUP)
_SETTINGS_MAX = 100
_COMMITS = ("mount_ext4_commit", "mount_btrfs_commit")
_DEVICE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class LinuxOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[target]` of kind "linux".

    Attributes:
        settings: the settings to tune, by the kernel's names; `ascar space linux` lists them. None: those of
            `parameters`.
        parameters: "expert", about twenty settings, or "wide", all that this machine has.
        path: a directory of the application, whose disk and file system are tuned; nothing is formatted.
        device: the kernel's name of the block device that DEV stands for, such as "sda".
        node: the machine whose kernel is tuned, by the name of its [[node]] table; the default is this one.
        remounts: "allowed": options of the mount that holds `path` are tuned too, by remounts; nothing is
            unmounted. None: the mount stays as it is.
        cgroup: the control group of the application, by its path as /proc/PID/cgroup has it, or a unit of
            systemd, such as "my.service": its settings are tuned too. None: they stay as they are.
    """

    settings: tuple[str, ...] | None = None
    parameters: Literal["expert", "wide"] = "expert"
    path: str | None = None
    device: str | None = None
    node: dict[str, Any] | None = None
    remounts: Literal["allowed"] | None = None
    cgroup: str | None = None


class Linux(LiveMachine):
    """The target of kind "linux".

    Args:
        options: the `[target]` table without its kind.

    Raises:
        StudyError: a key is wrong.
        EnvironmentLacks: this machine does not have a setting.
    """

    starter = Starter(
        target={"path": '"/srv"', "parameters": '"expert"'},
        space={
            "allow_cost": '#allow_cost = ["dyn-kernel"]',
            "weaker": "durability",
            "pinned": "vm_dirty_background_ratio = 10",
            "constraint": "vm_dirty_background_ratio < vm_dirty_ratio",
            "forbidden": "vm_dirty_ratio = 60, vm_dirty_background_ratio = 50",
        },
        workload=lambda: {"kind": '"command"', "argv": '["./my-load"]'},
    )

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.options = convert(options, LinuxOptions, "target")
        super().__init__("linux", None if self.options.node is None else node_of(self.options.node))
        files, self._devices = KernelFiles(self._node), self._found_devices()
        self._mount, self._group = self._found_mount(), self._found_group()
        self._beside = tuple(one for one in (self._mount, self._group) if one is not None)
        names = self.options.settings
        if names is None:
            parameters = all_here(self._devices, files, wide=self.options.parameters == "wide")
        else:
            if not 1 <= len(names) <= _SETTINGS_MAX:
                raise StudyError(
                    f"target.settings = {list(names)!r:.80}: names {len(names)}; "
                    f"must name 1 to {_SETTINGS_MAX}"
                )
            of_kernel = [name for name in names if not name.startswith(_BESIDE)]
            parameters = tuple(parameter_here(name, self._devices, files) for name in of_kernel)
            found = [identifier(name) for name in names]
            for name, parameter in zip(names, found, strict=True):
                if found.count(parameter) > 1:
                    raise StudyError(f"target.settings: {name!r} is named twice; name each setting once")
        beside = (one.parameters(self._chosen(one)) for one in self._beside)
        self.space = Space(
            (*parameters, *chain.from_iterable(beside)),
            name="linux",
            constraints=accepted(parameters, self._devices, files),
            allow_weaker=tuple(Guarantee),
        )
        self._counters: Counters | None = None

    @classmethod
    def offers(cls) -> Mapping[str, KernelSetting]:
        """Every setting of the kernel that the keeper may change."""
        return linux()

    @classmethod
    def needs(cls) -> tuple[Need, ...]:
        """Root, the keeper, and what control groups there are."""
        groups = ", ".join(controllers_here()) or None
        remedy = "mount cgroup2 on /sys/fs/cgroup, as systemd does"
        purpose = "tune what bounds an application (target.cgroup)"
        return *keeper_needs(("linux",)), Need("control groups", purpose, groups, remedy=remedy)

    def __enter__(self) -> Linux:
        """Start the keeper; the values in force become the defaults.

        Raises:
            EnvironmentLacks: no root, or no keeper.
            StudyError: the keeper does not know a setting.
        """
        try:
            taken = self._take("target.path", self.options.path or tempfile.gettempdir())
            if self._node is None:
                disk = self._devices.disk
                self._counters = Counters({} if disk is None else {"device": disk})
            of_kernel = (one for one in self.space.parameters if not one.native.startswith(_BESIDE))
            beside = chain.from_iterable(one.parameters(taken) for one in self._beside)
            self.space = replace(self.space, parameters=(*of_kernel, *beside))
            self._current = self.read(self.space.names)
            self.space = self.space.with_defaults(self._current)
        except BaseException:
            self._opened.close()
            raise
        return self

    def read(self, names: Collection[str]) -> Mapping[str, Value]:
        """The values in force."""
        keeper = self._entered()
        beside = {native: value for one in self._beside for native, value in one.values().items()}
        natives = {name: self._native(name) for name in names}
        return {
            name: beside[native] if native in beside else keeper.knob_read(native).value
            for name, native in natives.items()
        }

    def _counted(self) -> Mapping[str, float]:
        return {} if self._counters is None else self._counters.read()

    @property
    def sampled(self) -> frozenset[str]:
        """The names of those counters; of a node there are none."""
        if self._node is not None:
            return frozenset()
        return counter_names(() if self._devices.disk is None else ("device",))

    def cycle_s(self, configuration: Configuration, metrics: Mapping[str, float]) -> float:
        """The greatest age of dirty pages, or the commit interval that is tuned where it is longer."""
        commits = [float(configuration[name]) for name in _COMMITS if name in configuration]
        return max(super().cycle_s(configuration, metrics), *commits, 0.0)

    @property
    def reported(self) -> frozenset[str]:
        """What applications get of the disk, where they are the load."""
        return METRICS

    def prepare(self, workspace: Workspace) -> None:  # noqa: ARG002
        """Nothing: the applications have their data."""
        return

    def run(self, workspace: Workspace, pace: LoadTiming) -> Readings:  # noqa: ARG002
        """Read what the machine's own applications get of the disk.

        Raises:
            StageFailed: the study names no disk, it is gone, or nothing used it.
        """
        disk = self._devices.disk
        if disk is None:
            raise StageFailed(
                "load", "without [workload], applications are the load: name target.path or target.device"
            )
        nothing = f"nothing was read from or written to {disk}; let your applications work"
        return live_readings(DiskActivity(disk, KernelFiles(self._node)), pace, nothing)

    def describe(self) -> Mapping[str, Any]:
        """What results are valid for."""
        machine = describe_machine() if self._node is None else _described(self._node)
        beside = {key: value for one in self._beside for key, value in one.described.items()}
        return {"target": "linux", **machine, **beside, "device": {"name": self._devices.disk}}

    @classmethod
    def catalogue(cls, options: Mapping[str, Any]) -> Mapping[str, KnownParameter]:
        """The settings that the study names, as the list of the kernel's settings has them."""
        chosen = convert(options, LinuxOptions, "target")
        names = chosen.settings
        if names is None:
            names = tuple(one.replace(DEVICE_MARK, DEVICE) for one in linux())
            names += () if chosen.remounts is None else tuple(mount_settings())
            names += () if chosen.cgroup is None else tuple(group_settings())
        settings = {identifier(name): known_setting(name) for name in names if not name.startswith(_BESIDE)}
        found = {
            name: KnownParameter(numbers=not one.listed, words=one.listed) for name, one in settings.items()
        }
        for name in names:
            if name.startswith(OF_MOUNT):
                option = known_to(mount_settings(), name, "a mount")
                found[identifier(name)] = replace(KnownParameter.of(option.parameter()), words=True)
            elif name.startswith(OF_GROUP):
                setting = known_to(group_settings(), name, "a control group")
                found[identifier(name)] = KnownParameter.of(setting.parameter())
        return found

    def commands(self, configuration: Configuration, chosen: Collection[str]) -> Mapping[str, list[str]]:
        """Commands that set the chosen settings; sysctl.d, udev, fstab and systemd's drop-in keep them."""
        wanted = self._settings(configuration, chosen)
        mount = self._mount_forms(configuration, chosen)
        return {
            "shell": [*(one.command for one in wanted), *mount.shell],
            "fstab": mount.fstab,
            "sysctl": [
                sysctl_line(one.knob, one.after) for one in wanted if one.path.startswith("/proc/sys/")
            ],
            "udev": udev_rules(wanted),
            "systemd": []
            if self._group is None
            else self._group.unit_lines(self._wanted(configuration, chosen, OF_GROUP)),
            "ansible": playbook_of(wanted, mount.tasks).lines(),
        }

    @classmethod
    def placement(
        cls,
        options: Mapping[str, Any],
        space: Space,
        configuration: Configuration,
        place: Place,  # noqa: ARG003 - the study names the device
    ) -> Placement:
        """Every setting of this machine can be set at once; a remount is left to the user.

        Raises:
            StudyError: they are another machine's.
            Refused: a study of the control group is running.
        """
        target = cls(options)
        if target._node is not None:
            raise StudyError(
                f"target.node = {target._node.name!r}: `ascar apply` changes this machine alone; run the "
                "commands of `ascar export` on the node"
            )
        chosen = space.departures(configuration)
        if target._group is not None and (holder := holder_of(target._group.locks)):
            raise Refused(f"{target._group.place}: is tuned by {holder}; wait for that study or stop it")
        settings, mount = (
            tuple(target._settings(configuration, chosen)),
            target._mount_forms(configuration, chosen),
        )
        if not mount.shell:
            return Placement(settings)
        commands = (*mount.shell, *(comment(f"/etc/fstab: {line}") for line in mount.fstab))
        return Placement(settings, (LeftToUser(target._of_mount(chosen), "remount", commands),))

    def _found_devices(self) -> Devices:
        device, path = self.options.device, self.options.path
        if device is not None and not _DEVICE.fullmatch(device):
            raise StudyError(f"target.device = {device!r:.80}: must be a name in /sys/block, such as 'sda'")
        if path is None:
            return Devices(device, device, named=True)
        if device is not None:
            raise StudyError(
                f"target.device = {device!r}: the device of target.path is tuned; name one or the other"
            )
        if self._node is not None:
            raise StudyError(
                f"target.path = {path!r:.80}: must be of this machine; name a node's target.device"
            )
        return Devices.below(absolute("target.path", path, is_there=True))

    def _found_mount(self) -> MountOptions | None:
        """The mount whose options the study may change."""
        named = [name for name in self.options.settings or () if name.startswith(OF_MOUNT)]
        if self.options.remounts is None:
            if named:
                raise StudyError(
                    f"target.settings: {named[0]!r:.80} is an option of a mount, for remounts; must be "
                    "left out, or target.remounts be 'allowed'"
                )
            return None
        if self.options.path is None:
            raise StudyError("target.remounts = 'allowed': is for the mount of target.path; name the path")
        return MountOptions(self.options.path)

    def _found_group(self) -> ControlGroup | None:
        """The control group whose settings the study may change."""
        named = [name for name in self.options.settings or () if name.startswith(OF_GROUP)]
        if self.options.cgroup is None:
            if named:
                raise StudyError(
                    f"target.settings: {named[0]!r:.80} is a setting of a control group; must be left out, "
                    "or target.cgroup name the group"
                )
            return None
        if self._node is not None:
            raise StudyError(
                f"target.cgroup = {self.options.cgroup!r:.80}: must be of this machine, without a node"
            )
        return ControlGroup(self.options.cgroup, self._devices.disk)

    def _chosen(self, beside: NotedSettings[Any]) -> list[str]:
        return beside.chosen(self.options.settings, self.options.parameters)

    def _of_mount(self, chosen: Collection[str]) -> tuple[str, ...]:
        """Those of the parameters that are options of the mount."""
        return tuple(name for name in chosen if self.space[name].native.startswith(OF_MOUNT))

    def _wanted(self, configuration: Configuration, chosen: Collection[str], prefix: str) -> dict[str, Value]:
        """The values of those of the parameters whose settings' names begin so, by these names."""
        natives = {self.space[name].native: name for name in chosen}
        return {native: configuration[name] for native, name in natives.items() if native.startswith(prefix)}

    def _mount_forms(self, configuration: Configuration, chosen: Collection[str]) -> MountForms:
        wanted = self._wanted(configuration, chosen, OF_MOUNT)
        return MountForms() if self._mount is None or not wanted else self._mount.forms(wanted)

    def _settings(self, configuration: Configuration, chosen: Collection[str]) -> list[AppliedSetting]:
        """The settings of the chosen parameters, and those that have to be written again after them."""
        found: list[AppliedSetting] = []
        files = KernelFiles(self._node)
        others = {self._native(name): name for name in configuration}
        names = {native: name for native, name in others.items() if not native.startswith(_BESIDE)}
        for native in with_reset({native for native, name in names.items() if name in chosen}, names):
            path = file_of(native, self.options.device)
            before = files.in_force(path) or UNKNOWN
            value = configuration[names[native]]
            found.append(AppliedSetting(names[native], native, str(path), before, str(value)))
        if self._group is not None:
            for native, value in self._wanted(configuration, chosen, OF_GROUP).items():
                found.append(self._group.applied(others[native], native, value))
        return found

    def _native(self, name: str) -> str:
        return here(self.space[name].native, self.options.device)


def _described(node: Node) -> dict[str, Any]:
    facts = node.facts()
    return {
        "node": node.name,
        "kernel": facts.kernel,
        "architecture": facts.architecture,
        "cpus": facts.cpus,
        "machine_memory_bytes": facts.memory_bytes,
    }
