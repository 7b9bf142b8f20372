"""The kernel of a machine: settings of `ascar.catalogues`, under whatever runs on the machine.

[target]
kind = "linux"
settings = ["vm.dirty_ratio", "block.DEV.read_ahead_kb"]
device = "sda"                  # what DEV stands for
node = "server1"                # optional: the machine, by the name of its [[node]]; else this one
"""

from __future__ import annotations

import re
import tempfile
import time
from contextlib import ExitStack
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ascar.catalogues import DEVICE_MARK, KernelSetting, kernel_setting, linux
from ascar.errors import EnvironmentLacks, StageFailed, StudyError
from ascar.expression import Expression, parse
from ascar.nodes import node_of
from ascar.nodes.local import LocalNode
from ascar.quoting import sysctl_line
from ascar.results.machine import AppliedSetting
from ascar.results.trial import Change
from ascar.space import Guarantee, Parameter, Space, categorical, identifier, integer, ordinal
from ascar.study import convert
from ascar.systems import Placement, Sample, Starter, Target
from ascar.systems.catalogue import KnownParameter
from ascar.systems.dirty_pages import MEMINFO, machine_dirty_bytes, write_back_cycle_s
from ascar.systems.keeper import Keeper
from ascar.systems.kernel_files import KernelFiles
from ascar.systems.machine import describe_machine
from ascar.systems.needs import keeper_needs
from ascar.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from types import TracebackType

    from ascar.nodes import Node
    from ascar.results.machine import Need
    from ascar.space import Configuration, Value
    from ascar.systems.place import Place

DEVICE = "DEV"
"""In names of settings: the device that the target names."""

_SETTINGS_MAX = 100
_NUMBER_MAX = 2**53  # of parameters, which floats must hold
_DEVICE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class LinuxOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[target]` of kind "linux".

    Attributes:
        settings: the settings to tune, by the kernel's names; `ascar space linux` lists them.
        device: the kernel's name of the block device that DEV stands for, such as "sda".
        node: the machine whose kernel is tuned, by the name of its [[node]] table; the default is this one.
    """

    settings: tuple[str, ...]
    device: str | None = None
    node: dict[str, Any] | None = None


class Linux(Target):
    """The target of kind "linux".

    Args:
        options: the `[target]` table without its kind.

    Raises:
        StudyError: a key is wrong.
        EnvironmentLacks: this machine does not have a setting.
    """

    default_workload: str | None = None
    starter = Starter(
        target={"settings": '["vm.dirty_ratio", "vm.dirty_background_ratio"]'},
        space={
            "preset": '#preset = "storage-v5"',
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
        device = self.options.device
        if device is not None and not _DEVICE.fullmatch(device):
            raise StudyError(f"target.device = {device!r:.80}: must be a name in /sys/block, such as 'sda'")
        names = self.options.settings
        if not 1 <= len(names) <= _SETTINGS_MAX:
            raise StudyError(
                f"target.settings = {list(names)!r:.80}: names {len(names)}; must name 1 to {_SETTINGS_MAX}"
            )
        self._node = None if self.options.node is None else node_of(self.options.node)
        files = KernelFiles(self._node)
        parameters = tuple(parameter_here(name, device, files) for name in names)
        found = [one.name for one in parameters]
        for name, parameter in zip(names, found, strict=True):
            if found.count(parameter) > 1:
                raise StudyError(f"target.settings: {name!r} is named twice; name each setting once")
        self.space = Space(
            parameters, name="linux", constraints=_ordered(parameters), allow_weaker=tuple(Guarantee)
        )
        self.owner = "linux"
        self._files = ExitStack()
        self._keeper: Keeper | None = None
        self._directory: Path | None = None
        self._current: Mapping[str, Value] = {}

    @classmethod
    def offers(cls) -> Mapping[str, KernelSetting]:
        """Every setting of the kernel that the keeper may change."""
        return linux()

    @classmethod
    def needs(cls) -> tuple[Need, ...]:
        """Root, and the keeper."""
        return keeper_needs(("linux",))

    def __enter__(self) -> Linux:
        """Start the keeper; the values in force become the defaults.

        Raises:
            EnvironmentLacks: no root, or no keeper.
            StudyError: the keeper does not know a setting.
        """
        self._keeper = self._files.enter_context(Keeper(self.owner, node=self._node))
        self._directory = Path(self._files.enter_context(tempfile.TemporaryDirectory(prefix="ascar-linux-")))
        try:
            self._current = self.read(self.space.names)
            self.space = self.space.with_defaults(self._current)
        except BaseException:
            self._files.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Put everything back."""
        self._keeper = None
        self._files.close()

    def read(self, names: Collection[str]) -> Mapping[str, Value]:
        """The values in force."""
        keeper = self._entered()
        return {name: keeper.knob_read(self._native(name)).value for name in names}

    def apply(self, configuration: Configuration) -> Change:
        """Write what differs; a scheduler comes first, because it brings settings of its own.

        Raises:
            StageFailed: the kernel refuses a value.
        """
        keeper, start_s = self._entered(), time.monotonic()
        wanted = {name: value for name, value in configuration.items() if value != self._current.get(name)}
        for name in sorted(wanted, key=lambda one: not self._native(one).endswith(".scheduler")):
            value = wanted[name]
            keeper.knob_write(self._native(name), value if isinstance(value, str) else int(value))
        category = self.space.change(self._current, configuration).category
        self._current = dict(configuration)
        steps = {"settings": time.monotonic() - start_s}
        return Change(tuple(wanted), -1 if category is None else category, steps)

    def sample(self) -> Sample:
        """The dirty pages of the machine, whoever wrote them."""
        try:
            meminfo = KernelFiles(self._node).text(MEMINFO)
        except EnvironmentLacks as error:
            raise StageFailed("sample", error.message) from error
        return Sample(deferred={"dirty_bytes": machine_dirty_bytes(meminfo)})

    def drain(self, limit_s: float) -> None:
        """Write back all dirty pages of the machine that are there now.

        Raises:
            StageFailed: that takes longer.
        """
        node = LocalNode() if self._node is None else self._node
        try:
            done = node.run(["sync"], limit_s)
        except EnvironmentLacks as error:
            raise StageFailed("drain", error.message) from error
        if done.status != 0:
            raise StageFailed("drain", f"sync: exit status {done.status}", done.err)

    def cycle_s(self, configuration: Configuration, metrics: Mapping[str, float]) -> float:  # noqa: ARG002
        """The greatest age of dirty pages."""
        return write_back_cycle_s(configuration, KernelFiles(self._node).in_force)

    @property
    def workspace(self) -> Workspace:
        """A directory that is removed at the end."""
        assert self._directory is not None, "a target is entered before it is used"
        return Workspace(self._directory)

    def describe(self) -> Mapping[str, Any]:
        """What results are valid for."""
        machine = describe_machine() if self._node is None else _described(self._node)
        return {"target": "linux", **machine, "device": {"name": self.options.device}}

    @classmethod
    def catalogue(cls, options: Mapping[str, Any]) -> Mapping[str, KnownParameter]:
        """The settings that the study names, as the list of the kernel's settings has them."""
        chosen = convert(options, LinuxOptions, "target")
        settings = {identifier(name): known_setting(name) for name in chosen.settings}
        return {
            name: KnownParameter(numbers=not one.listed, words=one.listed) for name, one in settings.items()
        }

    def commands(self, configuration: Configuration, chosen: Collection[str]) -> Mapping[str, list[str]]:
        """Commands that set the chosen settings; those of `/proc/sys` also as lines of sysctl.d."""
        wanted = [one for one in self._settings(configuration) if one.parameter in chosen]
        return {
            "shell": [one.command for one in wanted],
            "sysctl": [
                sysctl_line(one.knob, one.after) for one in wanted if one.path.startswith("/proc/sys/")
            ],
        }

    @classmethod
    def placement(
        cls,
        options: Mapping[str, Any],
        space: Space,
        configuration: Configuration,
        place: Place,  # noqa: ARG003 - the study names the device
    ) -> Placement:
        """Every setting of this machine can be set at once.

        Raises:
            StudyError: they are another machine's.
        """
        target = cls(options)
        if target._node is not None:
            raise StudyError(
                f"target.node = {target._node.name!r}: `ascar apply` changes this machine alone; run the "
                "commands of `ascar export` on the node"
            )
        chosen = space.departures(configuration)
        found = target._settings(configuration)
        return Placement(tuple(one for one in found if one.parameter in chosen))

    def _settings(self, configuration: Configuration) -> list[AppliedSetting]:
        found: list[AppliedSetting] = []
        files = KernelFiles(self._node)
        for name, value in configuration.items():
            native = self._native(name)
            path = file_of(native, self.options.device)
            found.append(AppliedSetting(name, native, str(path), files.in_force(path), str(value)))
        return sorted(found, key=lambda one: not one.knob.endswith(".scheduler"))

    def _native(self, name: str) -> str:
        return here(self.space[name].native, self.options.device)

    def _entered(self) -> Keeper:
        assert self._keeper is not None, "a target is entered before it is used"
        return self._keeper


def _described(node: Node) -> dict[str, Any]:
    facts = node.facts()
    return {
        "node": node.name,
        "kernel": facts.kernel,
        "architecture": facts.architecture,
        "cpus": facts.cpus,
        "machine_memory_bytes": facts.memory_bytes,
    }


def here(native: str, device: str | None) -> str:
    """A setting's name with the device's own name for DEV."""
    return native if device is None else native.replace(f".{DEVICE}.", f".{device}.")


def file_of(native: str, device: str | None) -> Path:
    """The file of a setting; DEV in its name stands for `device`."""
    setting = known_setting(native)
    before, _, after = setting.name.partition(DEVICE_MARK)
    named = here(native, device).removeprefix(before).removesuffix(after)
    return setting.file(named if DEVICE_MARK in setting.name else None)


def known_setting(native: str) -> KernelSetting:
    """The setting of the kernel that a name means.

    Raises:
        StudyError: the keeper may not change a setting of that name.
    """
    setting = kernel_setting(native)
    if setting is None:
        near = get_close_matches(native.replace(f".{DEVICE}.", f".{DEVICE_MARK}."), linux(), n=1)
        hint = f"; did you mean {near[0].replace(DEVICE_MARK, DEVICE)!r}?" if near else ""
        raise StudyError(
            f"target.settings: {native!r:.80} is not a setting of the kernel that the keeper may change; "
            f"`ascar space linux` lists them{hint}"
        )
    return setting


def parameter_here(native: str, device: str | None, files: KernelFiles) -> Parameter:
    """A setting as a parameter of the machine whose files are read; its default is the value in force.

    Raises:
        StudyError: no such setting, or it is one of a device and none is named.
        EnvironmentLacks: the machine does not have the setting, or cannot be reached.
    """
    setting = known_setting(native)
    if f".{DEVICE}." in native and device is None:
        raise StudyError(f"target.device: missing; {native!r} is a setting of a device: name the device")
    path = file_of(native, device)
    if setting.limit is None:
        try:
            files.text(path)
        except EnvironmentLacks as error:
            raise EnvironmentLacks(
                f"target.settings: {native!r}: the machine does not have it ({error.message})"
            ) from error
    name = identifier(native)
    traits: dict[str, Any] = {
        "cost": setting.cost,
        "unit": setting.unit,
        "description": setting.what,
        "native": native,
    }
    bounds = setting.bounds
    if setting.up_to is not None:
        least, beside = setting.up_to
        bounds = (least, files.number(path.with_name(beside)))
    if bounds is None:
        words, word = files.words(path)
        return categorical(name, words, default=word, **traits)
    low, high = bounds[0], min(bounds[1], _NUMBER_MAX)
    present = 0 if setting.limit is not None else int(files.in_force(path) or 0)
    traits["weaker"] = _labels(setting, present)
    if setting.powers_of_two is not None:
        powers = [2**at for at in range(high.bit_length()) if low <= 2**at <= high]
        values: list[int] = sorted({present, *powers, *([0] if low == 0 else [])})
        return ordinal(name, values, default=present, **traits)
    outside = {} if low <= present <= high else {present: "the value that the machine started with"}
    return integer(name, (low, high), default=present, special=outside, **traits)


def _ordered(parameters: Sequence[Parameter]) -> tuple[Expression, ...]:
    """What the kernel would change without a word: a background limit that is not the lower one."""
    present = {one.name: one.default for one in parameters}
    found: list[Expression] = []
    for unit in ("ratio", "bytes"):
        low, high = f"vm_dirty_background_{unit}", f"vm_dirty_{unit}"
        if low in present and high in present and int(present[low]) < int(present[high]):
            found.append(parse(f"{low} < {high}"))
    return tuple(found)


def _labels(setting: KernelSetting, present: int) -> dict[str, str]:
    """What values weaken; the value in force weakens nothing, so that a limit moves there."""
    labels: dict[str, str] = {}
    for relation, guarantee in setting.weaker.items():
        if not relation.startswith((">", "<")):
            relation = f"<{int(relation) + 1}"  # noqa: PLW2901 - of a range, a value is a side: the least one
        sign, limit = relation[0], float(relation[1:])
        crossed = present > limit if sign == ">" else present < limit
        labels[f"{sign}{present}" if crossed else relation] = guarantee
    return labels
