"""This machine as a node."""

from __future__ import annotations

import shutil
from typing import IO, TYPE_CHECKING, Any, Self

import msgspec

from ascar.nodes.process import ends_with_us, facts_by_shell, finish, put_by_shell, start
from ascar.program.node_binary import find_ascard
from ascar.study import convert

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping, Sequence

    from ascar.nodes import Finished, NodeFacts


class LocalNode(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[[node]]` of kind "local".

    Attributes:
        name: what messages call it.
    """

    name: str = "local"

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> Self:
        """The node of a table without its kind.

        Raises:
            StudyError: a key is wrong.
        """
        return convert(table, cls, "node")

    @property
    def ascard(self) -> str:
        """See `Node.ascard`."""
        return str(find_ascard())

    def run(self, argv: Sequence[str], limit_s: float, stdin: bytes = b"") -> Finished:
        """See `Node.run`; the program is killed with us."""
        before = [] if shutil.which(argv[0]) is None else ends_with_us()
        return finish(self.name, argv, limit_s, stdin, before)

    def words(self, argv: Sequence[str]) -> list[str]:
        """See `Node.words`."""
        return list(argv)

    def open(self, argv: Sequence[str], stderr: IO[bytes]) -> subprocess.Popen[bytes]:
        """See `Node.open`."""
        return start(self.name, argv, stderr)

    def put(self, content: bytes, path: str, mode: int = 0o600) -> None:
        """See `Node.put`."""
        put_by_shell(self, content, path, mode)

    def facts(self) -> NodeFacts:
        """See `Node.facts`."""
        return facts_by_shell(self)
