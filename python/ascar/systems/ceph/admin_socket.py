"""The socket by which a daemon of Ceph is asked (AdminSocket): a command in JSON, and a zero.

The answer begins with its size.
"""

from __future__ import annotations

import json
import socket
import struct
import time
from typing import TYPE_CHECKING, Any

import msgspec

from ascar import typed
from ascar.errors import StageFailed

if TYPE_CHECKING:
    from pathlib import Path

_ANSWER_BYTES_MAX = 16 << 20


def ask_daemon(path: Path, command: str, limit_s: float, **more: Any) -> dict[str, Any]:
    """What a daemon answers to a command.

    Args:
        path: its socket, `NAME.asok`.
        command: the command, such as "perf dump".
        limit_s: seconds that it may take.
        more: the arguments of the command.

    Raises:
        StageFailed: it does not answer in time, or no object of JSON.
    """
    asked = json.dumps({"prefix": command, "format": "json", **more}).encode() + b"\0"
    deadline_s = time.monotonic() + limit_s
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(limit_s)
            connection.connect(str(path))
            connection.sendall(asked)
            (size,) = struct.unpack(">I", _take(connection, 4, deadline_s))
            if size > _ANSWER_BYTES_MAX:
                raise StageFailed("program", f"{path.stem}: answers {command!r} with {size} bytes")
            answer = _take(connection, size, deadline_s)
    except OSError as error:
        reason = error.strerror or str(error) or "no answer"
        raise StageFailed("program", f"{path.stem}: does not answer {command!r}: {reason}") from error
    return answered(answer, path.stem, command)


def answered(answer: bytes, name: str, command: str) -> dict[str, Any]:
    """What an answer tells.

    Args:
        answer: what the daemon sent.
        name: the daemon's name.
        command: what it was asked.

    Raises:
        StageFailed: it is no object of JSON.
    """
    try:
        return typed.decode(answer, dict[str, Any])
    except (msgspec.MsgspecError, UnicodeError):
        told = answer[:200].decode("utf-8", "replace").strip()
        raise StageFailed("program", f"{name}: refuses {command!r}: {told!r}") from None


def _take(connection: socket.socket, count: int, deadline_s: float) -> bytes:
    found = bytearray()
    while len(found) < count:
        left_s = deadline_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        connection.settimeout(left_s)
        piece = connection.recv(min(count - len(found), 1 << 20))
        if not piece:
            raise ConnectionError("the answer is cut off")
        found += piece
    return bytes(found)
