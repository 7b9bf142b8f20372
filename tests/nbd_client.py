"""A client of network block devices, as small as tests need one; any number of its requests are in flight."""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType
    from typing import Self

READ, WRITE, DISCONNECT, FLUSH, TRIM, CACHE, WRITE_ZEROES, BLOCK_STATUS = range(8)
FUA, NO_HOLE = 1, 2
EXPORT_NAME, ABORT, LIST, STARTTLS, INFO, GO, STRUCTURED_REPLY = 1, 2, 3, 5, 6, 7, 8
ACK, REPLY_INFO = 1, 3
_PATIENCE_S = 60
ERR_UNSUP, ERR_UNKNOWN = (1 << 31) + 1, (1 << 31) + 6


class RefusedError(Exception):
    """The server's number for what it does not do."""


@dataclass(frozen=True)
class Reply:
    """What came for a request."""

    cookie: int
    error: int
    data: bytes


class NbdClient:
    """A connection, negotiated for an export; its simple replies are read by whoever waits for them."""

    def __init__(
        self, address: Path | tuple[str, int], export: str | None = "disk", timeout_s: float = 60
    ) -> None:
        """Connect. Without an export, only the greeting is exchanged."""
        if isinstance(address, tuple):
            self.socket = socket.create_connection(address, _PATIENCE_S)
        else:
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.settimeout(_PATIENCE_S)
            self.socket.connect(str(address))
        assert self.take(16) == b"NBDMAGICIHAVEOPT"
        assert struct.unpack(">H", self.take(2)) == (3,)
        self.socket.sendall(struct.pack(">I", 3))
        self.size, self._sizes = 0, dict[int, int]()
        if export is not None:
            self.go(export)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close()

    def take(self, count: int) -> bytes:
        """Read so many bytes."""
        parts = bytearray()
        while len(parts) < count:
            part = self.socket.recv(count - len(parts))
            if not part:
                raise ConnectionResetError("the server has closed the connection")
            parts += part
        return bytes(parts)

    def option(self, kind: int, data: bytes = b"") -> list[tuple[int, bytes]]:
        """Send an option; all answers to it."""
        self.socket.sendall(b"IHAVEOPT" + struct.pack(">II", kind, len(data)) + data)
        answers: list[tuple[int, bytes]] = []
        while not answers or not (answers[-1][0] == ACK or answers[-1][0] >> 31):
            magic, of, answer, length = struct.unpack(">QIII", self.take(20))
            assert (magic, of) == (0x3E889045565A9, kind)
            answers.append((answer, self.take(length)))
        return answers

    def go(self, export: str) -> None:
        """Choose an export."""
        name = export.encode()
        answers = self.option(GO, struct.pack(">I", len(name)) + name + struct.pack(">H", 0))
        if answers[-1][0] != ACK:
            raise RefusedError(answers[-1][0] & 0xFFFF)
        self.size = struct.unpack(">HQH", answers[0][1])[1]

    def send(
        self,
        command: int,
        offset: int = 0,
        length: int = 0,
        *,
        data: bytes = b"",
        flags: int = 0,
        cookie: int = 0,
    ) -> None:
        """Send a request, and wait for nothing."""
        length = len(data) or length
        self._sizes[cookie] = length if command == READ else 0
        header = struct.pack(">IHHQQI", 0x25609513, flags, command, cookie, offset, length)
        self.socket.sendall(header + data)

    def reply(self) -> Reply:
        """The next reply."""
        magic, error, cookie = struct.unpack(">IIQ", self.take(16))
        assert magic == 0x67446698
        size = self._sizes.pop(cookie)
        return Reply(cookie, error, b"" if error else self.take(size))

    def ask(
        self, command: int, offset: int = 0, length: int = 0, *, data: bytes = b"", flags: int = 0
    ) -> bytes:
        """Send a request and wait for its reply.

        Raises:
            RefusedError: the reply is an error.
        """
        self.send(command, offset, length, data=data, flags=flags)
        reply = self.reply()
        if reply.error:
            raise RefusedError(reply.error)
        return reply.data

    def read(self, offset: int, length: int) -> bytes:
        """Read."""
        return self.ask(READ, offset, length)

    def write(self, offset: int, data: bytes, flags: int = 0) -> None:
        """Write."""
        self.ask(WRITE, offset, data=data, flags=flags)

    def flush(self) -> None:
        """Flush."""
        self.ask(FLUSH)
