"""A program of a node that is a kernel, over the socket that its relay listens on.

`main` is the program here that runs one there. It is started without the packages of this Python, so it needs
nothing but Python itself and the errors.
"""

from __future__ import annotations

import errno
import os
import select
import signal
import socket
import sys
import time
from contextlib import suppress
from dataclasses import dataclass

from ascar.errors import EnvironmentLacks, StageFailed
from ascar.testbed.frames import (
    CLOSES_INPUT,
    KILLS,
    PIECE_BYTES,
    WINDOW_BYTES,
    FrameKind,
    FrameReader,
    frame,
    room,
    room_of,
    status,
    status_of,
)

OUT_BYTES_MAX = 16 << 20
_ERR_BYTES_MAX = 4096
_UNREACHABLE, _NOT_FOUND = 255, 127
LOAD, LOAD_GROUP = "--load", "--load-group"
"""Before other arguments: the program is killed with this process, and it or its group is sent its SIGINT."""


class _NotThere(EnvironmentLacks):
    """There is no such program."""


@dataclass(frozen=True, slots=True)
class RemoteNode:
    """Where a node is reached.

    Attributes:
        name: what messages call it.
        socket: the path of its relay's socket.
    """

    name: str
    socket: str


class BytesPorts:
    """Input that is given, and output that is kept."""

    input_file: int | None = None

    def __init__(self, stdin: bytes, name: str) -> None:
        self._stdin = memoryview(stdin)
        self._name = name
        self.out = bytearray()
        self.err = bytearray()

    def read(self, count: int) -> bytes:
        """The next piece of the input; empty at its end."""
        piece, self._stdin = self._stdin[:count], self._stdin[count:]
        return bytes(piece)

    def write(self, data: bytes) -> None:
        """Take output.

        Raises:
            StageFailed: it is too much.
        """
        self.out += data
        if len(self.out) > OUT_BYTES_MAX:
            raise StageFailed("run", f"{self._name} writes more than {OUT_BYTES_MAX} bytes")

    def complain(self, data: bytes) -> None:
        """Take what it says on standard error."""
        self.err += data
        del self.err[:-_ERR_BYTES_MAX]


class FilePorts:
    """Input, output and errors of this process."""

    input_file: int | None = 0

    def read(self, count: int) -> bytes:
        """The next piece of the input; empty at its end."""
        return os.read(0, count)

    def write(self, data: bytes) -> None:
        """Pass on output."""
        _write_all(1, data)

    def complain(self, data: bytes) -> None:
        """Pass on what it says on standard error."""
        _write_all(2, data)


class Conversation:
    """One program of a node, from its start to its end.

    Args:
        node: where it runs.
        words: the program and its arguments.
        at_close: what the end of the connection does to it.
        ports: where its input comes from and its output goes.

    Raises:
        EnvironmentLacks: the node is not up.
    """

    def __init__(
        self, node: RemoteNode, words: list[str], at_close: bytes, ports: BytesPorts | FilePorts
    ) -> None:
        self._node, self._words, self._ports = node, words, ports
        self._line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._line.connect(node.socket)
        except OSError as error:
            self._line.close()
            raise EnvironmentLacks(
                f"node {node.name}: cannot be reached: {error.strerror or error}; boot it first"
            ) from error
        self._line.setblocking(False)
        self._reader = FrameReader()
        start = b"\0".join([at_close, *map(os.fsencode, words)])
        self._out = bytearray(frame(0, FrameKind.START, start))
        self._room = WINDOW_BYTES
        self._has_input = True

    def finish(self, limit_s: float | None = None) -> int:
        """Carry it to its end; return its status, below 0: the signal that killed it.

        Args:
            limit_s: after so long it is given up.

        Raises:
            EnvironmentLacks: the node ends, or has no such program.
            StageFailed: it cannot be started, does not end in time, or writes without end.
        """
        end_s = None if limit_s is None else time.monotonic() + limit_s
        try:
            while True:
                self._read_input()
                for kind, content in self._wait(end_s, limit_s):
                    if kind == FrameKind.ENDED:
                        return status_of(content)
                    self._take(kind, content)
        finally:
            self._line.close()

    def send_signal(self, number: int) -> None:
        """Send the program a signal, also from a handler of signals; below 0: its process group."""
        said = frame(0, FrameKind.SIGNAL, status(number))
        if not self._out:  # or it goes behind what is being sent
            with suppress(OSError):
                said = said[self._line.send(said, socket.MSG_NOSIGNAL) :]
        self._out += said

    def _wants_input(self) -> bool:
        return self._has_input and self._room > 0 and len(self._out) < PIECE_BYTES

    def _read_input(self) -> None:
        """Take input that needs no waiting."""
        while self._ports.input_file is None and self._wants_input():
            self._pass_input()

    def _pass_input(self) -> None:
        piece = self._ports.read(min(self._room, PIECE_BYTES))
        self._has_input = bool(piece)
        self._room -= len(piece)
        self._out += frame(0, FrameKind.INPUT, piece) if piece else frame(0, FrameKind.INPUT_END)

    def _wait(self, end_s: float | None, limit_s: float | None) -> list[tuple[FrameKind, bytes]]:
        """Move what can be moved; the frames that came."""
        poll = select.poll()
        poll.register(self._line, select.POLLIN | (select.POLLOUT if self._out else 0))
        if self._ports.input_file is not None and self._wants_input():
            poll.register(self._ports.input_file, select.POLLIN)
        left_ms = None if end_s is None else max(0.0, (end_s - time.monotonic()) * 1e3)
        ready = dict(poll.poll(left_ms))
        if not ready and end_s is not None and time.monotonic() >= end_s:
            late = f"{self._words[0]} does not end within {limit_s:g} s"
            raise StageFailed("run", f"node {self._node.name}: {late}")
        if self._ports.input_file is not None and self._ports.input_file in ready:
            self._pass_input()
        try:
            if ready.get(self._line.fileno(), 0) & select.POLLOUT:
                del self._out[: self._line.send(self._out, socket.MSG_NOSIGNAL)]
            if ready.get(self._line.fileno(), 0) & ~select.POLLOUT:
                return self._receive()
        except BlockingIOError:
            pass
        except (ConnectionError, ValueError) as error:
            raise self._lost() from error
        return []

    def _receive(self) -> list[tuple[FrameKind, bytes]]:
        data = self._line.recv(WINDOW_BYTES)
        if not data:
            raise self._lost()
        return [(kind, content) for _, kind, content in self._reader.feed(data)]

    def _take(self, kind: FrameKind, content: bytes) -> None:
        match kind:
            case FrameKind.OUTPUT:
                self._ports.write(content)
            case FrameKind.ERRORS:
                self._ports.complain(content)
            case FrameKind.ROOM:
                self._room += room_of(content)
            case FrameKind.FAILED:
                raise self._failed(status_of(content))
            case _:
                raise self._lost()
        if kind in (FrameKind.OUTPUT, FrameKind.ERRORS):
            self._out += frame(0, FrameKind.ROOM, room(len(content)))

    def _lost(self) -> EnvironmentLacks:
        return EnvironmentLacks(f"node {self._node.name}: cannot be reached: it ended while a program ran")

    def _failed(self, number: int) -> EnvironmentLacks | StageFailed:
        where = f"node {self._node.name}: {self._words[0]}"
        if number in (errno.ENOENT, errno.ENOTDIR):
            return _NotThere(f"{where} is not installed there")
        if number in (errno.EACCES, errno.ENOEXEC):
            return EnvironmentLacks(f"{where}: cannot be run: {os.strerror(number)}")
        return StageFailed("run", f"{where}: cannot be started: {os.strerror(number)}")


def run_there(
    node: RemoteNode, words: list[str], limit_s: float, stdin: bytes = b""
) -> tuple[int, bytes, str]:
    """Run a program of a node to its end; its status, output, and the end of its errors.

    Raises:
        EnvironmentLacks: the node is not up, or has no such program.
        StageFailed: it does not end in time, or writes without end; it is killed.
    """
    ports = BytesPorts(stdin, f"node {node.name}: {words[0]}")
    ended = Conversation(node, words, KILLS, ports).finish(limit_s)
    return ended, bytes(ports.out), ports.err.decode(errors="replace")


def main() -> None:
    """Run `PROGRAM [--load | --load-group] NAME SOCKET WORD...`.

    The words run there, with input, output and status of this process.
    """
    as_load = sys.argv.pop(1) if sys.argv[1] in (LOAD, LOAD_GROUP) else ""
    _, name, path, *words = sys.argv
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        at_close = KILLS if as_load else CLOSES_INPUT
        conversation = Conversation(RemoteNode(name, path), words, at_close, FilePorts())
        if as_load:
            number = -signal.SIGINT if as_load == LOAD_GROUP else signal.SIGINT
            signal.signal(signal.SIGINT, lambda *_: conversation.send_signal(number))
        ended = conversation.finish()
    except (EnvironmentLacks, StageFailed) as error:
        _write_all(2, f"ascar: {error}\n".encode())
        raise SystemExit(_NOT_FOUND if isinstance(error, _NotThere) else _UNREACHABLE) from None
    if ended < 0:
        if -ended not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(-ended, signal.SIG_DFL)
        os.kill(os.getpid(), -ended)
    raise SystemExit(ended)


def _write_all(file: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(file, left) :]
