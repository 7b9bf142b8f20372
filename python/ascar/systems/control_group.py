"""The settings of a control group of an application: read, written, put back.

    python -m ascar.systems.control_group RECORD

`RECORD` is a `GroupRestoration` as JSON; it is in the keeper's journal before anything is changed. A group is
known by the number of its directory as well as by its path: one that was removed and made anew has values of
its own.
"""

from __future__ import annotations

import logging
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from ascar.catalogues.cgroup import OF_GROUP, GroupSetting, group_settings
from ascar.catalogues.server_setting import known_to
from ascar.errors import EnvironmentLacks, InputError, StageFailed, StudyError, WorkError
from ascar.quoting import comment
from ascar.results.machine import AppliedSetting
from ascar.systems.existing.restoration import foreign
from ascar.systems.group_files import UNIT, bounds, directories_of, is_used, killed, lost, read, write
from ascar.systems.needs import text_of
from ascar.systems.noted_settings import NotedSettings
from ascar.systems.undo_record import restore

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ascar.space import Value
    from ascar.systems.keeper import Keeper

_log = logging.getLogger(__name__)

_SECTIONS = {"service": "Service", "slice": "Slice"}
_ENABLING = {"io": "IOAccounting=yes", "memory": "MemoryAccounting=yes", "cpu": "CPUWeight=100"}
_PERIOD_US = 100_000
_NUMBER = re.compile(r"-?[0-9]{1,19}")
SYSTEMD = Path("/run/systemd/system")
"""Where it is, systemd is the machine's init (sd_booted(3))."""


class GroupRestoration(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The settings of a control group from before a study.

    Attributes:
        group: its path below the hierarchy.
        device: the number of the disk, such as "8:0"; empty: none is known.
        places: the directory of each setting, and the directory's number.
        old: the values before the study by the setting's name.
        left: the values that the study may have left.
    """

    group: str
    device: str
    places: dict[str, tuple[str, int]]
    old: dict[str, str]
    left: dict[str, tuple[str, ...]]

    def carry_out(self) -> tuple[str, ...]:
        """Write the old values, but not to another group, nor over what somebody else wrote.

        Returns:
            What was left alone, a line each.

        Raises:
            InputError: the record names what is no setting of a control group, or lacks what it was.
            StageFailed: the kernel refuses it.
        """
        known = group_settings()
        for name in (*self.places, *self.old, *self.left):
            is_whole = name in self.places and _NUMBER.fullmatch(self.old.get(name, "")) is not None
            if name not in known or not is_whole:
                raise InputError(
                    f"{name!r:.80}: must be a setting of a control group, with a place and a number"
                )
        fates = {name: lost(*self.places[name]) for name in self.left}
        here = {name: Path(self.places[name][0]) for name, fate in fates.items() if not fate}
        present = {name: str(read(known[name], place, self.device)) for name, place in here.items()}
        left = {name: self.left[name] for name in here}
        others = foreign(left, self.old, present, f" on {self.group}")
        for name, place in here.items():
            if name not in others and present[name] != self.old[name]:
                write(known[name], place, self.device, int(self.old[name]))
        gone = dict.fromkeys(
            f"{self.group}: {fate}; nothing of it is put back" for fate in fates.values() if fate
        )
        return (*gone, *others.values())


class ControlGroup(NotedSettings[GroupSetting]):
    """The settings of a control group.

    Args:
        name: its path below the hierarchy, or a unit of systemd.
        disk: the kernel's name of the disk whose settings it may have; None: none is known.

    Raises:
        StudyError: there is no such group, nothing runs in it, or it has no settings.
    """

    prefix = OF_GROUP
    step = "cgroup"
    limit_s = 10.0

    def __init__(self, name: str, disk: str | None) -> None:
        group, self._directories = directories_of(name)
        if not self._is_used():
            raise StudyError(
                f"target.cgroup = {name!r:.80}: is empty; must be that of an application that runs"
            )
        self._disk = f"/dev/{disk}"
        self._device = "" if disk is None else text_of(Path("/sys/class/block", disk, "dev")).strip()
        self._numbers = {str(path): path.stat().st_ino for path in self._directories.values()}
        self._kills = killed(self._directories)
        here = (self._here(one) for one in group_settings().values())
        super().__init__(group, {one.name: one for one in here if one is not None})
        if not self.settings:
            raise StudyError(
                f"target.cgroup = {name!r:.80}: has no settings{self._lack('cgroup.memory.high')}"
            )

    def _here(self, one: GroupSetting) -> GroupSetting | None:
        """A setting with its bounds here; None: it cannot be tuned."""
        directory = self._directories.get(one.hierarchy)
        if directory is None or (one.of_device and not self._device):
            return None
        try:
            read(one, directory, self._device)
        except StageFailed:
            return None
        search = bounds(one, directory)
        return replace(one, search=search) if search[0] < search[1] else None

    def _lack(self, name: str) -> str:
        one = known_to(group_settings(), name, "a control group")
        directory = self._directories.get(one.hierarchy)
        if directory is None:
            return f"; {name} needs the group in a hierarchy of {one.controller}, version {one.version}"
        if (directory / one.file).exists():
            if one.of_device and not self._device:
                return f"; {name} needs a disk: name target.path or target.device"
            return f"; {name} needs more memory than the group may use, or leave it out"
        given = (path for path in directory.parents if one.controller in _controllers(path))
        above = next(given, None)
        if one.version == 1 or one.controller in _controllers(directory) or above is None:
            return f"; {name} needs {one.controller} of version {one.version} in this kernel: it is not there"
        return (
            f"; {name} needs the controller {one.controller}: write +{one.controller} to "
            f"cgroup.subtree_control in {above} and below, or set {_ENABLING[one.controller]} in its unit"
        )

    @property
    def locks(self) -> tuple[str, ...]:
        """The lock that a study of it takes; a group that is made anew has another."""
        return (f"cgroup:{min(self._numbers.values())}",)

    @property
    def described(self) -> dict[str, str]:
        """What results are valid for."""
        return {"cgroup": self.place}

    def values(self) -> dict[str, Value]:
        """The values in force by the setting's name.

        Raises:
            StageFailed: they cannot be read.
            WorkError: the group was removed.
        """
        for path, number in self._numbers.items():
            if fate := lost(path, number):
                raise WorkError(f"{self.place}: {fate} in mid-study; the study ends")
        return {name: read(one, self._of(one), self._device) for name, one in self.settings.items()}

    def enter(self, keeper: Keeper, names: Collection[str]) -> Collection[str]:
        """Take the values in force for those of before; nothing is changed.

        Raises:
            EnvironmentLacks: a setting may not be written.
        """
        chosen = [self.settings[name] for name in names]
        for path in (self._of(one) / one.file for one in chosen):
            if not os.access(path, os.W_OK):
                raise EnvironmentLacks(
                    f"target.cgroup: {path} may not be written: needs root; run ascar through sudo"
                )
        if others := [one.name for one in chosen if one.from_others]:
            told = "target.cgroup: what %s gets by %s, others on this machine may lack; no trial sees that"
            _log.warning(told, self.place, ", ".join(others))
        if chosen and self._unit and SYSTEMD.exists():
            told = "target.cgroup: systemd may write its own values to %s when it reloads; that fails a trial"
            _log.warning(told, self.place)
        return super().enter(keeper, names)

    def change(self, wanted: Mapping[str, Value]) -> bool:
        """Put values in force, and read them back; whether anything had to be written."""
        self._kills = killed(self._directories)
        return super().change(wanted)

    def check(self) -> None:
        """See that what was put in force still is, and that the application runs.

        Raises:
            StageFailed: it does not.
        """
        super().check()
        if not self._is_used():
            raise StageFailed("cgroup", f"{self.place}: no process is left in it: the application has ended")
        if killed(self._directories) > self._kills:
            raise StageFailed(
                "cgroup", f"{self.place}: the kernel has killed a process of it for want of memory"
            )

    def applied(self, parameter: str, name: str, value: Value) -> AppliedSetting:
        """A setting beside the value in force.

        Args:
            parameter: the name in the study.
            name: its own name.
            value: the value that is wanted.
        """
        one = self.settings[name]
        before, after = (one.said(each, self._device) for each in (self.values()[name], value))
        return AppliedSetting(parameter, name, str(self._of(one) / one.file), before, after)

    def unit_lines(self, wanted: Mapping[str, Value]) -> list[str]:
        """A drop-in of systemd.unit(5) that keeps values; nothing where the group is no unit's.

        Args:
            wanted: values by the setting's name.
        """
        kept = {name: value for name, value in wanted.items() if self.settings[name].systemd}
        section = _SECTIONS.get(self._unit)
        if section is None or not kept:
            return []
        quota = text_of(self._directories.get((2, "cpu"), Path()) / "cpu.max").split()
        period_us = int(quota[1]) if len(quota) > 1 else _PERIOD_US
        place = f"/etc/systemd/system/{self.place.rpartition('/')[2]}.d/90-ascar.conf"
        return [
            comment(f"{place}; then: systemctl daemon-reload"),
            f"[{section}]",
            *(self.settings[name].unit_line(value, self._disk, period_us) for name, value in kept.items()),
            *(
                comment(f"not kept, for systemd has no such setting: {name}")
                for name in wanted
                if name not in kept
            ),
        ]

    @property
    def _unit(self) -> str:
        """The kind of the unit of systemd that it is, by its name; empty: it is none."""
        unit = UNIT.fullmatch(self.place.rpartition("/")[2])
        return "" if unit is None else unit[1]

    def _is_used(self) -> bool:
        return any(map(is_used, dict.fromkeys(self._directories.values())))

    def _of(self, one: GroupSetting) -> Path:
        return self._directories[one.hierarchy]

    def _restoration(self, old: dict[str, str], left: dict[str, tuple[str, ...]]) -> GroupRestoration:
        directories = {name: str(self._of(self.settings[name])) for name in old}
        places = {name: (path, self._numbers[path]) for name, path in directories.items()}
        return GroupRestoration(self.place, self._device, places, old, left)

    def _write(self, wanted: Mapping[str, Value]) -> None:
        for name, value in wanted.items():
            write(self.settings[name], self._of(self.settings[name]), self._device, value)


def _controllers(directory: Path) -> list[str]:
    """The controllers of version 2 that a group has."""
    return text_of(directory / "cgroup.controllers").split()


if __name__ == "__main__":
    sys.exit(restore(GroupRestoration, GroupRestoration.carry_out))
