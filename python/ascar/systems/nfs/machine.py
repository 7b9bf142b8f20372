"""A server or a client of NFS, by programs of its node: files of its kernel, mounts, exports."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ascar.errors import EnvironmentLacks, StageFailed
from ascar.nodes.process import output_of
from ascar.systems.kernel_files import KernelFiles
from ascar.systems.mount_table import MOUNTINFO
from ascar.systems.nfs.mounts import mount_at

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from ascar.nodes import Node
    from ascar.systems.nfs.mounts import NfsMounted

LIMIT_S = 60.0
"""How long one program may take."""
MOUNT_S = 120.0
# Words are arguments, which no shell reads.
_WRITE = """
while [ $# -gt 0 ]; do
    printf '%s\\n' "$2" > "$1" || { echo "$1 = $2: the kernel refuses it" >&2; exit 1; }
    shift 2
done
"""
# A client of a server outlives its last mount for a moment, and a mount of then would have its connections.
_UNMOUNT = """
number=$(mountpoint -d "$1") || number=none
umount -t nfs,nfs4 -- "$1" || exit
cd /proc/fs/nfsfs || exit 0
tries=0
while [ $tries -lt 100 ]; do
    if ! grep -q " $number " volumes; then
        [ "$(wc -l < volumes)" -le 1 ] || exit 0
        [ "$(wc -l < servers)" -gt 1 ] || exit 0
    fi
    tries=$((tries + 1))
    sleep 0.05
done
"""
_MOUNT = 'mkdir -p "$3" && exec mount.nfs "$2" "$3" -o "$1"'
_RESTART = """
set -e
threads=$1 size=$2
shift 2
rpc.nfsd 0
echo "$size" > /proc/fs/nfsd/max_block_size
exec rpc.nfsd "$@" "$threads"
"""


@dataclass(frozen=True, slots=True)
class NfsMachine:
    """A machine.

    Attributes:
        node: where programs run.
    """

    node: Node

    def read(self, files: Sequence[str]) -> list[str]:
        """What files hold, as UTF-8; empty where one cannot be read.

        Raises:
            StageFailed: the machine does not answer.
        """
        try:
            texts = KernelFiles(self.node).texts([*map(Path, files)])
        except EnvironmentLacks as error:
            raise StageFailed("nfs", error.message) from error
        return [texts[Path(file)] for file in files]

    def write(self, values: Mapping[str, str]) -> None:
        """Write files of the kernel, in this order.

        Raises:
            StageFailed: the kernel refuses a value.
        """
        if values:
            words = [word for pair in values.items() for word in pair]
            self.run("set", ["sh", "-c", _WRITE, "write", *words])

    def mount_of(self, place: str) -> NfsMounted | None:
        """The mount of NFS at a place; None: there is none."""
        return mount_at(self.read([MOUNTINFO])[0], place)

    def mount(self, source: str, place: str, options: Collection[str]) -> None:
        """Mount an export.

        Raises:
            StageFailed: it cannot be mounted.
        """
        words = ["sh", "-c", _MOUNT, "mount", ",".join(options), source, place]
        self.run(f"mount {source}", words, MOUNT_S)

    def unmount(self, place: str) -> None:
        """Unmount an export, neither by force nor lazily: what is in use stays mounted.

        Raises:
            StageFailed: it is in use.
        """
        self.run(f"unmount {place}", ["sh", "-c", _UNMOUNT, "unmount", place], MOUNT_S)

    def restart_server(self, threads: int, block_bytes: int, without: Sequence[str] = ()) -> None:
        """Start all threads of the server anew.

        Args:
            threads: so many.
            block_bytes: the most that it takes in a request.
            without: options of rpc.nfsd for versions of the protocol that it does not speak.

        Raises:
            StageFailed: it does not start.
        """
        words = ["sh", "-c", _RESTART, "restart", str(threads), str(block_bytes), *without]
        self.run("start the server", words, MOUNT_S)

    def export(self, client: str, directory: str, options: Collection[str]) -> None:
        """Export a directory with these options, at once.

        Raises:
            StageFailed: the kernel refuses it.
        """
        self.run("export", ["exportfs", "-o", ",".join(options), f"{client}:{directory}"])

    def run(self, what: str, words: Sequence[str], limit_s: float = LIMIT_S) -> str:
        """Run a program; what it writes.

        Raises:
            StageFailed: it fails, or the machine does not answer.
        """
        try:
            return output_of(self.node, "nfs", what, words, limit_s)
        except EnvironmentLacks as error:
            raise StageFailed("nfs", error.message) from error
