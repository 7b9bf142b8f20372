"""Another machine, by OpenSSH: keys, jump hosts and known hosts are those of its own files of settings."""

from __future__ import annotations

import re
import shlex
import shutil
from typing import IO, TYPE_CHECKING, Any, Self

import msgspec

from ascar.errors import EnvironmentLacks, StudyError
from ascar.nodes.process import ends_with_us, facts_by_shell, finish, put_by_shell, start
from ascar.study import convert, within

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping, Sequence

    from ascar.nodes import Finished, NodeFacts

_HOST = re.compile(r"[A-Za-z0-9_\[][A-Za-z0-9._:@\[\]%-]{0,254}")
_UNREACHABLE, _NOT_FOUND = 255, 127
# Nobody can type a password, and a connection that is silent for 15 s is lost: then the far keeper restores.
_OPTIONS = ("BatchMode=yes", "ServerAliveInterval=5", "ServerAliveCountMax=3", "LogLevel=ERROR")


class SshNode(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[[node]]` of kind "ssh".

    Attributes:
        host: the host as `ssh` takes it: a name of its settings, HOST or USER@HOST.
        name: what messages call it; the default is the host.
        port: the port; None: as its settings say.
        settings: a file of settings (ssh_config) instead of the user's own.
        connect_s: seconds that connecting may take.
        ascard: the node's `ascard`, which changes it and puts it back.
    """

    host: str
    name: str = ""
    port: int | None = None
    settings: str | None = None
    connect_s: int = 10
    ascard: str = "ascard"

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> Self:
        """The node of a table without its kind.

        Raises:
            StudyError: a key is wrong.
        """
        node = convert(table, cls, "node")
        if not _HOST.fullmatch(node.host):
            raise StudyError(f"node.host = {node.host!r:.80}: must be a host as `ssh` takes it")
        if node.port is not None:
            within("node.port", node.port, 1, 65_535)
        within("node.connect_s", node.connect_s, 1, 600)
        return msgspec.structs.replace(node, name=node.name or node.host)

    def run(self, argv: Sequence[str], limit_s: float, stdin: bytes = b"") -> Finished:
        """See `Node.run`."""
        before = [] if shutil.which("ssh") is None else ends_with_us()
        done = finish(self.name, self.words(argv), limit_s, stdin, before)
        if done.status == _UNREACHABLE:
            last = (done.err.strip().splitlines() or ["no message"])[-1]
            raise EnvironmentLacks(f"node {self.name}: cannot be reached: {last[:300]}")
        if done.status == _NOT_FOUND:
            raise EnvironmentLacks(f"node {self.name}: {argv[0]} is not installed there")
        return done

    def open(self, argv: Sequence[str], stderr: IO[bytes]) -> subprocess.Popen[bytes]:
        """See `Node.open`."""
        return start(self.name, self.words(argv), stderr)

    def put(self, content: bytes, path: str, mode: int = 0o600) -> None:
        """See `Node.put`."""
        put_by_shell(self, content, path, mode)

    def facts(self) -> NodeFacts:
        """See `Node.facts`."""
        return facts_by_shell(self)

    def words(self, argv: Sequence[str]) -> list[str]:
        """See `Node.words`: the `ssh` that runs it, whose far shell gets each word in quotes."""
        options = [*_OPTIONS, f"ConnectTimeout={self.connect_s}"]
        words = ["ssh", "-T", *(word for one in options for word in ("-o", one))]
        words += [] if self.settings is None else ["-F", self.settings]
        words += [] if self.port is None else ["-p", str(self.port)]
        return [*words, "--", self.host, shlex.join(argv)]
