"""The settings of a mount of this machine and of its client: read, changed by a new mount, put back."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING

from ascar.catalogues.nfs import NfsSetting
from ascar.errors import StageFailed, StudyError, WorkError
from ascar.nodes.local import LocalNode
from ascar.systems.mount_table import MOUNTINFO, mount_around
from ascar.systems.nfs.machine import NfsMachine
from ascar.systems.nfs.mounts import KINDS, NfsMounted, check_idle, sharing
from ascar.systems.nfs.restoration import RESTORE_S, NfsRestoration
from ascar.systems.nfs.settings import kept_of, options_of, those
from ascar.systems.noted_settings import NotedSettings

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from ascar.space import Value
    from ascar.systems.keeper import Keeper

_log = logging.getLogger(__name__)

_NO_LOCK_S_NAME = re.compile(r"[^A-Za-z0-9._:/-]")
_NAME_CHARACTERS_MAX = 100


class NfsMountSettings(NotedSettings[NfsSetting]):
    """The settings of the mount that a directory is on.

    Args:
        path: the directory.
        settings: the settings that a study may change: options of the mount, and the client's.
        remounts: whether the mount is made anew, for what takes effect no earlier.

    Raises:
        StudyError: the directory is on no mount of NFS.

    Attributes:
        mount: the mount of before the study.
    """

    prefix = ""
    step = "mount"
    limit_s = RESTORE_S

    def __init__(self, path: str, settings: Iterable[NfsSetting], *, remounts: bool) -> None:
        try:
            self.mount = NfsMounted(*mount_around(path))
        except StageFailed as failure:
            raise StudyError(f"target.path = {path!r:.80}: {failure.message}") from failure
        if self.mount.kind not in KINDS:
            raise StudyError(
                f"target.path = {path!r:.80}: is on no mount of NFS; mount it first, or leave out "
                "target.server for a server of the study's own"
            )
        super().__init__(self.mount.place, {one.name: one for one in settings})
        self._remounts = remounts
        self._machine = NfsMachine(LocalNode())

    @property
    def locks(self) -> tuple[str, ...]:
        """The mount, and the windows of the machine's new connections."""
        place = _NO_LOCK_S_NAME.sub("_", f"nfs:{self.place}")[:_NAME_CHARACTERS_MAX]
        return (place, *(one.knob for one in self.settings.values() if one.is_window))

    @property
    def described(self) -> dict[str, str]:
        """What results are valid for."""
        return {"mount": self.mount.source, "place": self.place}

    def values(self) -> dict[str, Value]:
        """The values in force by the setting's name; what this machine lacks is missing.

        Raises:
            StageFailed: nothing is mounted there, or the kernel has lost a setting.
            WorkError: something else is mounted there.
        """
        mount = self._present()
        found = self._machine.values_of(mount, self.settings.values())
        if lost := [name for name in self._old if name not in found]:
            raise StageFailed("nfs", f"{lost[0]}: the kernel does not have it any more")
        return found

    def enter(self, keeper: Keeper, names: Collection[str]) -> Collection[str]:
        """Take the values in force for those of before; nothing is changed.

        Raises:
            Refused: the mount is in use, and the study would unmount it.
        """
        self.mount, present = self._present(), self.values()
        taken = [name for name in names if name in present]
        if self._remounts:
            mountinfo = self._machine.read([MOUNTINFO])[0]
            check_idle(self.place, mountinfo)
            # Those that stay keep their connections, and with them what a new mount would have set.
            shared = [name for name in taken if name == "nconnect" or self.settings[name].is_window]
            if shared and (places := sharing(mountinfo, self.mount)):
                taken = [name for name in taken if name not in shared]
                _log.warning(
                    "target.path: %s: of the same server, whose connections mounts share: %s are not tuned",
                    ", ".join(places),
                    ", ".join(shared),
                )
        return super().enter(keeper, taken)

    def _restoration(self, old: dict[str, str], left: dict[str, tuple[str, ...]]) -> NfsRestoration:
        of_client = {name: int(text) for name, text in old.items() if self.settings[name].where == "client"}
        mounts = any(
            set(values) != {old[name]}
            for name, values in left.items()
            if self.settings[name].context == "connection"
        )
        if mounts:  # a new mount has the kernel's value until the study's is written
            left |= {
                name: tuple(dict.fromkeys((*values, self.settings[name].text(self.settings[name].default))))
                for name, values in left.items()
                if self.settings[name].context == "dynamic"
            }
        return NfsRestoration(
            self.mount.source, self.place, self.mount.given, of_client, mounts=mounts, left=left
        )

    def _write(self, wanted: Mapping[str, Value]) -> None:
        """Write values; the mount is made anew only for what takes effect no earlier.

        Raises:
            StageFailed: the mount is in use, or the kernel refuses a value; it is mounted as before then.
        """
        present = self.values()
        whole = {name: wanted.get(name, present[name]) for name in self._old}
        if any(self.settings[name].context == "connection" for name in wanted):
            self._machine.unmount(self.place)
            options = [*kept_of(self.mount.given, whole, "mount"), *options_of(whole, "mount")]
            try:
                self._machine.write(those(whole, "connection", "client"))
                self._machine.mount(self.mount.source, self.place, options)
            except StageFailed:
                self._machine.mount(self.mount.source, self.place, self.mount.given)
                raise
        # Also what a new mount has brought back.
        self._machine.write(those(whole, "dynamic", "client"), self._present().device)

    def _present(self) -> NfsMounted:
        mount = self._machine.mount_of(self.place)
        if mount is None:
            raise StageFailed("nfs", f"{self.place}: nothing of NFS is mounted there")
        if mount.source != self.mount.source:
            raise WorkError(
                f"{self.place}: {mount.source} is mounted there, not {self.mount.source}: somebody else "
                "changed it in mid-study; the study ends"
            )
        return mount
