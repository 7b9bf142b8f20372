"""Both sides of RESP with nothing in between: a client, and a server that does what it is told to."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from nbd_peers import CountingServer, Session

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator
    from pathlib import Path
    from typing import BinaryIO


def command(*words: str | bytes) -> bytes:
    """A command as a client says it."""
    values = [word.encode() if isinstance(word, str) else word for word in words]
    return b"*%d\r\n" % len(values) + b"".join(b"$%d\r\n%b\r\n" % (len(it), it) for it in values)


@dataclass(frozen=True)
class Refusal:
    """An error that a server has told."""

    text: str


@dataclass(frozen=True)
class Push:
    """What a server says by itself, in RESP3."""

    values: list[Any]


def value(stream: BinaryIO) -> Any:
    """The next value of a stream.

    Raises:
        EOFError: it has ended.
    """
    line = stream.readline()
    if not line.endswith(b"\r\n"):
        raise EOFError
    sign, text = line[:1], line[1:-2]
    match sign:
        case b"+":
            return text.decode()
        case b"-":
            return Refusal(text.decode())
        case b":":
            return int(text)
        case b"$":
            return None if text == b"-1" else stream.read(int(text) + 2)[:-2]
        case b"*":
            return None if text == b"-1" else [value(stream) for _ in range(int(text))]
        case b">":
            return Push([value(stream) for _ in range(int(text))])
        case b"%":
            return {value(stream): value(stream) for _ in range(int(text))}
        case b"_":
            return None
        case _:
            raise AssertionError(line)


class RespClient:
    """A client that says what it is told to.

    Args:
        place: the socket that it connects to, or a port of 127.0.0.1.
        tls: what it believes and shows.
    """

    def __init__(self, place: Path | int, tls: ssl.SSLContext | None = None) -> None:
        if isinstance(place, int):
            self.socket = socket.create_connection(("127.0.0.1", place), 20.0)
        else:
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.settimeout(20.0)
            try:
                self.socket.connect(str(place))
            except OSError:
                self.socket.close()
                raise
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_hostname="localhost")
        self.stream = self.socket.makefile("rb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Leave."""
        self.stream.close()
        self.socket.close()

    def send(self, data: bytes) -> None:
        """Say this."""
        self.socket.sendall(data)

    def say(self, *words: str | bytes) -> None:
        """Ask, and read nothing."""
        self.send(command(*words))

    def next(self) -> Any:
        """What comes next."""
        return value(self.stream)

    def ask(self, *words: str | bytes) -> Any:
        """Ask, and read what comes next."""
        self.say(*words)
        return self.next()

    def is_closed(self) -> bool:
        """Whether the other side closes it, and says nothing more."""
        try:
            return self.stream.read(1) == b""
        except ConnectionResetError:
            return True

    def says_nothing(self, for_s: float = 0.2) -> bool:
        """Whether nothing comes for a while."""
        self.socket.settimeout(for_s)
        try:
            self.socket.recv(1, socket.MSG_PEEK)
        except TimeoutError:
            return True
        finally:
            self.socket.settimeout(20.0)
        return False


def commands(session: Session) -> Iterator[list[bytes]]:
    """What a client asks for, to its end."""
    with session.socket.makefile("rb") as stream:
        while True:
            try:
                asked = value(stream)
            except (EOFError, ConnectionResetError):
                return
            yield asked


def counting(path: Path, delay_s: float) -> CountingServer:
    """A server that counts how many commands it has at once."""
    return CountingServer(path, delay_s, commands, lambda session, _: session.socket.sendall(b"+OK\r\n"))
