"""Both sides of HTTP with nothing in between: what a server hears, and clients that say what none should."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from http.client import HTTPResponse
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from nbd_peers import RawServer, Session

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterator

HTTP = 'protocol = "http"\n'
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def request(target: str = "/", *fields: str, method: str = "GET", body: bytes = b"") -> bytes:
    """A request as clients write it; its fields besides Host come as they are given."""
    lines = [f"{method} {target} HTTP/1.1", "Host: s3.example:9000", *fields]
    return "".join(f"{line}\r\n" for line in lines).encode() + b"\r\n" + body


@dataclass(frozen=True)
class Heard:
    """A request that a server has got.

    Attributes:
        head: all bytes up to the body.
        body: its data, without what frames it.
    """

    head: bytes
    body: bytes

    @property
    def target(self) -> str:
        """What is asked for."""
        return self.head.split(b" ", 2)[1].decode()

    @property
    def fields(self) -> dict[str, str]:
        """By name in small letters; of two with one name the last."""
        lines = self.head.decode("latin-1").split("\r\n")[1:-2]
        return {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}


def head_of(stream: BinaryIO) -> bytes:
    """The bytes of a head; fewer at the end."""
    head = b""
    while line := stream.readline():
        head += line
        if line == b"\r\n":
            break
    return head


def body_of(stream: BinaryIO, fields: dict[str, str]) -> bytes | None:
    """The data that follows a head; None where it ends too early."""
    if fields.get("transfer-encoding", "").lower() != "chunked":
        count = int(fields.get("content-length", "0"))
        body = stream.read(count)
        return body if len(body) == count else None
    body = b""
    while line := stream.readline():
        count = int(line.partition(b";")[0], 16)
        if count == 0:
            head_of(stream)
            return body
        body += stream.read(count)
        if stream.read(2) != b"\r\n":
            return None
    return None


def requests(session: Session) -> Iterator[Heard]:
    """Requests as they come, to the end; one that ends too early is none."""
    with session.socket.makefile("rb") as stream:
        while head := head_of(stream):
            fields = Heard(head, b"").fields
            body = body_of(stream, fields)
            if body is None:
                return
            yield Heard(head, body)


def answering(answer: bytes = OK) -> Callable[[Session], None]:
    """What a server does that answers each request in the same way."""

    def serve(session: Session) -> None:
        for _ in requests(session):
            session.socket.sendall(answer)

    return serve


class TcpServer(RawServer):
    """A server that listens over the network, on this machine.

    Args:
        serve: is called with each connection, in a thread of its own.
        context: of TLS, where it speaks that.
    """

    def __init__(self, serve: Callable[[Session], None], context: ssl.SSLContext | None = None) -> None:
        def work(session: Session) -> None:
            if context is not None:
                session.socket = context.wrap_socket(session.socket, server_side=True)
            serve(session)

        super().__init__(Path(), work)

    @property
    def address(self) -> str:
        """As a route of a proxy names it."""
        return f"tcp:127.0.0.1:{self._listener.getsockname()[1]}"

    def _bound(self) -> socket.socket:
        listener = socket.socket()
        listener.bind(("127.0.0.1", 0))
        return listener


def answered(client: socket.socket, method: str = "GET") -> tuple[int, bytes]:
    """The status and the body of the next response; the connection is left at its end."""
    with HTTPResponse(client, method=method) as response:
        response.begin()
        return response.status, response.read()
