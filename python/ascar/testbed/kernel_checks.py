"""What tables of nodes that are kernels have to say, and to agree in, before any of them boots."""

from __future__ import annotations

from contextlib import suppress
from ipaddress import IPv4Address
from typing import TYPE_CHECKING

from ascar.errors import StudyError
from ascar.testbed.kernel_parts import DISKS_MAX, LINKS_MAX, KernelParts, NodeDisk
from ascar.units import parse_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ascar.testbed.file import DiskTable, NodeTable, TestbedFile

SIZE_BYTES = 1 << 30
"""The size of a disk whose table has none."""
_SIZE_BYTES_MIN, _SIZE_BYTES_MAX, _BLOCK_BYTES = 1 << 20, 1 << 46, 4096
_KERNELS_MAX = LINKS_MAX + 1


def check_kernels(wanted: TestbedFile) -> None:
    """Check the nodes of kind "kernel" of a testbed file, and their disks.

    Raises:
        StudyError: a key is wrong.
    """
    kernels = {node.name: node for node in wanted.node if node.kind == "kernel"}
    if len(kernels) > _KERNELS_MAX:
        raise StudyError(
            f"node: there are {len(kernels)} of kind 'kernel'; at most {_KERNELS_MAX} are allowed, "
            "for each has a link to each"
        )
    for at, disk in enumerate(wanted.disk):
        if disk.node in kernels:
            _check_disk(f"disk[{at}]", disk)
    for at, node in enumerate(wanted.node):
        if node.kind == "kernel":
            own = [disk for disk in wanted.disk if disk.node == node.name]
            if len(own) > DISKS_MAX:
                raise StudyError(f"node[{at}]: has {len(own)} disks; at most {DISKS_MAX} are allowed")
            _check_node(f"node[{at}]", node)
            _check_mounts(f"node[{at}].mounts", node, kernels)
            _check_attached(f"node[{at}].attach", node, wanted)


def check_once(key: str, names: Sequence[str]) -> None:
    """Check that no name is there twice.

    Raises:
        StudyError: one is.
    """
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise StudyError(f"{key}: {name!r} is there twice; name each once")
        seen.add(name)


def _check_disk(key: str, disk: DiskTable) -> None:
    size_bytes = SIZE_BYTES if disk.size is None else parse_size(disk.size)
    if not _SIZE_BYTES_MIN <= size_bytes <= _SIZE_BYTES_MAX or size_bytes % _BLOCK_BYTES:
        raise StudyError(
            f"{key}.size = {disk.size!r:.80}: must be from '1MiB' to '64TiB', and a multiple of "
            f"{_BLOCK_BYTES} bytes, as disks of kernels are"
        )
    if disk.place is not None and disk.file_system is None:
        raise StudyError(f"{key}.place: is where a file system is mounted; set file_system, such as 'ext4'")
    try:
        NodeDisk(disk.name, disk.scenario, size_bytes, disk.file_system, disk.place)
    except StudyError as error:
        raise StudyError(f"{key}.{error.message.removeprefix('disk.')}") from None


def _check_node(key: str, node: NodeTable) -> None:
    try:
        KernelParts(node.name, node.memory_mib, node.kernel_words)
    except StudyError as error:
        raise StudyError(f"{key}.{error.message.removeprefix('node.')}") from None
    for name, path in (("kept", node.kept), *(("visible", one) for one in node.visible)):
        if path is not None and (not path or "\0" in path):
            raise StudyError(f"{key}.{name} = {path!r:.80}: must be the path of a directory")
    check_once(f"{key}.nfs.exports", [one.name for one in node.nfs.exports] if node.nfs else [])
    check_once(f"{key}.mounts, their places", [one.place or f"/mnt/{one.export}" for one in node.mounts])
    check_once(f"{key}.attach, their devices", [one.device for one in node.attach])


def _check_mounts(key: str, node: NodeTable, kernels: dict[str, NodeTable]) -> None:
    for mount in node.mounts:
        if not _is_there(key, mount.server, kernels):
            continue
        served = kernels[mount.server].nfs
        exports = [one.name for one in served.exports] if served else []
        if mount.export not in exports:
            raise StudyError(
                f"{key}.export = {mount.export!r}: must be one that node {mount.server!r} exports by nfs; "
                f"there are {', '.join(exports) or 'none'}"
            )


def _check_attached(key: str, node: NodeTable, wanted: TestbedFile) -> None:
    kernels = {one.name: one for one in wanted.node if one.kind == "kernel"}
    for remote in node.attach:
        if not _is_there(key, remote.server, kernels):
            continue
        ports = [
            wanted.port_of(disk)
            for disk in wanted.disk
            if disk.node == remote.server and disk.file_system is None
        ]
        if remote.port not in ports:
            raise StudyError(
                f"{key}.port = {remote.port}: must be that of a disk without file_system of node "
                f"{remote.server!r}; there are {', '.join(map(str, ports)) or 'none'}"
            )


def _is_there(key: str, server: str, kernels: dict[str, NodeTable]) -> bool:
    """Whether it is the name of a node; an address may be anything's."""
    with suppress(ValueError):
        IPv4Address(server)
        return False
    if server not in kernels:
        raise StudyError(
            f"{key}.server = {server!r}: must be a node of kind 'kernel', or an address; "
            f"there are {', '.join(kernels)}"
        )
    return True
