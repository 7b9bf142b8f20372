"""The keeper's process: finding the binary, becoming root, lines in both directions with a deadline."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import subprocess
import tempfile
import time
from typing import IO, TYPE_CHECKING, ClassVar

from ascar.errors import AscarError, EnvironmentLacks, KeeperLost
from ascar.nodes.local import LocalNode
from ascar.program.node_binary import check_roots_alone, find_ascard, find_keeper, way_to_root

if TYPE_CHECKING:
    from pathlib import Path

    from ascar.nodes import Node

REPLY_BYTES_MAX = 4 << 20
"""Longest reply; the status of a session with thousands of changes stays far below."""

STDERR_BYTES_MAX = 4096
"""How much of a lost keeper's last words is kept."""

EXIT_PATIENCE_S = 60.0
"""How long the keeper may take to put everything back and end."""


def command(ascard: Path | None, *arguments: str, node: Node | None = None) -> list[str]:
    """The command that runs `ascard keeper` as root, or with `--user` as the user.

    Args:
        ascard: the binary; None: beside this Python or in PATH, through sudo the installed one before these,
            and on a node the one that its table names.
        arguments: of `ascard keeper`.
        node: where it is to run; None: here.

    Raises:
        EnvironmentLacks: no binary, no way to become root, or the node cannot be reached.
    """
    if node is not None:
        words = [str(ascard or node.ascard), "keeper", *arguments]
        return words if "--user" in arguments or node.facts().uid == 0 else ["sudo", "-n", "--", *words]
    if os.geteuid() == 0 or "--user" in arguments:
        return [str(ascard or find_ascard()), "keeper", *arguments]
    sudo = shutil.which("sudo")
    if sudo is None:
        raise EnvironmentLacks("needs root: sudo is not installed: run this as root")
    if ascard is not None:
        check_roots_alone(ascard)
    return [sudo, "-n", "--", str(ascard or find_keeper()), "keeper", *arguments]


class KeeperProcess:
    """One running keeper and the pipes to it.

    It lives in a session of its own, so that ^C in the terminal reaches the loop alone, which then ends in
    good order.

    Attributes:
        reply_bytes_max: the longest reply that is taken.
    """

    reply_bytes_max: ClassVar[int] = REPLY_BYTES_MAX

    def __init__(self, words: list[str], node: Node | None = None) -> None:
        self._words = words
        # A file, not a pipe: nobody has to read it for the keeper to go on.
        self._stderr: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed in close()
        try:
            self._process = (node or LocalNode()).open(words, self._stderr)
        except EnvironmentLacks:
            self._stderr.close()
            raise
        self._pending = bytearray()
        self._said = ""

    @property
    def pid(self) -> int:
        """Of the process that was started: the keeper, or sudo."""
        return self._process.pid

    def send(self, line: bytes) -> None:
        """Sends one line.

        Raises:
            KeeperLost: it is gone.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line + b"\n")
            self._process.stdin.flush()
        except OSError as error:
            raise self.lost("it is gone") from error

    def receive(self, deadline: float) -> bytes:
        """The next line; `deadline` is on the monotonic clock.

        Raises:
            KeeperLost: it is gone, silent, or talks without end.
        """
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        poller = select.poll()
        poller.register(descriptor, select.POLLIN)
        while b"\n" not in self._pending:
            left_s = deadline - time.monotonic()
            if left_s <= 0 or not poller.poll(left_s * 1000):
                raise self.lost("no reply in time")
            piece = os.read(descriptor, 65536)
            if not piece:
                raise self.lost("it is gone")
            self._pending += piece
            if len(self._pending) > self.reply_bytes_max:
                raise self.lost("its reply has no end")
        line, _, self._pending = self._pending.partition(b"\n")
        return bytes(line)

    def lost(self, why: str) -> AscarError:
        """The error for a keeper that cannot be talked to any more, with its last words; ends it."""
        status = self.close()
        if self._words[0].endswith("sudo") and self._said.startswith("sudo:"):
            return EnvironmentLacks(f"needs root: {self._said}: run this as root, or {way_to_root()}")
        said = self._said or "no message"
        return KeeperLost(f"keeper: {why} (exit status {status}): {said}: see `ascar restore`")

    def close(self) -> int | None:
        """Closes the pipe, on which the keeper puts everything back and ends; returns its exit status."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(OSError):  # what could not be sent any more is not missed
            self._process.stdin.close()
        try:
            return self._process.wait(EXIT_PATIENCE_S)
        except subprocess.TimeoutExpired:
            return None
        finally:
            self._process.stdout.close()
            if not self._stderr.closed:
                self._stderr.seek(0)
                self._said = " ".join(self._stderr.read(STDERR_BYTES_MAX).decode(errors="replace").split())
                self._stderr.close()
