"""The options of a mount that an application uses: read, changed by a remount, put back.

    python -m ascar.systems.mount_options RECORD

`RECORD` is a `MountRestoration` as JSON; it is in the keeper's journal before anything is changed. Nothing is
unmounted, so whoever uses the mount goes on. What a reboot mounts is as fstab(5) says.
"""

from __future__ import annotations

import logging
import os
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from ascar.catalogues.mount import OF_MOUNT, MountSetting, mount_settings
from ascar.catalogues.server_setting import known_to
from ascar.errors import EnvironmentLacks, InputError, StageFailed, StudyError
from ascar.nodes.local import LocalNode
from ascar.nodes.process import failing, output_of
from ascar.quoting import comment, fstab_line, mount_options, shell_line
from ascar.systems.existing.restoration import foreign
from ascar.systems.mount_table import mount_around, mounts_here
from ascar.systems.noted_settings import NotedSettings
from ascar.systems.playbook import PlaybookTask
from ascar.systems.undo_record import restore

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ascar.space import Value
    from ascar.systems.keeper import Keeper
    from ascar.systems.mount_table import KernelMount

_log = logging.getLogger(__name__)

REMOUNT_S = 120.0
"""How long a remount may take; the kernel writes the file system back before."""
_KEPT = ("nosuid", "nodev", "noexec", "nodiratime", "nosymfollow", "sync", "dirsync", "mand")
"""What a remount takes away if it does not say it, beside what the catalogue calls whole."""
_ROOTS_PASS, _OTHERS_PASS = 1, 2  # fstab(5), the sixth field


class MountRestoration(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The options of a mount from before a study.

    Attributes:
        place: the mount point.
        device: the number of its device, such as "8:1".
        old: the values before the study by the setting's name.
        left: the values that the study may have left.
    """

    place: str
    device: str
    old: dict[str, str]
    left: dict[str, tuple[str, ...]]

    def carry_out(self) -> tuple[str, ...]:
        """Remount it with the old values; those that somebody else changed are left alone.

        Returns:
            What was left alone, a line each.

        Raises:
            InputError: the record names what is no setting of a mount, or lacks what it was.
            StageFailed: the kernel refuses it, or something else is mounted over it.
        """
        known = mount_settings()
        unknown = [name for name in (*self.old, *self.left) if name not in known or name not in self.old]
        if unknown:
            raise InputError(f"{unknown[0]!r:.80}: must be a setting of a mount, with its old value")
        if not any(self._is_it(one) for one in mounts_here()):
            return ()  # unmounted meanwhile: its options went with it
        mount = mount_around(self.place)
        if not self._is_it(mount):
            raise StageFailed("mount", f"{self.place}: something else is mounted over it now")
        present = {name: known[name].text(known[name].value_in(mount.options)) for name in self.left}
        others = foreign(self.left, self.old, present, f" on {self.place}")
        wanted = {
            known[name].name: known[name].value(self.old[name])
            for name, text in present.items()
            if name not in others and text != self.old[name]
        }
        if wanted:
            _remount(mount, wanted)
        return tuple(others.values())

    def _is_it(self, mount: KernelMount) -> bool:
        return (mount.place, mount.device) == (self.place, self.device)


@dataclass(frozen=True, slots=True)
class MountForms:
    """Options of a mount in an administrator's forms; empty where there are none.

    Attributes:
        shell: a command of sh(1), for now.
        fstab: a line of fstab(5).
        tasks: a task of Ansible, which does both.
    """

    shell: list[str] = field(default_factory=list)
    fstab: list[str] = field(default_factory=list)
    tasks: list[PlaybookTask] = field(default_factory=list)


class MountOptions(NotedSettings[MountSetting]):
    """The options of the mount that holds a directory.

    Args:
        path: the directory.

    Raises:
        StudyError: the mount is read-only, or its file system has no options that a remount changes.
    """

    prefix = OF_MOUNT
    step = "remount"
    limit_s = REMOUNT_S

    def __init__(self, path: str) -> None:
        self.mount = mount_around(path)
        kind, options = self.mount.kind, self.mount.options
        found = {name: one for name, one in mount_settings().items() if kind in one.file_systems}
        if not found:
            kinds = sorted({kind for one in mount_settings().values() for kind in one.file_systems})
            raise StudyError(
                f"target.path = {path!r:.80}: is on {kind}, mounted on {self.mount.place}; target.remounts "
                f"must be left out, or the file system be one of {', '.join(kinds)}"
            )
        if "ro" in options:
            raise StudyError(
                f"target.path = {path!r:.80}: is on {self.mount.place}, which is mounted read-only; must be "
                "a directory that the application writes to"
            )
        here = {name: one for name, one in found.items() if not one.is_hidden(options)}
        super().__init__(self.mount.place, here)

    @property
    def locks(self) -> tuple[str, ...]:
        """The lock of the file system, for its mounts have most options in common."""
        return (f"mount:{self.mount.device}",)

    def values(self) -> dict[str, Value]:
        """The values in force by the setting's name.

        Raises:
            StageFailed: the mount is gone, or something else is mounted over it.
        """
        options = self._present().options
        return {name: one.value_in(options) for name, one in self.settings.items()}

    def enter(self, keeper: Keeper, names: Collection[str]) -> Collection[str]:
        """Take the values in force for those of before; nothing is changed.

        Args:
            keeper: the keeper of the user, which undoes what is not undone when ascar ends.
            names: the settings that may be changed.

        Returns:
            Those that the kernel lets a remount set.

        Raises:
            EnvironmentLacks: it lets none be set, or ascar is not root's.
            StageFailed: the mount is gone, or something else is mounted over it.
        """
        if os.geteuid() != 0:
            raise EnvironmentLacks("target.remounts = 'allowed': needs root; run ascar through sudo")
        mount, present = self._present(), self.values()
        taken: list[str] = []
        reason = ""
        for name in names:
            try:
                _remount(mount, {name: present[name]})
            except StageFailed as failure:
                reason = f"{self.settings[name].said(present[name])}: {failure.message}"
                _log.warning("target.remounts: %s is not tuned: %s", name, reason)
            else:
                taken.append(name)
        if names and not taken:
            raise EnvironmentLacks(f"target.remounts = 'allowed': the kernel refuses every remount: {reason}")
        return super().enter(keeper, taken)

    def _lack(self, name: str) -> str:
        known_to(mount_settings(), name, "a mount")
        return ""

    def _restoration(self, old: dict[str, str], left: dict[str, tuple[str, ...]]) -> MountRestoration:
        return MountRestoration(self.place, self.mount.device, old, left)

    def _write(self, wanted: Mapping[str, Value]) -> None:
        _remount(self._present(), wanted)

    def forms(self, wanted: Mapping[str, Value]) -> MountForms:
        """What sets these values.

        Args:
            wanted: values by the setting's name.

        Raises:
            StageFailed: the mount is gone.
            InputError: a form cannot say a name.
        """
        mount = self._present()
        words = {word for name in wanted for word in self.settings[name].spelled}
        given = [one for one in mount.options if one.partition("=")[0] not in words]
        options = mount_options(
            [*given, *(self.settings[name].said(value) for name, value in wanted.items())]
        )
        passed = 0
        if mount.kind == "ext4":
            passed = _ROOTS_PASS if mount.place == "/" else _OTHERS_PASS
        now = [shell_line(_words(mount, wanted))]
        if mount.is_bound:  # fstab has the directory that it shows, which the kernel does not tell
            return MountForms(
                [*now, comment(f"to stay: {options} in /etc/fstab, where its file system is mounted")]
            )
        arguments = {
            "path": mount.place,
            "src": mount.source,
            "fstype": mount.kind,
            "opts": options,
            "passno": str(passed),
            "state": "mounted",
        }
        return MountForms(
            now,
            [fstab_line(mount.source, mount.place, mount.kind, options, passed)],
            [PlaybookTask(f"mount {mount.place}", "ansible.posix.mount", arguments)],
        )

    @property
    def described(self) -> dict[str, str]:
        """What results are valid for."""
        return {"file_system": self.mount.kind, "place": self.mount.place}

    def _present(self) -> KernelMount:
        """The mount as it is now.

        Raises:
            StageFailed: it is gone, or something else is mounted over it.
        """
        mount = mount_around(self.mount.place)
        if (mount.place, mount.device) != (self.mount.place, self.mount.device):
            raise StageFailed(
                "mount", f"{self.mount.place}: is not mounted any more, or something else over it"
            )
        return mount


def _words(mount: KernelMount, wanted: Mapping[str, Value]) -> list[str]:
    """The command of mount(8); with source and place, it takes no other options from fstab(5)."""
    of_kind = [one for one in mount_settings().values() if mount.kind in one.file_systems]
    values = {one.name: one.value_in(mount.options) for one in of_kind if one.whole} | dict(wanted)
    said = [mount_settings()[name].said(value) for name, value in values.items()]
    options = ["remount", "rw", *(one for one in mount.options if one in _KEPT), *said]
    return ["mount", "-o", mount_options(options), "--", mount.source, mount.place]


def _remount(mount: KernelMount, wanted: Mapping[str, Value]) -> None:
    """Remount it; options that are not named stay as they are.

    Raises:
        StageFailed: the kernel refuses it, or the mount has become read-only.
    """
    if "ro" in mount.options:  # after an error: writing to it again would harm it
        raise StageFailed("mount", f"{mount.place}: has become read-only; it is left alone")
    with failing("mount"):
        output_of(LocalNode(), "mount", f"remount {mount.place}", _words(mount, wanted), REMOUNT_S)


if __name__ == "__main__":
    sys.exit(restore(MountRestoration, MountRestoration.carry_out))
