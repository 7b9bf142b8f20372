"""A server of NFS and a client, each a node that is a kernel of its own, for one study."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ascar.catalogues.nfs import nfs
from ascar.errors import StageFailed
from ascar.systems.dirty_pages import drop_caches, write_back
from ascar.systems.nfs.machine import EXPORTS, LIMIT_S, MOUNT_S, NfsMachine, exported_in
from ascar.systems.nfs.settings import kept_of, options_of, those
from ascar.testbed import kernel_nfs
from ascar.testbed.kernel import KernelNode
from ascar.testbed.kernel_links import star
from ascar.testbed.machine import close_all

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from ascar.catalogues.nfs import NfsSetting
    from ascar.space import Value
    from ascar.systems.nfs.mounts import NfsMounted
    from ascar.testbed.kernel_parts import KernelParts

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

    Where one does not answer, or refuses what is asked, each method raises `StageFailed`.

    Args:
        place: an empty directory, in which the data of the server's disk lies.
        folder: a directory with a short path, for what else they have on this machine.
        server: what the server is, but for its network.
        client: what the client is, but for its network.

    Attributes:
        place: that directory.
        server: the node of the server.
        client: the node of the client.
        at_server: the server, by programs of its node.
        at_client: the client, by programs of its node.
    """

    def __init__(self, place: Path, folder: Path, server: KernelParts, client: KernelParts) -> None:
        links = star("server", ["client"])

        def node(parts: KernelParts) -> KernelNode:
            name, address = parts.name, f"{_ADDRESSES[parts.name]}/24"
            parts = replace(parts, address=address, links=links[name], hosts=_ADDRESSES)
            return KernelNode(parts, place / name, folder)

        self.place, self.server, self.client = place, node(server), node(client)
        self.at_server, self.at_client = NfsMachine(self.server), NfsMachine(self.client)

    @property
    def are_up(self) -> bool:
        """Whether both run."""
        return self.server.alive and self.client.alive

    def is_booted(self, words: tuple[str, ...]) -> bool:
        """Whether both run, with these words on their kernels' command lines besides their own."""
        return self.are_up and self.client.parts.kernel_words == words

    def boot(self, words: tuple[str, ...] = ()) -> None:
        """Boot both with these words, unless they are; nothing is mounted then, and the disk has its files.

        Raises:
            EnvironmentLacks: what they need is not installed.
            WorkError: they do not come up, or what they hold in memory cannot be written before.
        """
        if not self.are_up:
            self._boot()
        if not self.is_booted(words):
            self.unmount()
            self.write_back(_END_S)
            self.server.end_disks(_END_S)
            for one in (self.client, self.server):
                one.cut()
                one.parts = replace(one.parts, kernel_words=words)
            self._boot()

    def _boot(self) -> None:
        self.client.cut()  # a mount of a server that was cut would wait for it
        with ThreadPoolExecutor(2) as pool:
            for doing in [pool.submit(one.boot, _BOOT_S) for one in (self.server, self.client)]:
                doing.result()
        for one in (self.at_server, self.at_client):
            one.run("modules", ["sh", "-c", _PROBE, "modules", *_MODULES[one.node.name]])

    def mount(self, wanted: Mapping[str, Value]) -> None:
        """Set what new connections take, mount the export, and make the load's directory on it."""
        self.at_client.write(those(wanted, "connection", "client"))
        options, below = options_of(wanted, "mount"), f"/{EXPORT}"
        if "vers=3" in options:
            below = _EXPORTED
            self.at_client.run("what locks need", kernel_nfs.daemons_words())
        self.at_client.mount(f"server:{below}", PLACE, options)
        self.at_client.run("make a directory", ["mkdir", "-p", f"{PLACE}/load"])

    def unmount(self) -> None:
        """Unmount the export, if it is mounted."""
        if self.at_client.mount_of(PLACE) is not None:
            self.at_client.unmount(PLACE)

    def restart_server(self, wanted: Mapping[str, Value]) -> None:
        """Start all threads of the server anew, for what takes effect no earlier."""
        words = [str(wanted[name]) for name in ("nfsd.threads", "nfsd.max_block_size")]
        self.at_server.run("start the server", ["sh", "-c", _RESTART, "restart", *words], MOUNT_S)

    def export(self, wanted: Mapping[str, Value]) -> None:
        """Export the directory with these options, at once."""
        kept = kept_of(self._export_options(), nfs(), "export")
        options = ",".join((*options_of(wanted, "export"), *kept))
        self.at_server.run("export", ["exportfs", "-o", options, f"{CLIENTS}:{_EXPORTED}"])

    def values(self, settings: Iterable[NfsSetting]) -> dict[str, Value]:
        """The values in force by the setting's name; what a kernel lacks is missing."""
        wanted, mount = list(settings), self._mounted()
        words = {
            "mount": mount.options,
            "boot": self.at_client.read([_BOOTED])[0].split(),
            "export": self._export_options(),
        }
        said = {one.name: one.value_in(words[one.where]) for one in wanted if one.where in words}
        client = self.at_client.values((one for one in wanted if one.where == "client"), mount.device)
        server = (one for one in wanted if one.where in ("server", "disk"))
        return said | client | self.at_server.values(server, _DISK)

    def set_now(self, wanted: Mapping[str, Value]) -> None:
        """Set what takes effect at once, also what a new mount has brought back."""
        self.at_server.write(those(wanted, "dynamic", "server", "disk"), _DISK)
        self.at_client.write(those(wanted, "dynamic", "client"), self._mounted().device)

    def write_back(self, limit_s: float) -> None:
        """Have the client write what it holds, then the server."""
        for one in (self.client, self.server):
            write_back(one, limit_s)

    def drop_caches(self) -> None:
        """Forget what both have in memory of files."""
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
