"""A client that asks several Redis servers at once, and asks again when all of them have answered.

So a page is made of the values of many servers, and a stripe of the parts of many disks: the slowest answer
decides. It imports nothing but the standard library, so that it runs on any node:

    python -S -c 'from benchmarks.fan_out import main; main()' SECONDS VALUES VALUE_BYTES PLACE...

VALUES commands `GET value` go to each place, a socket or HOST:PORT, in one piece. What it prints is a line of
JSON: rounds, seconds, bytes of values, and the length of each round in milliseconds.
"""

from __future__ import annotations

import json
import selectors
import socket
import sys
import time
from typing import NamedTuple

KEY = "value"
RAMP_S = 0.5
_PATIENCE_S = 30.0


def main() -> None:
    """Work for so long, and print what came of it."""
    seconds, values, value_bytes = float(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    ask = b"*2\r\n$3\r\nGET\r\n$%d\r\n%b\r\n" % (len(KEY), KEY.encode())
    answer = _Answer(b"$%d\r\n" % value_bytes, values * (len(f"${value_bytes}\r\n\r\n") + value_bytes))
    try:
        clients = [_connected(place) for place in sys.argv[4:]]
        with selectors.DefaultSelector() as waiting:
            rounds = _Rounds(clients, waiting, values * ask, answer)
            rounds.work(RAMP_S)
            lengths_ms = rounds.work(seconds)
    except OSError as error:
        raise SystemExit(f"fan_out: {error}") from None
    for client in clients:
        client.close()
    moved = len(lengths_ms) * len(clients) * values * value_bytes
    found = {"seconds": sum(lengths_ms) / 1000, "bytes": moved, "rounds_ms": lengths_ms}
    print(json.dumps(found), flush=True)


def _connected(place: str) -> socket.socket:
    if place.startswith("/"):
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(_PATIENCE_S)
        client.connect(place)
        return client
    host, _, port = place.rpartition(":")
    client = socket.create_connection((host, int(port)), _PATIENCE_S)
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return client


class _Answer(NamedTuple):
    """What a server says in a round: how it begins, and its length."""

    begin: bytes
    length: int


class _Rounds:
    """Rounds of asking all servers and waiting for all of them.

    Args:
        clients: a connection to each.
        waiting: an empty selector.
        ask: what each is asked.
        answer: what each answers.
    """

    def __init__(
        self,
        clients: list[socket.socket],
        waiting: selectors.BaseSelector,
        ask: bytes,
        answer: _Answer,
    ) -> None:
        self._clients, self._waiting = clients, waiting
        self._ask, self._answer = ask, answer
        self._buffer = bytearray(1 << 18)

    def work(self, seconds: float) -> list[float]:
        """Whole rounds for so long; the length of each in milliseconds."""
        lengths_ms: list[float] = []
        begun_s = now_s = time.monotonic()
        while now_s < begun_s + seconds:
            self._round()
            before_s, now_s = now_s, time.monotonic()
            lengths_ms.append(round((now_s - before_s) * 1000, 3))
        return lengths_ms

    def _round(self) -> None:
        left = dict.fromkeys(self._clients, self._answer.length)
        for client in self._clients:
            client.sendall(self._ask)
            self._waiting.register(client, selectors.EVENT_READ)
        while self._waiting.get_map():
            ready = self._waiting.select(_PATIENCE_S)
            if not ready:
                raise SystemExit(f"fan_out: {len(self._waiting.get_map())} servers say nothing")
            for key, _ in ready:
                client = key.fileobj
                assert isinstance(client, socket.socket)
                count = client.recv_into(self._buffer, min(left[client], len(self._buffer)))
                begin = self._answer.begin
                said = bytes(self._buffer[: min(count, len(begin))])
                if not said or (left[client] == self._answer.length and not begin.startswith(said)):
                    raise SystemExit(f"fan_out: a server answers {said!r}")
                left[client] -= count
                if not left[client]:
                    self._waiting.unregister(client)
