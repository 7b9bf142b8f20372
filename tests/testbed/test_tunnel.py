"""Connections out of a node, over two pipes: what is said arrives, and what ends ends."""

from __future__ import annotations

import os
import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from ascar.testbed.frames import WINDOW_BYTES, FrameKind, frame
from ascar.testbed.tunnel import CHANNELS_MAX, TunnelEnd

if TYPE_CHECKING:
    from collections.abc import Iterator

LIMIT_S = 30.0


class Both:
    """Both ends of a tunnel in this process, and a server behind it."""

    def __init__(self) -> None:
        self.server = socket.create_server(("127.0.0.1", 0))
        self.entrance = socket.create_server(("127.0.0.1", 0))
        self.target = self.server.getsockname()
        self.hello = threading.Event()
        # As pipes, but that one end can be ended while a thread still uses the other.
        self.to_there, self.to_here = socket.socketpair(), socket.socketpair()
        (there_reads, here_writes), (here_reads, there_writes) = self.to_there, self.to_here
        there = TunnelEnd(there_reads.fileno(), there_writes.fileno(), self.entrance)
        here = TunnelEnd(
            here_reads.fileno(), here_writes.fileno(), connect=self._connect, on_hello=self.hello.set
        )
        self.threads = [threading.Thread(target=one.serve, daemon=True) for one in (there, here)]
        for one in self.threads:
            one.start()

    def _connect(self) -> socket.socket:
        return socket.create_connection(self.target, LIMIT_S)

    def client(self) -> socket.socket:
        return socket.create_connection(self.entrance.getsockname(), LIMIT_S)

    def accepted(self) -> socket.socket:
        self.server.settimeout(LIMIT_S)
        line, _ = self.server.accept()
        line.settimeout(LIMIT_S)
        return line

    def say_there(self, data: bytes) -> None:
        """What the end here is told."""
        self.to_here[1].sendall(data)

    def close_there(self) -> None:
        """The end in the node is gone."""
        self.to_here[1].shutdown(socket.SHUT_WR)

    def close_here(self) -> None:
        """The end here is gone."""
        self.to_there[1].shutdown(socket.SHUT_WR)

    def end(self) -> None:
        self.close_there()
        self.close_here()
        for one in self.threads:
            one.join(LIMIT_S)
            assert not one.is_alive()
        for one in (*self.to_there, *self.to_here, self.server, self.entrance):
            one.close()


@pytest.fixture
def both() -> Iterator[Both]:
    made = Both()
    assert made.hello.wait(LIMIT_S)
    yield made
    made.end()


def received(line: socket.socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count and (piece := line.recv(1 << 16)):
        data += piece
    return bytes(data)


def test_bytes_arrive_both_ways_beside_others(both: Both) -> None:
    clients = [both.client() for _ in range(3)]
    content = os.urandom(3 * WINDOW_BYTES)
    for client in clients:
        server = both.accepted()
        sends = threading.Thread(target=client.sendall, args=(content,))
        sends.start()
        assert received(server, len(content)) == content
        sends.join(LIMIT_S)
        server.sendall(content[::-1])
        server.close()
        assert received(client, 2 * len(content)) == content[::-1], "all of it before the end"
        client.close()


def test_one_that_nobody_reads_holds_up_no_other(both: Both) -> None:
    slow, unread = both.client(), both.accepted()
    slow.setblocking(False)
    with suppress(BlockingIOError):
        while True:
            slow.send(bytes(1 << 16))
    with both.client() as client, both.accepted() as server:
        client.sendall(b"there")
        assert received(server, 5) == b"there"
    slow.close()
    unread.close()


def test_the_end_of_either_side_ends_the_other(both: Both) -> None:
    with both.client() as client, both.accepted() as server:
        client.close()
        assert server.recv(1) == b""
    with both.client() as client, both.accepted() as server:
        server.close()
        assert client.recv(1) == b""


def test_a_server_that_is_not_there_ends_the_connection_and_may_come_back(both: Both) -> None:
    target, both.target = both.target, ("127.0.0.1", 1)
    with both.client() as client:
        assert client.recv(1) == b""
    both.target = target
    with both.client() as client, both.accepted() as server:
        client.sendall(b"again")
        assert received(server, 5) == b"again"


def test_more_connections_than_allowed_are_closed(both: Both) -> None:
    clients = [both.client() for _ in range(CHANNELS_MAX)]
    servers = [both.accepted() for _ in clients]
    with both.client() as client:
        assert client.recv(1) == b""
    for one in (*clients, *servers):
        one.close()


@pytest.mark.parametrize(
    "said",
    [
        b"no frame has such bytes",
        frame(1, FrameKind.START),
        frame(1, FrameKind.OUTPUT, b"x"),
        frame(1, FrameKind.ROOM, b"x"),
    ],
)
def test_what_no_end_says_ends_all(both: Both, said: bytes) -> None:
    with both.client() as client, both.accepted() as server:
        client.sendall(b"x")
        assert server.recv(1) == b"x"
        both.say_there(said)
        assert server.recv(1) == b""
        both.threads[1].join(LIMIT_S)
        assert not both.threads[1].is_alive()


def test_the_end_of_the_pipe_ends_all(both: Both) -> None:
    with both.client() as client, both.accepted() as server:
        both.close_there()
        assert server.recv(1) == b""
        both.close_here()
        assert client.recv(1) == b""
