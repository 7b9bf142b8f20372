"""What each kind of nodes needs in a testbed: how one is made, joined to the others, and reached."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ascar.errors import EnvironmentLacks
from ascar.testbed.namespace import NamespaceNode, Switch, address_of, lacks
from ascar.testbed.process import ProcessNode

if TYPE_CHECKING:
    from contextlib import ExitStack
    from pathlib import Path

    from ascar.testbed.file import DiskTable, NodeTable, TestbedFile
    from ascar.testbed.folder import TestbedFolder
    from ascar.testbed.machine import TestbedMachine


class NodeKind(Protocol):
    """The nodes of one kind in a testbed.

    Attributes:
        boots_disks: whether a node that boots starts its disks by itself.
    """

    boots_disks: bool

    def begin(self, stack: ExitStack, limit_s: float) -> None:
        """Start what they share; it ends with the stack.

        Raises:
            EnvironmentLacks: what this kind needs is not there.
            WorkError: it does not start in time.
        """
        ...

    def machine(self, node: NodeTable) -> TestbedMachine:
        """Make a node, which is off."""
        ...

    def join(self, name: str) -> None:
        """Connect a node that has booted with the others.

        Raises:
            EnvironmentLacks: the kernel cannot do what its link needs.
        """
        ...

    def part(self, name: str) -> None:
        """Take a node that is about to be cut from the others: a power cut says nothing to them."""
        ...

    def settle(self) -> None:
        """Have disks that nodes have started by themselves write their caches, before all of it ends.

        What does not do so in time is left as it is.
        """
        ...

    def folder(self, name: str) -> Path:
        """Where programs of a node begin, as the node sees it."""
        ...

    def address(self, name: str) -> str | None:
        """The address of a node; None: it has none of its own."""
        ...

    def serves_at(self, disk: DiskTable) -> str | None:
        """Where a disk of its nodes listens: unix:PATH or tcp:HOST:PORT; None: it serves its node alone."""
        ...

    def exports(self, disk: DiskTable) -> tuple[str, ...]:
        """What a disk of its nodes is called by who connects to it."""
        ...


class ProcessKind:
    """See `NodeKind`: nodes of kind "process".

    Args:
        wanted: the testbed.
        place: its folder.
    """

    boots_disks = False

    def __init__(self, wanted: TestbedFile, place: TestbedFolder) -> None:
        self._place = place
        del wanted

    def begin(self, stack: ExitStack, limit_s: float) -> None:
        """See `NodeKind.begin`."""

    def machine(self, node: NodeTable) -> TestbedMachine:
        """See `NodeKind.machine`."""
        return ProcessNode(node.name, self.folder(node.name), f"{self._place.mark}{node.name}:")

    def join(self, name: str) -> None:
        """See `NodeKind.join`."""

    def part(self, name: str) -> None:
        """See `NodeKind.part`."""

    def settle(self) -> None:
        """See `NodeKind.settle`."""

    def folder(self, name: str) -> Path:
        """See `NodeKind.folder`."""
        return self._place.path / name

    def address(self, name: str) -> str | None:  # noqa: ARG002
        """See `NodeKind.address`."""
        return None

    def serves_at(self, disk: DiskTable) -> str | None:
        """See `NodeKind.serves_at`."""
        return f"unix:{self.folder(disk.node) / f'{disk.name}.disk.sock'}"

    def exports(self, disk: DiskTable) -> tuple[str, ...]:
        """See `NodeKind.exports`."""
        return disk.exported


class NamespaceKind:
    """See `NodeKind`: nodes of kind "namespace", and the switch between them.

    Args:
        wanted: the testbed.
        place: its folder.
    """

    boots_disks = False

    def __init__(self, wanted: TestbedFile, place: TestbedFolder) -> None:
        self._wanted, self._place = wanted, place
        self._nodes: dict[str, NamespaceNode] = {}
        self._ports: dict[str, str] = {}
        self._hosts = place.path / "hosts.txt"
        self._switch = Switch(place.path / "switch", f"{place.mark}switch:")

    def begin(self, stack: ExitStack, limit_s: float) -> None:
        """See `NodeKind.begin`."""
        missing = lacks()
        if missing is not None:
            raise EnvironmentLacks(missing)
        names = [f"{self.address(node.name)} {node.name}" for node in self._wanted.node]
        self._hosts.write_text("\n".join(["127.0.0.1 localhost", *names, ""]), "utf-8")
        stack.callback(self._switch.close)
        self._switch.boot(limit_s)

    def machine(self, node: NodeTable) -> TestbedMachine:
        """See `NodeKind.machine`."""
        mark = f"{self._place.mark}{node.name}:"
        self._nodes[node.name] = NamespaceNode(node.name, self.folder(node.name), mark, self._hosts)
        return self._nodes[node.name]

    def join(self, name: str) -> None:
        """See `NodeKind.join`."""
        number = self._wanted.number_of(name)
        self._ports[name] = self._switch.connect(
            self._nodes[name], number, self._wanted.node[number - 1].link
        )

    def part(self, name: str) -> None:
        """See `NodeKind.part`."""
        if (port := self._ports.pop(name, None)) is not None:
            self._switch.disconnect(port)

    def settle(self) -> None:
        """See `NodeKind.settle`."""

    def folder(self, name: str) -> Path:
        """See `NodeKind.folder`."""
        return self._place.path / name

    def address(self, name: str) -> str | None:
        """See `NodeKind.address`."""
        return address_of(self._wanted.number_of(name))

    def serves_at(self, disk: DiskTable) -> str | None:
        """See `NodeKind.serves_at`."""
        return f"tcp:{self.address(disk.node)}:{self._wanted.port_of(disk)}"

    def exports(self, disk: DiskTable) -> tuple[str, ...]:
        """See `NodeKind.exports`."""
        return disk.exported


def kind_of(kind: str, wanted: TestbedFile, place: TestbedFolder) -> NodeKind:
    """The nodes of one kind in a testbed."""
    match kind:
        case "process":
            return ProcessKind(wanted, place)
        case "namespace":
            return NamespaceKind(wanted, place)
        case "kernel":
            from ascar.testbed.kernel_kind import KernelKind

            return KernelKind(wanted, place)
        case _:
            raise AssertionError(kind)
