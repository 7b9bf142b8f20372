"""A client of a network block device that is cut off again and again, and checks all that it was promised.

    python checking_client.py SOCKET EXPORT NUMBER OFFSET BLOCKS DEPTH

It writes, reads and flushes blocks of its own part of the disk until standard input ends, connects anew
whenever its connection ends, and then flushes and reads everything once more. Each second it prints a line of
JSON, `{"second": S, "latencies": {BUCKET: COUNT}}`, and at the end one of `CheckingClient.counts`.

What was acknowledged and then flushed must stay: a block never has an older version again. What was only
acknowledged may be lost with the connection. Every request is answered once, unless its connection ends.

It imports nothing but the standard library: many of them start at once, and each is a stream of its own.
"""

from __future__ import annotations

import contextlib
import json
import math
import random
import select
import socket
import struct
import sys
import time

READ, WRITE, FLUSH = 0, 1, 3
BLOCK_BYTES = 4096
SECTOR_BYTES = 512
BUCKETS_A_DOUBLING = 4
"""Latencies are counted in buckets: the n-th ends at 2^(n / 4) us."""
ANSWER_S = 60.0
"""A request that waits so long for its answer, on a connection that is open, was not answered."""
_CONNECT_S = 0.05
_STAMP = struct.Struct(">8sIIQ")
_MAGIC = b"ascarblk"
_FLUSH_EVERY = 24


class ConnectionOverError(Exception):
    """The connection has ended: the one that it was, whoever ended it."""


def stamped(client: int, block: int, version: int) -> bytes:
    """The content of a block: each sector says whose it is, and which version."""
    head = _STAMP.pack(_MAGIC, client, block, version)
    return (head + bytes([version & 0xFF]) * (SECTOR_BYTES - len(head))) * (BLOCK_BYTES // SECTOR_BYTES)


def versions_in(content: bytes, client: int, block: int) -> set[int] | None:
    """The versions that the sectors of a block have, 0 where none was written; None: it is no block."""
    found: set[int] = set()
    for at in range(0, BLOCK_BYTES, SECTOR_BYTES):
        sector = content[at : at + SECTOR_BYTES]
        if not any(sector):
            found.add(0)
            continue
        magic, whose, which, version = _STAMP.unpack_from(sector)
        if (magic, whose, which) != (_MAGIC, client, block):
            return None
        if sector != stamped(client, block, version)[:SECTOR_BYTES]:
            return None
        found.add(version)
    return found


class Promise:
    """What a block may hold.

    Attributes:
        flushed: the version below which it may never be again.
        acknowledged: the last version whose write was answered.
        sent: the last version that was sent.
        sure: whether it holds the acknowledged version: no connection has ended over a write since then.
    """

    def __init__(self) -> None:
        self.flushed = self.acknowledged = self.sent = 0
        self.sure = True

    def breach(self, versions: set[int] | None) -> str:
        """What content is wrong in: "lost", "wrong", or "" where it is as promised."""
        if versions is None or max(versions) > self.sent:
            return "wrong"
        if min(versions) < self.flushed:
            return "lost"
        if self.sure and versions != {self.acknowledged}:
            return "wrong"
        return ""


class CheckingClient:
    """See the module.

    Args:
        path: the socket of the disk, or of its proxy.
        export: the name of the export.
        number: the number of the client, which its blocks carry.
        offset: the byte at which its part begins.
        blocks: the number of its blocks.
        depth: the requests that it keeps in flight.

    Attributes:
        counts: what it did, and what was wrong: "lost" (an acknowledged and flushed write is gone), "wrong"
            (other content than was ever written there), "twice" (an answer to what was not asked or was
            answered already), "unanswered" (no answer within `ANSWER_S` on an open connection).
    """

    def __init__(self, path: str, export: str, number: int, *, offset: int, blocks: int, depth: int) -> None:
        self._path, self._export, self._number = path, export, number
        self._offset, self._depth = offset, depth
        self._promises = [Promise() for _ in range(blocks)]
        self._random = random.Random(number)  # noqa: S311  # no secret
        self._socket: socket.socket | None = None
        self._waiting: dict[int, tuple[int, int, int, float]] = {}  # kind, block, version, begun
        self._at_flush: dict[int, list[int]] = {}
        self._received = bytearray()
        self._cookie = 0
        self._second, self._latencies = int(time.time()), dict[int, int]()
        names = ("writes", "reads", "flushes", "refused", "connections", "lost", "wrong", "twice")
        self.counts = dict.fromkeys((*names, "unanswered"), 0)

    def work(self) -> None:
        """Go on until standard input ends."""
        while not select.select([sys.stdin], [], [], 0)[0]:
            try:
                self._connect()
                while not select.select([sys.stdin], [], [], 0)[0]:
                    while len(self._waiting) < self._depth:
                        self._ask_something()
                    self._answer()
            except (OSError, ConnectionOverError):
                self._cut_off()
                time.sleep(_CONNECT_S)
            self._tell()

    def finish(self, limit_s: float) -> bool:
        """Flush, and read all of it; whether that came to an end within the time."""
        end_s = time.monotonic() + limit_s
        left = list(range(len(self._promises)))
        while time.monotonic() < end_s:
            try:
                if self._socket is None:
                    self._connect()
                while self._waiting:
                    self._answer()
                self._flush()
                while self._waiting:
                    self._answer()
                while left or self._waiting:
                    while left and len(self._waiting) < self._depth:
                        self._send(READ, left[-1])
                        left.pop()
                    self._answer()
            except (OSError, ConnectionOverError):
                left = list(range(len(self._promises)))
                self._cut_off()
                time.sleep(_CONNECT_S)
            else:
                return True
        return False

    def _ask_something(self) -> None:
        draw = self._random.random()
        busy = {block for kind, block, _, _ in self._waiting.values() if kind != FLUSH}
        block = self._random.randrange(len(self._promises))
        if draw < 1 / _FLUSH_EVERY or block in busy:  # two of one block would leave open which was first
            self._flush()
        elif draw < 0.7:
            self._send(WRITE, block)
        else:
            self._send(READ, block)

    def _flush(self) -> None:
        acknowledged = [one.acknowledged if one.sure else 0 for one in self._promises]
        self._send(FLUSH, 0)
        self._at_flush[self._cookie] = acknowledged

    def _send(self, kind: int, block: int) -> None:
        promise, data, length = self._promises[block], b"", 0
        if kind == WRITE:
            promise.sent += 1
            data = stamped(self._number, block, promise.sent)
        if kind != FLUSH:
            length = BLOCK_BYTES
        self._cookie += 1
        self._waiting[self._cookie] = kind, block, promise.sent, time.monotonic()
        where = 0 if kind == FLUSH else self._offset + block * BLOCK_BYTES
        header = struct.pack(">IHHQQI", 0x25609513, 0, kind, self._cookie, where, length)
        assert self._socket is not None
        self._socket.sendall(header + data)

    def _answer(self) -> None:
        """Take the next answer, or notice that one is overdue."""
        magic, error, cookie = struct.unpack(">IIQ", self._take(16))
        if magic != 0x67446698 or cookie not in self._waiting:
            self.counts["twice"] += 1
            raise ConnectionOverError
        kind, block, version, begun_s = self._waiting[cookie]
        content = self._take(BLOCK_BYTES) if kind == READ and not error else b""
        del self._waiting[cookie]
        self._count(time.monotonic() - begun_s)
        promise, flushed = self._promises[block], self._at_flush.pop(cookie, None)
        if error:
            self.counts["refused"] += 1
            if kind == WRITE:
                promise.sure = False
            time.sleep(_CONNECT_S)
        elif kind == WRITE:
            self.counts["writes"] += 1
            promise.acknowledged, promise.sure = version, True
        elif kind == READ:
            self.counts["reads"] += 1
            breach = promise.breach(versions_in(content, self._number, block))
            if breach:
                self.counts[breach] += 1
        elif flushed is not None:
            self.counts["flushes"] += 1
            for one, version_then in zip(self._promises, flushed, strict=True):
                one.flushed = max(one.flushed, version_then)
        self._tell()

    def _take(self, count: int) -> bytes:
        assert self._socket is not None
        while len(self._received) < count:
            if not select.select([self._socket], [], [], 1.0)[0]:
                self._tell()
                oldest_s = min((one[3] for one in self._waiting.values()), default=math.inf)
                if time.monotonic() > oldest_s + ANSWER_S:
                    self.counts["unanswered"] += 1
                    raise ConnectionOverError
                continue
            part = self._socket.recv(1 << 16)
            if not part:
                raise ConnectionOverError
            self._received += part
        taken = bytes(self._received[:count])
        del self._received[:count]
        return taken

    def _connect(self) -> None:
        """Negotiate for the export.

        Raises:
            OSError: nobody is there.
            ConnectionOverError: the other side does not go through with it.
        """
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(ANSWER_S)
        self._socket.connect(self._path)
        greeting = self._take(18)
        if greeting[:16] != b"NBDMAGICIHAVEOPT":
            raise ConnectionOverError
        name = self._export.encode()
        data = struct.pack(">I", len(name)) + name + struct.pack(">H", 0)
        self._socket.sendall(struct.pack(">I", 3) + b"IHAVEOPT" + struct.pack(">II", 7, len(data)) + data)
        kind = 3
        while kind == 3:
            _, _, kind, length = struct.unpack(">QIII", self._take(20))
            self._take(length)
        if kind != 1:
            raise ConnectionOverError
        self.counts["connections"] += 1

    def _cut_off(self) -> None:
        """Forget what was under way; of what was only acknowledged nothing is sure any more."""
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.close()
        self._socket = None
        self._received.clear()
        self._waiting.clear()
        self._at_flush.clear()
        for one in self._promises:
            one.sure = one.sure and one.acknowledged == one.sent == one.flushed

    def _count(self, seconds: float) -> None:
        bucket = math.ceil(BUCKETS_A_DOUBLING * math.log2(max(1.0, seconds * 1e6)))
        self._latencies[bucket] = self._latencies.get(bucket, 0) + 1

    def _tell(self) -> None:
        now = int(time.time())
        if now > self._second:
            say({"second": self._second, "latencies": self._latencies})
            self._second, self._latencies = now, {}


def say(line: dict[str, object]) -> None:
    """One line of JSON."""
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def main(words: list[str]) -> int:
    """Work, finish, tell; 1 where the end was not reached."""
    path, export, *numbers = words
    number, offset, blocks, depth = map(int, numbers)
    client = CheckingClient(path, export, number, offset=offset, blocks=blocks, depth=depth)
    client.work()
    is_done = client.finish(2 * ANSWER_S)
    say({"counts": client.counts, "finished": is_done})
    return 0 if is_done else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
