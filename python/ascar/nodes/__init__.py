"""Machines that work is done on: this one, and others by OpenSSH. Guests of a testbed can be nodes too.

[[node]]
name = "server1"
kind = "ssh"                    # or "local"
host = "server1.example.org"    # as `ssh` takes it; its own file of settings applies
ascard = "/opt/ascar/ascard"    # default: in PATH there
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Protocol, runtime_checkable

from ascar.errors import StudyError

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping, Sequence

__all__ = ["Finished", "Node", "NodeFacts", "node_of"]


@dataclass(frozen=True, slots=True)
class Finished:
    """A program that has ended on a node.

    Attributes:
        status: the exit status; below 0: the signal that killed it.
        out: what it wrote, at most 16 MiB.
        err: the end of what it wrote to standard error.
    """

    status: int
    out: bytes
    err: str


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What a node is.

    Attributes:
        host: the name that it calls itself.
        kernel: the release of its kernel.
        architecture: such as x86_64.
        uid: the user that programs run as there.
        cpus: processors that are online.
        memory_bytes: the physical memory.
    """

    host: str
    kernel: str
    architecture: str
    uid: int
    cpus: int
    memory_bytes: int


@runtime_checkable
class Node(Protocol):
    """A machine. Arguments are lists of words; no shell splits or expands them."""

    @property
    def name(self) -> str:
        """What messages call it."""
        ...

    @property
    def ascard(self) -> str:
        """Its `ascard`: a path, or a name in its PATH."""
        ...

    def run(self, argv: Sequence[str], limit_s: float, stdin: bytes = b"") -> Finished:
        """Run a program to its end.

        Raises:
            EnvironmentLacks: the node cannot be reached, or the program is not there.
            StageFailed: it does not end in time; it is killed.
        """
        ...

    def words(self, argv: Sequence[str]) -> list[str]:
        """The words of the program here that runs a program there."""
        ...

    def open(self, argv: Sequence[str], stderr: IO[bytes]) -> subprocess.Popen[bytes]:
        """Start a program with pipes to its input and from its output.

        Whatever ends the connection closes its input, on which a keeper puts everything back.

        Raises:
            EnvironmentLacks: it cannot be started.
        """
        ...

    def put(self, content: bytes, path: str, mode: int = 0o600) -> None:
        """Write a file as a whole: who reads it sees the content before, or this one.

        Raises:
            EnvironmentLacks: the node cannot be reached.
            StageFailed: the file cannot be written.
        """
        ...

    def facts(self) -> NodeFacts:
        """What the node is.

        Raises:
            EnvironmentLacks: it cannot be reached, or is no Linux.
        """
        ...


def node_of(table: Mapping[str, Any]) -> Node:
    """The node that a `[[node]]` table means.

    Raises:
        StudyError: an unknown kind, or a key is wrong.
    """
    from ascar.nodes.local import LocalNode
    from ascar.nodes.ssh import SshNode

    kinds = {"local": LocalNode, "ssh": SshNode}
    kind = table.get("kind", "ssh" if "host" in table else "local")
    if kind not in kinds:
        raise StudyError(f"node.kind = {kind!r:.80}: must be one of {', '.join(kinds)}")
    return kinds[kind].of({key: value for key, value in table.items() if key != "kind"})
