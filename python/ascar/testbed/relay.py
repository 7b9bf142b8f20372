"""Carries frames between the programs here that run one of a node and the node's serial line."""

from __future__ import annotations

import os
import selectors
import signal
import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from ascar.testbed.frames import (
    CLOSES_INPUT,
    KILLS,
    LINE_BYTES,
    WINDOW_BYTES,
    FrameKind,
    FrameReader,
    frame,
    room_of,
    status_of,
)

if TYPE_CHECKING:
    from pathlib import Path

_READ_BYTES = 1 << 16
_CLIENTS_MAX = 1000
# Until what is under way to the node has become less, nobody is listened to.
_TO_NODE_BYTES = 4 * WINDOW_BYTES
# Who tells of room that it does not have gets no more.
_TO_CLIENT_BYTES_MAX = 4 << 20
# What asks a program to end.
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_READ, _BOTH = selectors.EVENT_READ, selectors.EVENT_READ | selectors.EVENT_WRITE


class _Client:
    """A connection, which is one program."""

    def __init__(self, line: socket.socket, channel: int) -> None:
        self.line = line
        self.channel = channel
        self.reader = FrameReader()
        self.out = bytearray()
        self.has_started = False
        self.has_ended = False

    def receive(self, data: bytes) -> bytes:
        """Take bytes of it; the frames for the node.

        Raises:
            ValueError: it says what no program here says, which the node would not survive.
        """
        out = bytearray()
        for _, kind, content in self.reader.feed(data):
            if kind == FrameKind.START and not self.has_started:
                at_close, _, _ = content.partition(b"\0")
                is_right = at_close in (CLOSES_INPUT, KILLS)
                self.has_started = True
            elif kind == FrameKind.ROOM:
                is_right = self.has_started and room_of(content) > 0
            elif kind == FrameKind.SIGNAL:
                is_right = self.has_started and abs(status_of(content)) in _SIGNALS
            else:
                is_right = self.has_started and kind in (FrameKind.INPUT, FrameKind.INPUT_END)
            if not is_right:
                raise ValueError(f"a program here does not say {kind!r}")
            out += frame(self.channel, kind, content)
        return bytes(out)


class Relay:
    """A thread that listens on a socket for programs of one node, for as long as its kernel runs.

    Args:
        path: the socket, which only this user may open.
        to_node: a pipe that the serial line reads from; the relay closes it.
        from_node: a pipe that the serial line writes to; the relay closes it.
        pid: the kernel's process.

    Attributes:
        is_up: set when the node has said that it is up.
        has_ended: set when the kernel has ended, or the relay.
    """

    def __init__(self, path: Path, to_node: int, from_node: int, pid: int) -> None:
        self.is_up, self.has_ended = threading.Event(), threading.Event()
        self._path, self._to_node, self._from_node = path, to_node, from_node
        self._clients: dict[int, _Client] = {}
        self._channel = 0
        self._reader = FrameReader()
        self._out = bytearray()
        self._under_way = 0
        self._stop, self._stopped = socket.socketpair()
        self._process = os.pidfd_open(pid)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(path))
        path.chmod(0o600)
        self._listener.listen(64)
        for one in (to_node, from_node):
            os.set_blocking(one, False)
        self._listener.setblocking(False)
        self._selector = selectors.DefaultSelector()
        for one in (self._listener, self._stopped, self._process, from_node):
            self._selector.register(one, _READ)
        self._thread = threading.Thread(target=self._run, name=f"relay {path.name}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End it; programs of the node that still run are told that it is gone."""
        self._stop.close()
        self._thread.join()

    def _run(self) -> None:
        try:
            # An end of the line, or a node that sends no frames, is the end of the node for who speaks to it.
            with suppress(ValueError, ConnectionError, BrokenPipeError):
                while self._turn():
                    pass
        finally:
            self.has_ended.set()
            self._path.unlink(missing_ok=True)
            for client in self._clients.values():
                client.line.close()
            self._selector.close()
            self._listener.close()
            self._stopped.close()
            for one in (self._process, self._to_node, self._from_node):
                os.close(one)

    def _turn(self) -> bool:
        """Wait for something, and move it; whether there may be more."""
        for key, events in self._selector.select():
            if key.fileobj in (self._stopped, self._process):
                return False
            if key.fileobj == self._from_node:
                if not self._hear_node():
                    return False
            elif key.fileobj == self._listener:
                self._accept()
            elif isinstance(key.data, _Client) and key.data.channel in self._clients:
                self._serve(key.data, events)
        return True

    def _accept(self) -> None:
        with suppress(BlockingIOError, ConnectionError):
            line, _ = self._listener.accept()
            if len(self._clients) >= _CLIENTS_MAX:
                line.close()
                return
            line.setblocking(False)
            self._channel += 1
            client = _Client(line, self._channel)
            self._clients[client.channel] = client
            self._selector.register(line, _READ, client)

    def _serve(self, client: _Client, events: int) -> None:
        try:
            if events & selectors.EVENT_WRITE:
                del client.out[: client.line.send(client.out)]
            if events & selectors.EVENT_READ and len(self._out) < _TO_NODE_BYTES:
                data = client.line.recv(_READ_BYTES)
                if not data:
                    self._drop(client)
                    return
                self._out += client.receive(data)
        except BlockingIOError:
            pass
        except (ConnectionError, ValueError):
            self._drop(client)
            return
        self._look(client)
        self._send_to_node()

    def _hear_node(self) -> bool:
        data = os.read(self._from_node, _READ_BYTES)
        if not data:
            return False
        for channel, kind, content in self._reader.feed(data):
            if kind == FrameKind.HELLO:
                self.is_up.set()
            elif kind == FrameKind.TAKEN:
                self._under_way -= room_of(content)
                self._send_to_node()
            elif (client := self._clients.get(channel)) is not None:
                client.out += frame(0, kind, content)
                client.has_ended |= kind in (FrameKind.ENDED, FrameKind.FAILED)
                if len(client.out) > _TO_CLIENT_BYTES_MAX:
                    self._drop(client)
                else:
                    self._look(client)
        return True

    def _look(self, client: _Client) -> None:
        """Wait for what it can do next."""
        wanted = (0 if len(self._out) >= _TO_NODE_BYTES else _READ) | (_BOTH - _READ if client.out else 0)
        key = self._selector.get_map().get(client.line.fileno())
        if key is None:
            if wanted:
                self._selector.register(client.line, wanted, client)
        elif not wanted:
            self._selector.unregister(client.line)
        elif key.events != wanted:
            self._selector.modify(client.line, wanted, client)

    def _drop(self, client: _Client) -> None:
        """Forget a connection; a program that still runs is told so."""
        with suppress(KeyError):
            self._selector.unregister(client.line)
        client.line.close()
        del self._clients[client.channel]
        if not client.has_ended:
            self._out += frame(client.channel, FrameKind.CLOSE)
            self._send_to_node()

    def _send_to_node(self) -> None:
        was_full = len(self._out) >= _TO_NODE_BYTES
        with suppress(BlockingIOError):
            # So little that the pipe always has room for it.
            while self._out and self._under_way < LINE_BYTES:
                count = os.write(self._to_node, self._out[: LINE_BYTES - self._under_way])
                del self._out[:count]
                self._under_way += count
        if was_full and len(self._out) < _TO_NODE_BYTES:
            for client in self._clients.values():
                self._look(client)
