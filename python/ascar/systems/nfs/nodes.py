"""A server of NFS and a client, each a node that is a kernel of its own, for one study."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import msgspec

from ascar.errors import StageFailed
from ascar.systems.nfs.machine import NfsMachine
from ascar.systems.nfs.settings import NfsEnds
from ascar.testbed import kernel_disks
from ascar.testbed.kernel import KernelNode
from ascar.testbed.kernel_links import star
from ascar.testbed.kernel_parts import KernelParts, NfsExport, NfsServer, NodeDisk

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ascar.space import Value
    from ascar.testbed.kernel_parts import LinkShape

EXPORT, PLACE, CLIENTS = "data", "/mnt/data", "*"
LOAD_MARK = "ASCAR_LOAD"
"""The variable by which programs of a load are told from others of the client."""
_ADDRESSES = {"server": "10.77.0.1", "client": "10.77.0.2"}
_DISK = "nbd0"
_MODULES = ("bfq", "kyber-iosched")
_BOOT_S, _END_S = 120.0, 60.0
_LOADS = """
found=$(grep -lz "^$1=" /proc/[0-9]*/environ 2>/dev/null)
for file in $found; do
    pid=${file#/proc/}
    kill -KILL "${pid%/environ}" 2>/dev/null
done
[ -z "$found" ] || sleep 0.2
"""
_PROBE = 'for module; do modprobe -d /run/modules "$module"; done 2>/dev/null; exit 0'
_DROP = "echo 3 > /proc/sys/vm/drop_caches"


class NfsNodes:
    """Both nodes, off until they are booted.

    Args:
        place: an empty directory, in which the data of the server's disk lies.
        disk: the server's disk.
        link: what is between client and server.
        memory_mib: the memory of the server and of the client.
        threads: of the server, when it starts.
        folder: a directory with a short path, for what else they have on this machine.
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
        server = KernelParts(
            "server",
            memory_mib=memory_mib[0],
            address=f"{_ADDRESSES['server']}/24",
            links=links["server"],
            hosts=_ADDRESSES,
            disks=(disk,),
            nfs=NfsServer((NfsExport(EXPORT, CLIENTS),), threads=threads),
        )
        client = KernelParts(
            "client",
            memory_mib=memory_mib[1],
            address=f"{_ADDRESSES['client']}/24",
            links=links["client"],
            hosts=_ADDRESSES,
            shape=link,
        )
        self.server = KernelNode(server, place / "server", folder)
        self.client = KernelNode(client, place / "client", folder)
        self.ends = NfsEnds(NfsMachine(self.client), NfsMachine(self.server), PLACE, _DISK, f"/srv/{EXPORT}")

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
            StageFailed: what they hold in memory cannot be written.
        """
        self.unmount()
        self.write_back(_END_S)
        self._server.run("end the disk", kernel_disks.end_words(), _END_S)
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
        modules = ["sh", "-c", _PROBE, "modules", *_MODULES]
        self._server.run("modules", modules)
        # Before there is a mount, settings of its modules have files.
        modules = ["sh", "-c", _PROBE, "modules", "nfsv3", "nfsv4"]
        self._client.run("modules", modules)

    def mount(self, options: tuple[str, ...]) -> None:
        """Mount the export, and make the load's directory on it.

        Raises:
            StageFailed: it cannot be mounted.
        """
        below = f"/srv/{EXPORT}" if "vers=3" in options else f"/{EXPORT}"
        if "vers=3" in options:
            self._client.run("what locks need", ["sh", "-c", _LOCKS])
        self._client.mount(f"server:{below}", PLACE, options)
        self._client.run("make a directory", ["mkdir", "-p", f"{PLACE}/load"])

    def unmount(self) -> None:
        """Unmount the export, if it is mounted; no load runs afterwards.

        Raises:
            StageFailed: it cannot be unmounted.
        """
        self.end_load()
        if self._client.mount_of(PLACE) is not None:
            self._client.unmount(PLACE)

    def end_load(self) -> None:
        """Kill what is left of a load."""
        self._client.run("end the load", ["sh", "-c", _LOADS, "loads", LOAD_MARK])

    def restart_server(self, wanted: Mapping[str, Value]) -> None:
        """Start the server's threads anew.

        Args:
            wanted: values by the setting's name.

        Raises:
            StageFailed: it does not start.
        """
        self._server.restart_server(int(wanted["nfsd.threads"]), int(wanted["nfsd.max_block_size"]))

    def write_back(self, limit_s: float) -> None:
        """Have the client write what it holds, then the server.

        Raises:
            StageFailed: it takes longer.
        """
        for one in (self._client, self._server):
            one.run("write back", ["sync"], limit_s)

    def drop_caches(self) -> None:
        """Forget what both have in memory of files.

        Raises:
            StageFailed: a node does not answer.
        """
        for one in (self._client, self._server):
            one.run("drop caches", ["sh", "-c", _DROP])

    def close(self) -> None:
        """End both."""
        for one in (self.client, self.server):
            one.close()

    @property
    def _client(self) -> NfsMachine:
        client = self.ends.client
        if client is None or not self.client.alive:
            raise StageFailed("nfs", "node client: is not up")
        return client

    @property
    def _server(self) -> NfsMachine:
        server = self.ends.server
        if server is None or not self.server.alive:
            raise StageFailed("nfs", "node server: is not up")
        return server


_LOCKS = """
set -e
mountpoint -q /var/lib/nfs || mount -t tmpfs tmpfs /var/lib/nfs
mkdir -p /var/lib/nfs/sm /var/lib/nfs/sm.bak /run/rpcbind
touch /var/lib/nfs/state
pidof rpcbind >/dev/null || rpcbind -w
pidof rpc.statd >/dev/null || rpc.statd --no-notify
"""
