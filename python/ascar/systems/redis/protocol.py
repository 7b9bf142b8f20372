"""Requests to a Redis server over its socket (Redis documentation, "RESP protocol", version 2)."""

from __future__ import annotations

import socket
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from ascar.errors import StageFailed

if TYPE_CHECKING:
    from pathlib import Path
    from typing import BinaryIO

Reply = str | int | None | list["Reply"]
_BULK_BYTES_MAX = 64 * 2**20
_ITEMS_MAX = 1_000_000
_DEPTH_MAX = 8


class RefusedCommand(StageFailed):
    """The server answered with an error.

    Args:
        command: the beginning of the command.
        said: what the server said.
    """

    def __init__(self, command: str, said: str) -> None:
        super().__init__("change", f"{command}: {said}"[:400])
        self.command, self.said = command, said


class _ErrorReply(Exception):
    """An error in an answer, as the server put it."""


class _Connected(Protocol):
    def settimeout(self, value: float | None, /) -> None: ...


def ask(path: Path, words: tuple[str, ...], limit_s: float) -> Reply:
    """The answer to one command.

    Args:
        path: the server's socket.
        words: the command and its arguments.
        limit_s: seconds that it may take.

    Raises:
        RefusedCommand: the server answers with an error.
        StageFailed: it does not answer, or not in its protocol.
    """
    what = " ".join(words)[:80]
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(limit_s)
            connection.connect(str(path))
            with connection.makefile("rb") as stream:
                return exchanged(connection, stream, words, limit_s, what)
    except (OSError, ValueError) as error:
        raise _unanswered(what, limit_s, error) from error


def exchanged(
    connection: socket.socket, stream: BinaryIO, words: tuple[str, ...], limit_s: float, what: str
) -> Reply:
    """The answer to one command over a connection, which is of no use any more once this has failed.

    Args:
        connection: the connection.
        stream: what is read from it.
        words: the command and its arguments.
        limit_s: seconds that it may take.
        what: the command for people.

    Raises:
        RefusedCommand: the server answers with an error; the connection stays usable.
        StageFailed: it does not answer, or not in its protocol.
    """
    try:
        connection.settimeout(limit_s)
        connection.sendall(request(words))
        return _reply(stream, connection, time.monotonic() + limit_s)
    except _ErrorReply as error:
        raise RefusedCommand(what, str(error)) from None
    except (OSError, ValueError) as error:
        raise _unanswered(what, limit_s, error) from error


def _unanswered(what: str, limit_s: float, error: Exception) -> StageFailed:
    if isinstance(error, TimeoutError):
        return StageFailed("program", f"the server does not answer within {limit_s:g} s: {what}")
    return StageFailed("program", f"the server does not answer: {what}: {error}"[:400])


def request(words: tuple[str, ...]) -> bytes:
    """A command as the server reads it."""
    parts = [f"*{len(words)}\r\n".encode()]
    for word in words:
        data = word.encode("utf-8", "surrogateescape")
        parts.append(b"$%d\r\n%b\r\n" % (len(data), data))
    return b"".join(parts)


def _reply(stream: BinaryIO, connection: _Connected, deadline_s: float, depth: int = 0) -> Reply:
    left_s = deadline_s - time.monotonic()
    if left_s <= 0:
        raise TimeoutError
    with suppress(OSError):
        connection.settimeout(left_s)
    line = stream.readline(65_536)
    if not line.endswith(b"\r\n"):
        raise ValueError("the connection ended")
    mark, text = line[:1], line[1:-2].decode("utf-8", "surrogateescape")
    match mark:
        case b"+":
            return text
        case b"-":
            raise _ErrorReply(text)
        case b":":
            return int(text)
        case b"$":
            return _bulk(stream, int(text))
        case b"*" if int(text) <= _ITEMS_MAX and depth < _DEPTH_MAX:
            return [_reply(stream, connection, deadline_s, depth + 1) for _ in range(int(text))]
        case _:
            raise ValueError(f"it is not an answer of Redis: {line[:40]!r}")


def _bulk(stream: BinaryIO, length: int) -> str | None:
    if length < 0:
        return None
    if length > _BULK_BYTES_MAX:
        raise ValueError(f"an answer of {length} bytes")
    data = stream.read(length + 2)
    if len(data) != length + 2:
        raise ValueError("the connection ended")
    return data[:-2].decode("utf-8", "surrogateescape")
