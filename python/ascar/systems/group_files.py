"""Files of control groups: where a group has its directories, its settings, its processes and its memory."""

from __future__ import annotations

import os
import re
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ascar.catalogues.cgroup import group_settings
from ascar.errors import StageFailed, StudyError
from ascar.systems.mount_table import mounts_here
from ascar.systems.needs import text_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ascar.catalogues.cgroup import GroupSetting
    from ascar.space import Value

UNIT = re.compile(r"[\w.@:\\-]+\.(service|slice|scope)", re.ASCII)
"""The group of a unit of systemd, and the unit's kind."""
_PART = re.compile(r"(?!\.\.?$)[\w.@:+=,~\\-]{1,255}", re.ASCII)
# What is used, what of it can be dropped at once, the limit, and what counts killed processes.
_MEMORY = {
    1: ("memory.usage_in_bytes", "total_inactive_file", "memory.limit_in_bytes", "memory.oom_control"),
    2: ("memory.current", "inactive_file", "memory.max", "memory.events"),
}
_ROOM = 1.25  # for what the application may come to use
_STEP_BYTES = 1 << 20
_ASK_S = 10.0


def directories_of(name: str) -> tuple[str, dict[tuple[int, str], Path]]:
    """The path of a group below its hierarchies, and its directories by version and controller.

    Args:
        name: that path, or a unit of systemd.

    Raises:
        StudyError: there is no such group, or the path leads elsewhere.
    """
    group, roots = name.removeprefix("/"), _roots()
    if not _is_path(group):
        raise StudyError(
            f"target.cgroup = {name!r:.80}: must be a path as /proc/PID/cgroup has it, such as "
            "'system.slice/my.service', without '..'"
        )
    if UNIT.fullmatch(group) and not any((root / group).is_dir() for root in roots.values()):
        group = _group_of(group)
    found = {which: root / group for which, root in roots.items() if (root / group).is_dir()}
    if not found:
        places = ", ".join(dict.fromkeys(map(str, roots.values()))) or "no hierarchy is mounted"
        raise StudyError(
            f"target.cgroup = {name!r:.80}: is not there ({places}); must be the group of an application "
            "that runs, as /proc/PID/cgroup has it"
        )
    for which, path in found.items():
        if path.resolve() != roots[which].resolve() / group:
            raise StudyError(f"target.cgroup = {name!r:.80}: must not lead through a symbolic link")
    return group, found


def controllers_here() -> list[str]:
    """The controllers that this machine has, each with its version."""
    return [
        f"{controller} (version {version})"
        for (version, controller), root in _roots().items()
        if version == 1 or controller in text_of(root / "cgroup.controllers").split()
    ]


def _roots() -> dict[tuple[int, str], Path]:
    """Where the hierarchies are mounted, by version and controller."""
    roots: dict[tuple[int, str], Path] = {}
    for mount in mounts_here():
        for version, controller in dict.fromkeys(one.hierarchy for one in group_settings().values()):
            first = mount.kind == "cgroup" and version == 1 and controller in mount.options
            if first or (mount.kind, version) == ("cgroup2", 2):
                roots.setdefault((version, controller), Path(mount.place))
    return roots


def _is_path(group: str) -> bool:
    return all(map(_PART.fullmatch, group.split("/")))


def _group_of(unit: str) -> str:
    """The path of the group of a unit of systemd; the unit's name where it has none."""
    words = ["systemctl", "show", "--property=ControlGroup", "--value", "--", unit]
    with suppress(OSError, subprocess.SubprocessError):
        told = subprocess.run(words, capture_output=True, text=True, timeout=_ASK_S, check=False).stdout
        group = told.strip().removeprefix("/")
        if _is_path(group):
            return group
    return unit


def lost(path: str, number: int) -> str:
    """What became of a directory of that number; empty: it is there."""
    try:
        return "" if Path(path).stat().st_ino == number else "was removed and made anew"
    except OSError:
        return "is gone"


def read(one: GroupSetting, directory: Path, device: str) -> int:
    """The value in force.

    Args:
        one: the setting.
        directory: the directory of the group.
        device: the number of the disk, such as "8:0".

    Raises:
        StageFailed: it cannot be read.
    """
    path = directory / one.file
    try:
        return one.value_in(path.read_text("ascii"), device)
    except OSError as error:
        raise StageFailed("cgroup", f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise StageFailed("cgroup", f"{path}: has no number of {one.name}") from error


def write(one: GroupSetting, directory: Path, device: str, value: Value) -> None:
    """Write a value.

    Args:
        one: the setting.
        directory: the directory of the group.
        device: the number of the disk, such as "8:0".
        value: the value.

    Raises:
        StageFailed: the kernel refuses it.
    """
    path = directory / one.file
    try:
        file = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)  # which never makes one
        try:
            os.write(file, one.said(value, device).encode())
        finally:
            os.close(file)
    except OSError as error:
        raise StageFailed("cgroup", f"{one.name} = {value}: {path}: {error.strerror}") from error


def is_used(directory: Path) -> bool:
    """Whether a process is in a group or below it."""
    if events := text_of(directory / "cgroup.events"):
        return "populated 1" in events
    with suppress(OSError):  # what is below it goes meanwhile
        return any(text_of(one).strip() for one in directory.rglob("cgroup.procs"))
    return False


def killed(directories: Mapping[tuple[int, str], Path]) -> int:
    """How many processes of a group the kernel has killed for want of memory."""
    return sum(
        _number_after("oom_kill", text_of(path / _MEMORY[version][3]))
        for (version, controller), path in directories.items()
        if controller == "memory"
    )


def bounds(one: GroupSetting, directory: Path) -> tuple[float, float]:
    """The least and the greatest number that is searched: never less memory than the group uses."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if one.bounded == "half":
        return 0, total // 2 // _STEP_BYTES * _STEP_BYTES
    if one.bounded != "use":
        return one.search
    current, reclaimable, limit, _ = _MEMORY[one.version]
    used = _number(text_of(directory / current)) - _number_after(
        reclaimable, text_of(directory / "memory.stat")
    )
    least = (int(max(used, 0) * _ROOM) // _STEP_BYTES + 1) * _STEP_BYTES
    most = min(total, _number(text_of(directory / limit)) or total)
    return least, most // _STEP_BYTES * _STEP_BYTES


def _number(text: str) -> int:
    """A number; 0 where it is none."""
    return int(text) if text.strip().isdecimal() else 0


def _number_after(word: str, text: str) -> int:
    """The number that follows a word in a line of its own; 0 where there is none."""
    lines = (line.split() for line in text.splitlines())
    return next((_number(line[1]) for line in lines if len(line) > 1 and line[0] == word), 0)
