"""Nodes that are kernels in a testbed: what they are made of, from its file."""

from __future__ import annotations

import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ascar.errors import AscarError, EnvironmentLacks
from ascar.testbed import inside
from ascar.testbed.kernel import KernelNode
from ascar.testbed.kernel_checks import SIZE_BYTES
from ascar.testbed.kernel_links import mesh
from ascar.testbed.kernel_parts import KernelParts, NodeDisk
from ascar.testbed.namespace import address_of
from ascar.units import parse_size

if TYPE_CHECKING:
    from contextlib import ExitStack

    from ascar.testbed.file import DiskTable, NodeTable, TestbedFile
    from ascar.testbed.folder import TestbedFolder
    from ascar.testbed.kernel_parts import LinkEnd
    from ascar.testbed.machine import TestbedMachine

_PREFIX = 16
_SETTLE_S = 15.0
_EXPORT = "disk"  # of all disks of such nodes


class KernelKind:
    """See `NodeKind`: nodes of kind "kernel", each linked to each.

    Args:
        wanted: the testbed.
        place: its folder.
    """

    boots_disks = True

    def __init__(self, wanted: TestbedFile, place: TestbedFolder) -> None:
        self._wanted, self._place = wanted, place
        self._links: dict[str, tuple[LinkEnd, ...]] = {}
        self._nodes: dict[str, KernelNode] = {}

    def begin(self, stack: ExitStack, limit_s: float) -> None:  # noqa: ARG002
        """See `NodeKind.begin`: what nodes leave on this machine is in the testbed's folder, by its mark."""
        self._links = mesh([node.name for node in self._wanted.node if node.kind == "kernel"])
        before, tempfile.tempdir = tempfile.tempdir, str(self._place.path)
        os.environ[inside.MARK] = f"{self._place.mark}kernel:"

        def back() -> None:
            tempfile.tempdir = before
            os.environ.pop(inside.MARK, None)

        stack.callback(back)

    def machine(self, node: NodeTable) -> TestbedMachine:
        """See `NodeKind.machine`."""
        others = (one.name for one in self._wanted.node if one.kind == "kernel" and one.name != node.name)
        parts = KernelParts(
            node.name,
            memory_mib=node.memory_mib,
            kernel_words=node.kernel_words,
            address=f"{self.address(node.name)}/{_PREFIX}",
            links=self._links[node.name],
            shape=node.link,
            hosts={name: f"{self.address(name)}/{_PREFIX}" for name in others},
            disks=tuple(self._disk(disk) for disk in self._wanted.disk if disk.node == node.name),
            nfs=node.nfs,
            mounts=node.mounts,
            attach=node.attach,
            visible=node.visible,
        )
        missing = KernelNode.missing(parts)
        if missing is not None:
            raise EnvironmentLacks(missing)
        kept = self._place.path / node.name if node.kept is None else Path(node.kept)
        self._nodes[node.name] = KernelNode(parts, kept)
        return self._nodes[node.name]

    def settle(self) -> None:
        """See `NodeKind.settle`."""
        # A disk ends when nobody has anything to write to it any more, wherever its clients are.
        for do in (KernelNode.write_out, KernelNode.end_disks):
            on = [node for node in self._nodes.values() if node.alive]
            with ThreadPoolExecutor(max(1, len(on))) as pool:
                for doing in [pool.submit(do, node, _SETTLE_S) for node in on]:
                    with suppress(AscarError):
                        doing.result()

    def join(self, name: str) -> None:
        """See `NodeKind.join`."""

    def part(self, name: str) -> None:
        """See `NodeKind.part`."""

    def folder(self, name: str) -> Path:  # noqa: ARG002
        """See `NodeKind.folder`."""
        return Path("/tmp")  # noqa: S108 - of the node

    def address(self, name: str) -> str | None:
        """See `NodeKind.address`."""
        return address_of(self._wanted.number_of(name))

    def serves_at(self, disk: DiskTable) -> str | None:
        """See `NodeKind.serves_at`."""
        if disk.file_system is not None:
            return None
        return f"tcp:{self.address(disk.node)}:{self._wanted.port_of(disk)}"

    def exports(self, disk: DiskTable) -> tuple[str, ...]:  # noqa: ARG002
        """See `NodeKind.exports`."""
        return (_EXPORT,)

    def _disk(self, disk: DiskTable) -> NodeDisk:
        return NodeDisk(
            disk.name,
            disk.scenario,
            size_bytes=SIZE_BYTES if disk.size is None else parse_size(disk.size),
            file_system=disk.file_system,
            place=disk.place,
            raid=disk.raid,
            port=self._wanted.port_of(disk) if disk.file_system is None else None,
        )
