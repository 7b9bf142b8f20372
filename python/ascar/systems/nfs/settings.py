"""The settings of NFS on a server and a client: read, and put in force in the order of their cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ascar.catalogues.nfs import nfs
from ascar.errors import StageFailed
from ascar.systems.kernel_files import value_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from ascar.catalogues.nfs import NfsSetting
    from ascar.space import Value
    from ascar.systems.nfs.machine import NfsMachine
    from ascar.systems.nfs.mounts import NfsMounted

_BOOTED = "/proc/cmdline"
_BFQ = ("disk.slice_idle", "disk.timeout_sync")
"""What the disk has under one scheduler alone."""


@dataclass(frozen=True, slots=True)
class NfsEnds:
    """Both ends of a mount, as far as they are tuned.

    Attributes:
        client: the machine that mounts; None: it is not tuned.
        server: the machine that serves; None: it is not tuned.
        place: the mount point on the client.
        disk: the kernel's name of the disk below the export; None: it has none, or it is not tuned.
        exported: the exported directory.
    """

    client: NfsMachine | None
    server: NfsMachine | None
    place: str
    disk: str | None = None
    exported: str = ""

    def values(self, settings: Iterable[NfsSetting]) -> dict[str, Value]:
        """The values in force by the setting's name; what this machine lacks is missing.

        Raises:
            StageFailed: a machine does not answer, or nothing is mounted.
        """
        wanted = list(settings)
        found: dict[str, Value] = {}
        if self.client is not None:
            mount = self.mounted()
            found |= {one.name: one.value_in(mount.options) for one in wanted if one.where == "mount"}
            files = {one.name: one.file(mount.device) for one in wanted if one.where == "client"}
            found |= _told(self.client, files)
            if booted := [one for one in wanted if one.where == "boot"]:
                words = self.client.read([_BOOTED])[0].split()
                found |= {one.name: one.value_in(words) for one in booted}
        if self.server is not None:
            files = {one.name: self._file(one) for one in wanted if one.where in ("server", "disk")}
            found |= _told(self.server, {name: file for name, file in files.items() if file})
            if any(one.where == "export" for one in wanted):
                options = self.export_options()
                found |= {one.name: one.value_in(options) for one in wanted if one.where == "export"}
        return found

    def mounted(self) -> NfsMounted:
        """The mount.

        Raises:
            StageFailed: there is none.
        """
        assert self.client is not None, "whoever asks for the mount tunes the client"
        mount = self.client.mount_of(self.place)
        if mount is None:
            raise StageFailed("nfs", f"{self.place}: nothing of NFS is mounted there")
        return mount

    def export_options(self) -> tuple[str, ...]:
        """The options of the export, as the server has them.

        Raises:
            StageFailed: it does not export the directory.
        """
        assert self.server is not None, "whoever asks for the export tunes the server"
        for line in self.server.run("exports", ["cat", "/var/lib/nfs/etab"]).splitlines():
            directory, _, clients = line.partition("\t")
            if directory == self.exported and clients.endswith(")"):
                return tuple(clients[:-1].partition("(")[2].split(","))
        raise StageFailed("nfs", f"{self.exported}: is not exported")

    def set_now(self, wanted: Mapping[str, Value]) -> None:
        """Set what takes effect at once, also what a new mount has brought back.

        Raises:
            StageFailed: a kernel refuses a value.
        """
        if self.server is not None:
            self.server.write(self._files(wanted, ("server", "disk"), "dynamic"))
        if self.client is not None and any(nfs()[name].where == "client" for name in wanted):
            self.client.write(self._files(wanted, ("client",), "dynamic", self.mounted().device))

    def set_before_mount(self, wanted: Mapping[str, Value]) -> None:
        """Set what new connections take.

        Raises:
            StageFailed: a kernel refuses a value.
        """
        if self.client is not None:
            self.client.write(self._files(wanted, ("client",), "connection"))

    def check(self, wanted: Mapping[str, Value]) -> None:
        """See that all of it is in force.

        Raises:
            StageFailed: something is not: the kernel, or the server, has allowed something else.
        """
        present = self.values(nfs()[name] for name in wanted)
        for name, value in wanted.items():
            if name in present and present[name] != value:
                told = nfs()[name].text(present[name])
                raise StageFailed("nfs", f"{name} = {nfs()[name].text(value)}: is {told} once it is set")

    def _files(
        self, wanted: Mapping[str, Value], where: Collection[str], context: str, number: str | None = None
    ) -> dict[str, str]:
        settings = [(nfs()[name], value) for name, value in wanted.items()]
        return {
            self._file(one, number): one.text(value)
            for one, value in settings
            if one.where in where and one.context == context and self._file(one, number)
        }

    def _file(self, setting: NfsSetting, number: str | None = None) -> str:
        """The file of a kernel's setting; empty where this server has no disk for it."""
        if setting.where == "disk" and self.disk is None:
            return ""
        return setting.file(self.disk if setting.where == "disk" else number)


def in_order(wanted: Mapping[str, Value]) -> dict[str, Value]:
    """Values by the setting's name in the order of writing, without what the scheduler does not have."""
    known = {name: wanted[name] for name in nfs() if name in wanted}
    if known.get("disk.scheduler") != "bfq":
        known = {name: value for name, value in known.items() if name not in _BFQ}
    return known


def options_of(wanted: Mapping[str, Value], where: str) -> tuple[str, ...]:
    """The options of a mount, an export or a kernel, of those settings that are wanted."""
    settings = ((nfs()[name], value) for name, value in wanted.items())
    return tuple(text for one, value in settings if one.where == where and (text := one.option(value)))


def kept_of(given: Iterable[str], names: Collection[str], where: str) -> list[str]:
    """The options of a mount or an export that none of the settings sets.

    Args:
        given: its options.
        names: the settings by name.
        where: what options they are, as `NfsSetting.where`.
    """
    settings = [nfs()[name] for name in names if nfs()[name].where == where]
    words = {word for one in settings for word in (one.name, *one.words)}
    return [one for one in given if one.partition("=")[0] not in words]


def _told(machine: NfsMachine, files: Mapping[str, str]) -> dict[str, Value]:
    texts = zip(files, machine.read(list(files.values())), strict=True)
    return {name: nfs()[name].value(value) for name, text in texts if (value := value_of(text))}
