"""Both sides of NBD with nothing in between: a client and a server that also do what no real one does."""

from __future__ import annotations

import contextlib
import queue
import socket
import struct
import threading
import time
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

GREETING = b"NBDMAGICIHAVEOPT" + struct.pack(">H", 3)
ZEROES_LEFT_OUT = struct.pack(">I", 3)
EXPORT_NAME, ABORT, LIST, STARTTLS, GO, STRUCTURED_REPLY, EXTENDED_HEADERS = 1, 2, 3, 5, 7, 8, 11
ACK, INFO, ERR_UNSUP = 1, 3, (1 << 31) + 1
READ, WRITE, DISCONNECT, FLUSH = 0, 1, 2, 3
SIZE_BYTES = 1 << 30
_REQUEST, _SIMPLE, _CHUNK = 0x25609513, 0x67446698, 0x668E33EF
_OPTION_REPLY = 0x3E889045565A9


def option(kind: int, data: bytes = b"") -> bytes:
    """An option of a client."""
    return b"IHAVEOPT" + struct.pack(">II", kind, len(data)) + data


def option_reply(kind: int, reply: int, data: bytes = b"") -> bytes:
    """An answer of a server to an option."""
    return struct.pack(">QIII", _OPTION_REPLY, kind, reply, len(data)) + data


def request(command: int, cookie: int, offset: int = 0, length: int = 0, flags: int = 0) -> bytes:
    """The header of a request."""
    return struct.pack(">IHHQQI", _REQUEST, flags, command, cookie, offset, length)


def simple_reply(cookie: int, error: int = 0) -> bytes:
    """The header of a simple reply."""
    return struct.pack(">IIQ", _SIMPLE, error, cookie)


def chunk(cookie: int, kind: int, payload: bytes = b"", *, last: bool = True) -> bytes:
    """A chunk of a structured reply."""
    return struct.pack(">IHHQI", _CHUNK, int(last), kind, cookie, len(payload)) + payload


GO_DATA = struct.pack(">IH", 0, 0)
GO_ANSWER = option_reply(GO, INFO, struct.pack(">HQH", 0, SIZE_BYTES, 1)) + option_reply(GO, ACK)


def received(sock: socket.socket, count: int) -> bytes:
    """So many bytes; fewer at the end."""
    found = b""
    while len(found) < count:
        piece = sock.recv(count - len(found))
        if not piece:
            break
        found += piece
    return found


class RawClient:
    """A client that says what it is told to.

    Args:
        path: the socket that it connects to.
    """

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(20.0)
        self.socket.connect(str(path))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        """Say this."""
        self.socket.sendall(data)

    def receive(self, count: int) -> bytes:
        """So many bytes; fewer at the end."""
        return received(self.socket, count)

    def is_closed(self) -> bool:
        """Whether the other side closes it, and says nothing more."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def drain(self) -> None:
        """Read to the end, which must come."""
        with contextlib.suppress(ConnectionResetError):
            while self.socket.recv(65536):
                pass

    def greet(self) -> None:
        """Up to the options."""
        assert self.receive(len(GREETING)) == GREETING
        self.send(ZEROES_LEFT_OUT)

    def answers(self, kind: int) -> list[tuple[int, bytes]]:
        """The answers to an option, to the last one: kind and data."""
        found: list[tuple[int, bytes]] = []
        while not found or (found[-1][0] != ACK and not found[-1][0] >> 31):
            magic, of, reply, count = struct.unpack(">QIII", self.receive(20))
            assert (magic, of) == (_OPTION_REPLY, kind)
            found.append((reply, self.receive(count)))
        return found

    def negotiate(self, *, structured: bool = False) -> None:
        """Up to the requests."""
        self.greet()
        if structured:
            self.send(option(STRUCTURED_REPLY))
            assert self.answers(STRUCTURED_REPLY)[-1][0] == ACK
        self.send(option(GO, GO_DATA))
        assert self.answers(GO)[-1][0] == ACK

    def read(self, cookie: int, length: int, offset: int = 0) -> bytes:
        """What a read brings, by a simple reply."""
        self.send(request(READ, cookie, offset, length))
        assert self.receive(16) == simple_reply(cookie)
        return self.receive(length)


@dataclass
class Asked:
    """A request that a server has got."""

    command: int
    cookie: int
    offset: int
    length: int
    payload: bytes


@dataclass
class Session:
    """One connection of a server, as what serves it sees it."""

    socket: socket.socket
    asked: list[Asked] = field(default_factory=list)

    def requests(self) -> Iterator[Asked]:
        """Requests as they come, to the end."""
        while len(header := received(self.socket, 28)) == 28:
            magic, _, command, cookie, offset, length = struct.unpack(">IHHQQI", header)
            assert magic == _REQUEST
            payload = received(self.socket, length) if command == WRITE else b""
            self.asked.append(Asked(command, cookie, offset, length, payload))
            yield self.asked[-1]

    def negotiate(self, *, structured: bool = False) -> None:
        """Up to the requests."""
        self.socket.sendall(GREETING)
        received(self.socket, 4)
        while len(header := received(self.socket, 16)) == 16:
            kind, count = struct.unpack(">8xII", header)
            received(self.socket, count)
            if kind == GO:
                self.socket.sendall(GO_ANSWER)
                return
            accepted = kind == STRUCTURED_REPLY and structured
            self.socket.sendall(option_reply(kind, ACK if accepted else ERR_UNSUP))

    def answer(self, asked: Asked) -> None:
        """By a simple reply, zeroes."""
        data = bytes(asked.length) if asked.command == READ else b""
        self.socket.sendall(simple_reply(asked.cookie) + data)


def answering(session: Session) -> None:
    """What a server does that answers each request at once."""
    session.negotiate()
    for asked in session.requests():
        if asked.command != DISCONNECT:
            session.answer(asked)


class RawServer:
    """A server that does what a function does with each connection, and then closes it.

    Args:
        path: the socket that it listens on.
        serve: is called with each connection, in a thread of its own.
    """

    def __init__(self, path: Path, serve: Callable[[Session], None]) -> None:
        self.path = path
        self.sessions: list[Session] = []
        self._serve = serve
        self._threads: list[threading.Thread] = []
        self._listener = self._bound()
        self._listener.listen(64)
        self._accepting = threading.Thread(target=self._accept)
        self._accepting.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._accepting.join()
        self._listener.close()
        for session in self.sessions:
            with contextlib.suppress(OSError):
                session.socket.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()

    def _bound(self) -> socket.socket:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(self.path))
        return listener

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            session = Session(connection)
            self.sessions.append(session)
            self._threads.append(threading.Thread(target=self._work, args=(session,)))
            self._threads[-1].start()

    def _work(self, session: Session) -> None:
        try:
            with contextlib.suppress(OSError):
                self._serve(session)
        finally:
            session.socket.close()


class CountingServer(RawServer):
    """Answers each request after a while, in their order, and counts how many it has at once.

    Args:
        path: its socket.
        delay_s: of each answer.
        asked: what is asked for on a connection, one after the other.
        answer: answers one of them.
    """

    def __init__(
        self,
        path: Path,
        delay_s: float,
        asked: Callable[[Session], Iterator[Any]],
        answer: Callable[[Session, Any], None],
    ) -> None:
        self.most = 0
        self.came_s: list[float] = []
        self._now = 0
        self._lock = threading.Lock()
        self._delay_s, self._asked, self._answer = delay_s, asked, answer
        super().__init__(path, self._count)

    @property
    def gaps_s(self) -> list[float]:
        """Between two requests, whosever they are."""
        return [later - earlier for earlier, later in pairwise(self.came_s)]

    def _count(self, session: Session) -> None:
        waiting: queue.SimpleQueue[tuple[float, Any] | None] = queue.SimpleQueue()
        answering = threading.Thread(target=self._answer_each, args=(session, waiting))
        answering.start()
        try:
            for one in self._asked(session):
                with self._lock:
                    self.came_s.append(time.monotonic())
                    self._now += 1
                    self.most = max(self.most, self._now)
                    waiting.put((self.came_s[-1] + self._delay_s, one))
        finally:
            waiting.put(None)
            answering.join()

    def _answer_each(self, session: Session, waiting: queue.SimpleQueue[tuple[float, Any] | None]) -> None:
        while (one := waiting.get()) is not None:
            time.sleep(max(0.0, one[0] - time.monotonic()))
            with self._lock:
                self._now -= 1
            with contextlib.suppress(OSError):
                self._answer(session, one[1])
