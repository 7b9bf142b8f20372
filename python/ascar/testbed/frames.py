"""What goes over the line between this machine and a node that is a kernel: frames of programs there.

It also runs inside nodes, so it needs nothing but Python itself.
"""

from __future__ import annotations

import struct
from enum import IntEnum

WINDOW_BYTES = 1 << 18
"""What may be under way to a program, and from it, before its receiver has said that it has taken some."""
PIECE_BYTES = 1 << 14
LINE_BYTES = 3 << 10
"""What may be under way on the line to a node.

The buffer of a terminal there has 4096 bytes. When less than 128 of them are free, the driver of user-mode
Linux ends its interrupts, and does not begin them again.
"""
FRAME_BYTES_MAX = 1 << 21
"""More than the words of a program can be."""
_HEADER = struct.Struct(">BBLL")
_ROOM = struct.Struct(">L")
_STATUS = struct.Struct(">l")
_MARK = 0xA5


class FrameKind(IntEnum):
    """What a frame says.

    Attributes:
        HELLO: the node is up (of no program).
        START: how the end of the connection is to be taken, and the words, each behind a NUL.
        INPUT: a piece of the program's input.
        INPUT_END: the end of its input.
        CLOSE: the connection is gone.
        OUTPUT: a piece of what it wrote.
        ERRORS: a piece of what it wrote to standard error.
        ROOM: so many bytes have been taken, and others may follow.
        ENDED: its exit status; below 0: the signal that killed it.
        FAILED: why it was not started: the number of the error.
        TAKEN: the node has read so many bytes from the line (of no program).
        SIGNAL: a signal for the program; below 0: for its process group.
    """

    HELLO = 1
    START = 2
    INPUT = 3
    INPUT_END = 4
    CLOSE = 5
    OUTPUT = 6
    ERRORS = 7
    ROOM = 8
    ENDED = 9
    FAILED = 10
    TAKEN = 11
    SIGNAL = 12


CLOSES_INPUT, KILLS = b"c", b"k"
"""What the end of the connection does to a program."""


def frame(channel: int, kind: FrameKind, content: bytes = b"") -> bytes:
    """The bytes of a frame."""
    return _HEADER.pack(_MARK, kind, channel, len(content)) + content


def room(count: int) -> bytes:
    """The content of ROOM and TAKEN."""
    return _ROOM.pack(count)


def room_of(content: bytes) -> int:
    """What `room` packed.

    Raises:
        ValueError: that is not what it packs.
    """
    return int(_numbers(_ROOM, content))


def status(value: int) -> bytes:
    """The content of ENDED, FAILED and SIGNAL."""
    return _STATUS.pack(value)


def status_of(content: bytes) -> int:
    """What `status` packed.

    Raises:
        ValueError: that is not what it packs.
    """
    return int(_numbers(_STATUS, content))


def _numbers(form: struct.Struct, content: bytes) -> int:
    if len(content) != form.size:
        raise ValueError(f"a number of {len(content)} bytes")
    return int(form.unpack(content)[0])


class FrameReader:
    """Makes frames of bytes, however these come."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def feed(self, data: bytes) -> list[tuple[int, FrameKind, bytes]]:
        """Take bytes; return the frames that are whole now: channel, kind, content.

        Raises:
            ValueError: no frame has such bytes.
        """
        self._bytes += data
        found: list[tuple[int, FrameKind, bytes]] = []
        at = 0
        while len(self._bytes) - at >= _HEADER.size:
            mark, kind, channel, size = _HEADER.unpack_from(self._bytes, at)
            if mark != _MARK or size > FRAME_BYTES_MAX:
                raise ValueError(f"no frame begins with {bytes(self._bytes[at : at + _HEADER.size])!r}")
            if len(self._bytes) - at - _HEADER.size < size:
                break
            at += _HEADER.size
            found.append((channel, FrameKind(kind), bytes(self._bytes[at : at + size])))
            at += size
        del self._bytes[:at]
        return found
