"""A server of NFS and a client, each a node that is a kernel of its own, for one study."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import msgspec

from ascar.catalogues.nfs import nfs
from ascar.errors import StageFailed
from ascar.systems.dirty_pages import drop_caches, write_back
from ascar.systems.nfs.machine import EXPORTS, LIMIT_S, MOUNT_S, NfsMachine, exported_in
from ascar.systems.nfs.settings import kept_of, options_of, those
from ascar.testbed import kernel_nfs
from ascar.testbed.kernel import KernelNode
from ascar.testbed.kernel_links import star
from ascar.testbed.kernel_parts import KernelParts, NfsExport, NfsServer, NodeDisk
from ascar.testbed.machine import close_all

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from ascar.catalogues.nfs import NfsSetting
    from ascar.space import Value
    from ascar.systems.nfs.mounts import NfsMounted
    from ascar.testbed.kernel_parts import LinkShape

EXPORT, PLACE, CLIENTS = "data", "/mnt/data", "*"
_EXPORTED = f"/srv/{EXPORT}"
_BOOTED = "/proc/cmdline"
_DISK = "nbd0"
DISK_STAT = f"/sys/block/{_DISK}/stat"
_ADDRESSES = {"server": "10.77.0.1", "client": "10.77.0.2"}
# Before there is a mount, settings of a client's modules have files.
_MODULES = {"server": ("bfq", "kyber-iosched"), "client": ("nfsv3", "nfsv4")}
_BOOT_S, _END_S = 120.0, 60.0
_PROBE = 'for module; do modprobe -d /run/modules "$module"; done 2>/dev/null; exit 0'
_RESTART = """
set -e
rpc.nfsd 0
echo "$2" > /proc/fs/nfsd/max_block_size
exec rpc.nfsd "$1"
"""


class NfsNodes:
    """Both nodes, off until they are booted.

    Args:
        place: an empty directory, in which the data of the server's disk lies.
        disk: the server's disk.
        link: what is between client and server.
        memory_mib: the memory of the server and of the client.
        threads: of the server, when it starts.
        folder: a directory with a short path, for what else they have on this machine.

    Attributes:
        place: that directory.
        server: the node of the server.
        client: the node of the client.
        at_server: the server, by programs of its node.
        at_client: the client, by programs of its node.
    """

    def __init__(
        self,
        place: Path,
        disk: NodeDisk,
        link: LinkShape,
        memory_mib: tuple[int, int],
        threads: int,
        *,
        folder: Path,
    ) -> None:
        links = star("server", ["client"])

        def node(name: str, memory_mib: int, **more: Any) -> KernelNode:
            more |= {"address": f"{_ADDRESSES[name]}/24", "links": links[name], "hosts": _ADDRESSES}
            return KernelNode(KernelParts(name, memory_mib, **more), place / name, folder)

        exported = NfsServer((NfsExport(EXPORT, CLIENTS),), threads=threads)
        self.place = place
        self.server = node("server", memory_mib[0], disks=(disk,), nfs=exported)
        self.client = node("client", memory_mib[1], shape=link)
        self.at_server, self.at_client = NfsMachine(self.server), NfsMachine(self.client)

    @property
    def are_up(self) -> bool:
        """Whether both run."""
        return self.server.alive and self.client.alive

    @property
    def kernel_words(self) -> tuple[str, ...]:
        """The words that their kernels were booted with, besides their own."""
        return self.client.parts.kernel_words

    def end(self, words: tuple[str, ...]) -> None:
        """Shut both down, to be booted with other words of the command line; the disk keeps its files.

        Raises:
            EnvironmentLacks: one does not answer.
            StageFailed: what they hold in memory cannot be written.
        """
        self.unmount()
        self.write_back(_END_S)
        self.server.end_disks(_END_S)
        for one in (self.client, self.server):
            one.cut()
            one.parts = msgspec.structs.replace(one.parts, kernel_words=words)

    def boot(self) -> None:
        """Boot whichever is off; nothing is mounted then.

        Raises:
            EnvironmentLacks: what they need is not installed.
            WorkError: they do not come up.
        """
        self.client.cut()  # a mount of a server that was cut would wait for it
        with ThreadPoolExecutor(2) as pool:
            for doing in [pool.submit(one.boot, _BOOT_S) for one in (self.server, self.client)]:
                doing.result()
        for one in (self.at_server, self.at_client):
            one.run("modules", ["sh", "-c", _PROBE, "modules", *_MODULES[one.node.name]])

    def mount(self, wanted: Mapping[str, Value]) -> None:
        """Set what new connections take, mount the export, and make the load's directory on it.

        Raises:
            StageFailed: it cannot be mounted.
        """
        self.at_client.write(those(wanted, "connection", "client"))
        options, below = options_of(wanted, "mount"), f"/{EXPORT}"
        if "vers=3" in options:
            below = _EXPORTED
            self.at_client.run("what locks need", kernel_nfs.daemons_words())
        self.at_client.mount(f"server:{below}", PLACE, options)
        self.at_client.run("make a directory", ["mkdir", "-p", f"{PLACE}/load"])

    def unmount(self) -> None:
        """Unmount the export, if it is mounted.

        Raises:
            StageFailed: it cannot be unmounted.
        """
        if self.at_client.mount_of(PLACE) is not None:
            self.at_client.unmount(PLACE)

    def restart_server(self, wanted: Mapping[str, Value]) -> None:
        """Start all threads of the server anew, for what takes effect no earlier.

        Raises:
            StageFailed: it does not start.
        """
        words = [str(wanted[name]) for name in ("nfsd.threads", "nfsd.max_block_size")]
        self.at_server.run("start the server", ["sh", "-c", _RESTART, "restart", *words], MOUNT_S)

    def export(self, wanted: Mapping[str, Value]) -> None:
        """Export the directory with these options, at once.

        Raises:
            StageFailed: the kernel refuses it.
        """
        kept = kept_of(self._export_options(), nfs(), "export")
        options = ",".join((*options_of(wanted, "export"), *kept))
        self.at_server.run("export", ["exportfs", "-o", options, f"{CLIENTS}:{_EXPORTED}"])

    def values(self, settings: Iterable[NfsSetting]) -> dict[str, Value]:
        """The values in force by the setting's name; what a kernel lacks is missing.

        Raises:
            StageFailed: a node does not answer, or nothing is mounted.
        """
        wanted = list(settings)

        def of(where: str) -> list[NfsSetting]:
            return [one for one in wanted if one.where == where]

        booted = self.at_client.read([_BOOTED])[0].split() if of("boot") else []
        exported = self._export_options() if of("export") else ()
        return (
            self.at_client.values_of(self._mounted(), wanted)
            | {one.name: one.value_in(booted) for one in of("boot")}
            | {one.name: one.value_in(exported) for one in of("export")}
            | self.at_server.values([*of("server"), *of("disk")], _DISK)
        )

    def set_now(self, wanted: Mapping[str, Value]) -> None:
        """Set what takes effect at once, also what a new mount has brought back; all is in force then.

        Raises:
            StageFailed: a kernel refuses a value, or it or the server has allowed something else.
        """
        self.at_server.write(those(wanted, "dynamic", "server", "disk"), _DISK)
        self.at_client.write(those(wanted, "dynamic", "client"), self._mounted().device)
        present = self.values(nfs()[name] for name in wanted)
        for name, value in wanted.items():
            if name in present and present[name] != value:
                told = nfs()[name].text(present[name])
                raise StageFailed("nfs", f"{name} = {nfs()[name].text(value)}: is {told} once it is set")

    def write_back(self, limit_s: float) -> None:
        """Have the client write what it holds, then the server.

        Raises:
            StageFailed: it takes longer.
        """
        for one in (self.client, self.server):
            write_back(one, limit_s)

    def drop_caches(self) -> None:
        """Forget what both have in memory of files.

        Raises:
            StageFailed: a node does not answer.
        """
        for one in (self.client, self.server):
            drop_caches(one, LIMIT_S)

    def close(self) -> None:
        """End both."""
        close_all((self.client, self.server))

    def _mounted(self) -> NfsMounted:
        mount = self.at_client.mount_of(PLACE)
        if mount is None:
            raise StageFailed("nfs", f"{PLACE}: nothing of NFS is mounted there")
        return mount

    def _export_options(self) -> tuple[str, ...]:
        return exported_in(self.at_server.read([EXPORTS])[0], _EXPORTED)
