"""What each kind of nodes needs in a testbed: how one is made, joined to the others, and reached."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ascar.errors import EnvironmentLacks
from ascar.testbed.namespace import NamespaceNode, Switch, address_of, lacks
from ascar.testbed.process import ProcessNode
from ascar.testbed.service import FIRST_PORT

if TYPE_CHECKING:
    from contextlib import ExitStack
    from pathlib import Path

    from ascar.testbed.file import DiskTable, NodeTable, TestbedFile
    from ascar.testbed.folder import TestbedFolder
    from ascar.testbed.machine import TestbedMachine


class NodeKind(Protocol):
    """The nodes of one kind in a testbed."""

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

    def folder(self, name: str) -> Path:
        """Where programs of a node begin, as the node sees it."""
        ...

    def address(self, name: str) -> str | None:
        """The address of a node; None: it has none of its own."""
        ...

    def serves_at(self, disk: DiskTable) -> str:
        """Where a disk of its nodes listens: unix:PATH or tcp:HOST:PORT."""
        ...


class ProcessKind:
    """See `NodeKind`: nodes of kind "process".

    Args:
        wanted: the testbed.
        place: its folder.
    """

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

    def folder(self, name: str) -> Path:
        """See `NodeKind.folder`."""
        return self._place.path / name

    def address(self, name: str) -> str | None:  # noqa: ARG002
        """See `NodeKind.address`."""
        return None

    def serves_at(self, disk: DiskTable) -> str:
        """See `NodeKind.serves_at`."""
        return f"unix:{self.folder(disk.node) / f'{disk.name}.disk.sock'}"


class NamespaceKind:
    """See `NodeKind`: nodes of kind "namespace", and the switch between them.

    Args:
        wanted: the testbed.
        place: its folder.
    """

    def __init__(self, wanted: TestbedFile, place: TestbedFolder) -> None:
        self._wanted, self._place = wanted, place
        self._numbers = {node.name: at for at, node in enumerate(wanted.node, 1)}
        self._nodes: dict[str, NamespaceNode] = {}
        self._ports: dict[str, str] = {}
        self._hosts = place.path / "hosts.txt"
        self._switch = Switch(place.path / "switch", f"{place.mark}switch:")

    def begin(self, stack: ExitStack, limit_s: float) -> None:
        """See `NodeKind.begin`."""
        missing = lacks()
        if missing is not None:
            raise EnvironmentLacks(missing)
        names = [f"{self.address(name)} {name}" for name in self._numbers]
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
        number = self._numbers[name]
        self._ports[name] = self._switch.connect(
            self._nodes[name], number, self._wanted.node[number - 1].link
        )

    def part(self, name: str) -> None:
        """See `NodeKind.part`."""
        if (port := self._ports.pop(name, None)) is not None:
            self._switch.disconnect(port)

    def folder(self, name: str) -> Path:
        """See `NodeKind.folder`."""
        return self._place.path / name

    def address(self, name: str) -> str | None:
        """See `NodeKind.address`."""
        return address_of(self._numbers[name])

    def serves_at(self, disk: DiskTable) -> str:
        """See `NodeKind.serves_at`."""
        return f"tcp:{self.address(disk.node)}:{port_of(disk, self._wanted)}"


def port_of(disk: DiskTable, wanted: TestbedFile) -> int:
    """The port of a disk, by its place among those of its node."""
    return FIRST_PORT + [one.name for one in wanted.disk if one.node == disk.node].index(disk.name)


def kind_of(kind: str, wanted: TestbedFile, place: TestbedFolder) -> NodeKind:
    """The nodes of one kind in a testbed.

    Raises:
        EnvironmentLacks: there is no such kind here.
    """
    match kind:
        case "process":
            return ProcessKind(wanted, place)
        case "namespace":
            return NamespaceKind(wanted, place)
        case _:
            raise EnvironmentLacks(
                f"node.kind = {kind!r}: this ascar has no such nodes; must be 'process' or 'namespace'"
            )
