"""Carries TCP connections from a node that is a kernel to a server of this machine, over a program's pipes.

The node has no network out of it. `TunnelEnd` is either end: the one in the node listens on its loopback, the
one here connects to the server, for each connection there. It also runs inside nodes, so it needs nothing but
Python itself.
"""

from __future__ import annotations

import os
import selectors
import socket
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from ascar.testbed.frames import PIECE_BYTES, WINDOW_BYTES, FrameKind, FrameReader, frame, room, room_of

if TYPE_CHECKING:
    from collections.abc import Callable

CHANNELS_MAX = 64
"""Connections at one time."""
_READ_BYTES = 1 << 16
_READ, _WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE


class _Channel:
    """One connection: its socket here, and what is under way."""

    def __init__(self, number: int, line: socket.socket) -> None:
        self.number = number
        self.line = line
        self.room = WINDOW_BYTES
        self.out = bytearray()
        self.is_closing = False
        line.setblocking(False)


class TunnelEnd:
    """One end of a tunnel: connections are channels, their bytes are frames, each within a window.

    Args:
        reads: what the other end says, a file; its end is the end of all.
        writes: where this end says something, a file.
        listener: where connections come in, at the end that has them; None: this end connects.
        connect: makes the connection of a channel that the other end has opened.
        on_hello: called when the other end says that it listens.
    """

    def __init__(
        self,
        reads: int,
        writes: int,
        listener: socket.socket | None = None,
        connect: Callable[[], socket.socket] | None = None,
        on_hello: Callable[[], None] = lambda: None,
    ) -> None:
        assert (listener is None) != (connect is None), "an end listens or connects"
        self._reads, self._writes, self._listener = reads, writes, listener
        self._connect, self._on_hello = connect, on_hello
        self._reader = FrameReader()
        self._out = bytearray()
        self._channels: dict[int, _Channel] = {}
        self._opened = 0
        for file in (reads, writes):
            os.set_blocking(file, False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(reads, _READ)
        if listener is not None:
            listener.setblocking(False)
            self._selector.register(listener, _READ)

    def serve(self) -> None:
        """Carry connections until the other end is gone, or says what none says; then all of them end."""
        try:
            if self._listener is not None:
                self._say(0, FrameKind.HELLO)
            with suppress(ConnectionError, ValueError):
                while self._turn():
                    pass
        finally:
            for channel in self._channels.values():
                channel.line.close()
            self._selector.close()

    def _turn(self) -> bool:
        """Wait for something, and move it; whether there may be more."""
        for key, events in self._selector.select():
            if key.fileobj == self._reads:
                if not self._hear():
                    return False
            elif key.fileobj == self._writes:
                self._send()
            elif key.fileobj is self._listener:
                self._accept()
            elif isinstance(key.data, _Channel) and key.data.number in self._channels:
                self._move(key.data, events)
        return True

    def _accept(self) -> None:
        assert self._listener is not None
        with suppress(BlockingIOError, ConnectionError):
            line, _ = self._listener.accept()
            if len(self._channels) >= CHANNELS_MAX:
                line.close()
                return
            self._opened += 1
            self._add(_Channel(self._opened, line))
            self._say(self._opened, FrameKind.START)

    def _open(self, number: int) -> None:
        """Connect for the other end; where nobody answers, its connection ends."""
        if self._connect is None or number in self._channels:
            raise ValueError(f"channel {number} cannot be opened")
        if len(self._channels) >= CHANNELS_MAX:  # of which some are about to end
            self._say(number, FrameKind.CLOSE)
            return
        try:
            self._add(_Channel(number, self._connect()))
        except OSError:
            self._say(number, FrameKind.CLOSE)

    def _add(self, channel: _Channel) -> None:
        self._channels[channel.number] = channel
        self._look(channel)

    def _hear(self) -> bool:
        data = os.read(self._reads, _READ_BYTES)
        for number, kind, content in self._reader.feed(data):
            if kind == FrameKind.HELLO:
                self._on_hello()
            elif kind == FrameKind.START:
                self._open(number)
            elif (channel := self._channels.get(number)) is not None:
                self._take(channel, kind, content)
        return bool(data)

    def _take(self, channel: _Channel, kind: FrameKind, content: bytes) -> None:
        match kind:
            case FrameKind.INPUT:
                channel.out += content
                if len(channel.out) > WINDOW_BYTES:
                    raise ValueError(f"channel {channel.number}: {len(channel.out)} bytes are under way")
            case FrameKind.ROOM:
                channel.room = min(WINDOW_BYTES, channel.room + room_of(content))
            case FrameKind.CLOSE:
                channel.is_closing = True  # once it has what came before
            case _:
                raise ValueError(f"an end of a tunnel is not told {kind!r}")
        self._look(channel)

    def _move(self, channel: _Channel, events: int) -> None:
        try:
            if events & _WRITE:
                count = channel.line.send(channel.out)
                del channel.out[:count]
                self._say(channel.number, FrameKind.ROOM, room(count))
            if events & _READ:
                data = channel.line.recv(min(PIECE_BYTES, channel.room))
                if not data:
                    self._end(channel)
                    return
                channel.room -= len(data)
                self._say(channel.number, FrameKind.INPUT, data)
        except BlockingIOError:
            pass
        except ConnectionError:
            self._end(channel)
            return
        self._look(channel)

    def _end(self, channel: _Channel) -> None:
        """A connection has ended here: it ends there."""
        if not channel.is_closing:
            self._say(channel.number, FrameKind.CLOSE)
        self._drop(channel)

    def _drop(self, channel: _Channel) -> None:
        with suppress(KeyError):
            self._selector.unregister(channel.line)
        channel.line.close()
        del self._channels[channel.number]

    def _look(self, channel: _Channel) -> None:
        """Wait for what it can do next."""
        if channel.is_closing and not channel.out:
            self._drop(channel)
            return
        may_read = channel.room > 0 and not channel.is_closing
        self._watch(channel.line, (_WRITE if channel.out else 0) | (_READ if may_read else 0), channel)

    def _watch(self, file: socket.socket | int, wanted: int, data: _Channel | None = None) -> None:
        number = file if isinstance(file, int) else file.fileno()
        key = self._selector.get_map().get(number)
        if key is None:
            if wanted:
                self._selector.register(file, wanted, data)
        elif not wanted:
            self._selector.unregister(file)
        elif key.events != wanted:
            self._selector.modify(file, wanted, data)

    def _say(self, number: int, kind: FrameKind, content: bytes = b"") -> None:
        self._out += frame(number, kind, content)
        self._send()

    def _send(self) -> None:
        with suppress(BlockingIOError):
            while self._out:
                del self._out[: os.write(self._writes, self._out)]
        self._watch(self._writes, _WRITE if self._out else 0)


def main() -> None:
    """Be the end in the node: `PROGRAM PORT` listens on that port of its loopback until its input ends."""
    with socket.create_server(("127.0.0.1", int(sys.argv[1]))) as listener:
        TunnelEnd(0, 1, listener).serve()
