"""The client that checks what it was promised finds a disk that lies, and none in one that does not."""

from __future__ import annotations

import json
import socket
import struct
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest

from ascar.testing import checking_client
from ascar.testing.checking_client import BLOCK_BYTES, Promise, stamped, versions_in

if TYPE_CHECKING:
    from collections.abc import Generator

BLOCKS, SIZE = 64, 1 << 20
WORK_S = 0.6


class Liar:
    """A disk that does as it is told, but for what it is asked to do wrong.

    Args:
        path: its socket.
        lie: "": none. "drop": it cuts connections, and then loses what was not flushed. "lose": then it loses
            what was flushed as well. "twice": it answers a write twice. "mute": it answers no write.
            "other": it reads another block.
    """

    def __init__(self, path: Path, lie: str) -> None:
        self._lie, self._data, self._flushed = lie, bytearray(SIZE), bytes(SIZE)
        self._begin = bytes(SIZE)
        self._asked = 0
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(path))
        self._socket.listen()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(10)

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                one, _ = self._socket.accept()
                with one, suppress(OSError, EOFError):
                    self._greet(one)
                    while self._answer(one):
                        pass
                self._data = bytearray(self._begin if self._lie == "lose" else self._flushed)

    def _take(self, one: socket.socket, count: int) -> bytes:
        found = b""
        while len(found) < count:
            part = one.recv(count - len(found))
            if not part:
                raise EOFError
            found += part
        return found

    def _greet(self, one: socket.socket) -> None:
        one.sendall(b"NBDMAGICIHAVEOPT" + struct.pack(">H", 3))
        self._take(one, 4)
        _, option, length = struct.unpack(">QII", self._take(one, 16))
        self._take(one, length)
        info = struct.pack(">HQH", 0, SIZE, 1 | 4)
        one.sendall(struct.pack(">QIII", 0x3E889045565A9, option, 3, len(info)) + info)
        one.sendall(struct.pack(">QIII", 0x3E889045565A9, option, 1, 0))

    def _answer(self, one: socket.socket) -> bool:
        _, _, kind, cookie, offset, length = struct.unpack(">IHHQQI", self._take(one, 28))
        data = self._take(one, length) if kind == checking_client.WRITE else b""
        self._asked += 1
        if self._lie in ("drop", "lose") and self._asked % 400 == 0:
            return False
        reply = struct.pack(">IIQ", 0x67446698, 0, cookie)
        if kind == checking_client.WRITE:
            self._data[offset : offset + length] = data
            if self._lie == "mute":
                return True
            reply *= 2 if self._lie == "twice" else 1
        elif kind == checking_client.FLUSH:
            self._flushed = bytes(self._data)
        elif self._lie == "other":
            reply += self._data[(offset + BLOCK_BYTES) % SIZE :][:length]
        else:
            reply += self._data[offset : offset + length]
        one.sendall(reply)
        return True


@contextmanager
def lying(lie: str) -> Generator[Path]:
    with TemporaryDirectory(prefix="ascar-") as folder:
        path = Path(folder) / "disk.sock"
        liar = Liar(path, lie)
        try:
            yield path
        finally:
            liar.close()


def counted(path: Path, patience: str = "") -> tuple[dict[str, int], bool]:
    """What a client that works there for a while counts, and whether it finished."""
    start = [sys.executable, "-I", "-S", checking_client.__file__]
    if patience:
        code = (
            "import sys; sys.path.insert(0, sys.argv.pop(1)); import checking_client as c; "
            f"c.ANSWER_S = {patience}; sys.exit(c.main(sys.argv[1:]))"
        )
        start = [sys.executable, "-I", "-S", "-c", code, str(Path(checking_client.__file__).parent)]
    words = [*start, str(path), "disk", "1", "0", str(BLOCKS), "4"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        time.sleep(WORK_S)
        said, _ = process.communicate(timeout=60)
    lines: list[dict[str, Any]] = [json.loads(line) for line in said.splitlines()]
    return lines[-1]["counts"], lines[-1]["finished"]


@pytest.mark.parametrize("lie", ["", "drop"])
def test_an_honest_disk_breaks_no_promise(lie: str) -> None:
    with lying(lie) as path:
        counts, is_done = counted(path)
    assert is_done
    assert counts["writes"] > 100 and counts["reads"] > 50 and counts["flushes"] > 5
    assert [counts[name] for name in ("lost", "wrong", "twice", "unanswered", "refused")] == [0] * 5
    assert (counts["connections"] > 1) == (lie == "drop")


@pytest.mark.parametrize(("lie", "breach"), [("lose", "lost"), ("twice", "twice"), ("other", "wrong")])
def test_a_disk_that_lies_is_found_out(lie: str, breach: str) -> None:
    with lying(lie) as path:
        counts, _ = counted(path, patience="3")
    assert counts[breach] > 0


def test_a_write_without_an_answer_is_found_out() -> None:
    with lying("mute") as path:
        counts, is_done = counted(path, patience="0.2")
    assert counts["unanswered"] > 0 or not is_done


def test_what_a_block_may_hold() -> None:
    one = Promise()
    assert one.breach({0}) == ""
    one.sent = one.acknowledged = 3
    assert (one.breach({3}), one.breach({2}), one.breach({4}), one.breach(None)) == (
        "",
        "wrong",
        "wrong",
        "wrong",
    )
    one.flushed, one.sure = 2, False
    assert (one.breach({2}), one.breach({2, 3}), one.breach({1}), one.breach({1, 3})) == (
        "",
        "",
        "lost",
        "lost",
    )


def test_content_says_whose_it_is() -> None:
    content = stamped(7, 5, 9)
    assert (len(content), versions_in(content, 7, 5)) == (BLOCK_BYTES, {9})
    assert versions_in(bytes(BLOCK_BYTES), 7, 5) == {0}
    assert versions_in(stamped(7, 5, 8)[:512] + content[512:], 7, 5) == {8, 9}
    for other in (stamped(8, 5, 9), stamped(7, 6, 9), b"x" * BLOCK_BYTES, content[:-1] + b"x"):
        assert versions_in(other, 7, 5) is None
