"""The client of many servers waits for all of them; each way of a turn has its row."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from benchmarks.incast import SERVERS, TURNS, WAYS, _gains, _pieces, _row

from nbd_peers import RawServer, Session
from resp_peers import commands

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).parents[2]
VALUE = b"abcd"


@pytest.fixture
def folder(in_memory: Path | None) -> Iterator[Path]:
    """A folder whose path is short enough for sockets."""
    with TemporaryDirectory(prefix="ascar-", dir=in_memory) as path:
        yield Path(path)


def answering(answer: bytes, delay_s: float = 0.0) -> Callable[[Session], None]:
    """What a server does that answers each command so, after a while."""

    def serve(session: Session) -> None:
        for asked in commands(session):
            assert asked == [b"GET", b"value"]
            time.sleep(delay_s)
            session.socket.sendall(answer)

    return serve


def asked(*places: Path, values: int = 3) -> subprocess.CompletedProcess[str]:
    """What a client prints that asks these servers for a while."""
    code = ("-S", "-c", "from benchmarks.fan_out import main; main()")
    words = [sys.executable, *code, "0.2", str(values), str(len(VALUE)), *map(str, places)]
    return subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT, timeout=60)


def test_a_round_is_as_long_as_the_slowest_answer(folder: Path) -> None:
    with ExitStack() as stack:
        delays_s = (0.0, 0.02, 0.0)
        servers = [
            stack.enter_context(RawServer(folder / f"{at}.sock", answering(b"$4\r\nabcd\r\n", delay_s)))
            for at, delay_s in enumerate(delays_s)
        ]
        found = json.loads(asked(*(server.path for server in servers)).stdout)
    rounds = found["rounds_ms"]
    assert min(rounds) >= 3 * 20
    assert found["bytes"] == len(rounds) * len(servers) * 3 * len(VALUE)
    assert found["seconds"] == pytest.approx(sum(rounds) / 1000)
    assert found["seconds"] >= 0.2


@pytest.mark.parametrize("answer", [b"-ERR no\r\n", b"$-1\r\n" * 10])
def test_what_is_no_value_ends_it_in_one_line(folder: Path, answer: bytes) -> None:
    with RawServer(folder / "a.sock", answering(answer)) as server:
        done = asked(server.path)
    assert done.returncode == 1
    assert done.stderr.startswith("fan_out: ")
    assert done.stderr.count("\n") == 1


def test_each_turn_is_a_piece_and_each_way_has_a_row() -> None:
    assert len({piece.key for piece in _pieces()}) == TURNS * len(SERVERS)
    names = ("mb_per_s", "round_ms_p99", "lost_per_s", "timers_per_s")
    turns = [{way: dict.fromkeys(names, at * (1.0 + (way == "window 1"))) for way in WAYS} for at in (1, 2)]
    assert _row(4, "window 1", turns)[:3] == ["4", "window 1", "3 (-9.71 to 15.7)"]
    assert _gains(4, turns)[:3] == ["4", "2 (2 to 2)", "1 (1 to 1)"]
