"""A server or a client of NFS, by programs of its node: files of its kernel, mounts, exports."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ascar.catalogues.nfs import nfs
from ascar.errors import StageFailed
from ascar.nodes.process import failing, output_of
from ascar.systems.kernel_files import KernelFiles, value_of
from ascar.systems.mount_table import MOUNTINFO
from ascar.systems.nfs.mounts import mount_at

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from ascar.catalogues.nfs import NfsSetting
    from ascar.nodes import Node
    from ascar.space import Value
    from ascar.systems.nfs.mounts import NfsMounted

EXPORTS = "/var/lib/nfs/etab"
"""What a server exports."""
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


@dataclass(frozen=True, slots=True)
class NfsMachine:
    """A machine. Where it does not answer, or refuses what is asked, each method raises `StageFailed`.

    Attributes:
        node: where programs run.
    """

    node: Node

    def read(self, files: Sequence[str]) -> list[str]:
        """What files hold, as UTF-8; empty where one cannot be read."""
        with failing("nfs"):
            texts = KernelFiles(self.node).texts([*map(Path, files)])
        return [texts[Path(file)] for file in files]

    def values(self, settings: Iterable[NfsSetting], device: str | None) -> dict[str, Value]:
        """The values in force of settings of the kernel, by name; those that it lacks are missing.

        Args:
            settings: the settings.
            device: the kernel's name of the disk, or the number of the mount.
        """
        wanted = list(settings)
        told = zip(wanted, map(value_of, self.read([one.file(device) for one in wanted])), strict=True)
        return {one.name: one.value(text) for one, text in told if text}

    def values_of(self, mount: NfsMounted | None, settings: Collection[NfsSetting]) -> dict[str, Value]:
        """The values in force of a mount's options and its client's settings; see `values`.

        Args:
            mount: the mount; None: there is none, so that only windows of new connections have values.
            settings: the settings.
        """
        if mount is None:
            return self.values((one for one in settings if one.is_window), None)
        options = {one.name: one.value_in(mount.options) for one in settings if one.where == "mount"}
        return options | self.values((one for one in settings if one.where == "client"), mount.device)

    def write(self, wanted: Mapping[str, Value], device: str | None = None) -> None:
        """Write settings of the kernel, in this order.

        Args:
            wanted: values by the setting's name.
            device: the kernel's name of the disk, or the number of the mount.
        """
        words = [
            word
            for name, value in wanted.items()
            for word in (nfs()[name].file(device), nfs()[name].text(value))
        ]
        if words:
            self.run("set", ["sh", "-c", _WRITE, "write", *words])

    def mount_of(self, place: str) -> NfsMounted | None:
        """What is mounted at a place; None: nothing is."""
        return mount_at(self.read([MOUNTINFO])[0], place)

    def mount(self, source: str, place: str, options: Collection[str]) -> None:
        """Mount an export."""
        words = ["sh", "-c", _MOUNT, "mount", ",".join(options), source, place]
        self.run(f"mount {source}", words, MOUNT_S)

    def unmount(self, place: str) -> None:
        """Unmount an export, neither by force nor lazily: what is in use stays mounted."""
        self.run(f"unmount {place}", ["sh", "-c", _UNMOUNT, "unmount", place], MOUNT_S)

    def run(self, what: str, words: Sequence[str], limit_s: float = LIMIT_S) -> str:
        """Run a program; what it writes."""
        with failing("nfs"):
            return output_of(self.node, "nfs", what, words, limit_s)


def exported_in(exports: str, directory: str) -> tuple[str, ...]:
    """The options of an export.

    Args:
        exports: the text of `EXPORTS`.
        directory: the exported directory.

    Raises:
        StageFailed: it is not exported.
    """
    for line in exports.splitlines():
        exported, _, clients = line.partition("\t")
        if exported == directory and clients.endswith(")"):
            return tuple(clients[:-1].partition("(")[2].split(","))
    raise StageFailed("nfs", f"{directory}: is not exported")
