"""What a power cut takes from a modelled disk: what was only in its cache, and nothing that was flushed."""

from __future__ import annotations

import random
import resource
import signal
import struct
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from modelled_disk import CACHED, MECHANICAL, ModelledDisk
from nbd_client import FLUSH, FUA, WRITE, WRITE_ZEROES, NbdClient, RefusedError
from preloads import preload

if TYPE_CHECKING:
    from collections.abc import Callable

    Start = Callable[..., ModelledDisk]

BLOCK = 4096
BLOCKS = 512
"""Far apart on the disk, so that the cache cannot empty itself while a test looks on."""
STEP = 8 << 20
SIZE = "4GiB"


def write_all(client: NbdClient, content: bytes, flags: int = 0) -> None:
    """Write every block, all at once, and wait until each is acknowledged."""
    for number in range(BLOCKS):
        client.send(WRITE, number * STEP, data=content * BLOCK, flags=flags, cookie=number)
    for _ in range(BLOCKS):
        assert client.reply().error == 0


def contents(client: NbdClient) -> list[bytes]:
    """Each block's, which is whole."""
    found = []
    for number in range(BLOCKS):
        client.send(0, number * STEP, BLOCK, cookie=number)
    data = {reply.cookie: reply.data for reply in (client.reply() for _ in range(BLOCKS))}
    for number in range(BLOCKS):
        assert data[number] == data[number][:1] * BLOCK
        found.append(data[number][:1])
    return found


@pytest.mark.slow
@pytest.mark.parametrize("how", ["kill", "cut"])
def test_a_cut_takes_what_was_not_flushed_and_nothing_else(disk: Start, folder: Path, how: str) -> None:
    words = ("--file", folder / "medium", "--size", SIZE)
    one = disk(CACHED, *words)
    with one.client() as client:
        write_all(client, b"a")
        client.flush()
        begun = time.monotonic()
        write_all(client, b"b")
        assert time.monotonic() - begun < 1
        assert contents(client) == [b"b"] * BLOCKS
        write_all(client, b"c")
        if how == "kill":
            one.kill()
        else:
            one.cut()
    if how == "kill":
        one = disk(CACHED, *words)
    with one.client() as client:
        found = contents(client)
        assert set(found) <= {b"a", b"b", b"c"}
        assert set(found) != {b"c"}
        write_all(client, b"d")
        client.flush()
    one.kill()
    one = disk(CACHED, *words)
    with one.client() as client:
        assert contents(client) == [b"d"] * BLOCKS


def test_kills_at_random_moments_take_nothing_that_was_flushed(disk: Start, folder: Path) -> None:
    draws = random.Random(1)
    words = ("--file", folder / "medium", "--size", SIZE)
    lasting, lost = dict[int, bytes](), 0
    for _ in range(3):
        one = disk(CACHED, *words)
        with one.client() as client:
            for number, content in lasting.items():
                assert client.read(number * STEP, BLOCK) == content
            for _ in range(5):
                number, content = draws.randrange(BLOCKS), draws.randbytes(BLOCK)
                how = draws.choice(["fua", "flush"])
                client.write(number * STEP, content, FUA if how == "fua" else 0)
                if how == "flush":
                    client.flush()
                lasting[number] = content
            others = {number: draws.randbytes(BLOCK) for number in range(BLOCKS) if number not in lasting}
            for number, content in others.items():
                client.send(WRITE, number * STEP, data=content, cookie=number)
            for _ in others:
                assert client.reply().error == 0
            time.sleep(draws.uniform(0, 0.1))
        one.kill()
        one = disk(CACHED, *words)
        with one.client() as client:
            first = dict(list(others.items())[:100])
            lost += sum(client.read(number * STEP, BLOCK) != content for number, content in first.items())
        one.kill()
    assert lost > 0


def test_without_a_cache_what_was_acknowledged_stays(disk: Start, folder: Path) -> None:
    words = ("--file", folder / "medium", "--size", SIZE)
    one = disk(MECHANICAL, *words)
    with one.client() as client:
        for number in range(10):
            client.write(number * STEP, b"w" * BLOCK)
        client.ask(WRITE_ZEROES, 0, BLOCK)
    one.kill()
    one = disk(MECHANICAL, *words)
    with one.client() as client:
        assert client.read(0, BLOCK) == bytes(BLOCK)
        for number in range(1, 10):
            assert client.read(number * STEP, BLOCK) == b"w" * BLOCK


def test_a_flush_takes_as_long_as_the_cache_needs(disk: Start) -> None:
    one = disk(CACHED, "--size", SIZE)
    with one.client() as client:
        client.flush()
        begun = time.monotonic()
        for number in range(50):
            client.send(WRITE, number * STEP * 7, data=b"x" * BLOCK, cookie=number)
        for _ in range(50):
            client.reply()
        cached_s = time.monotonic() - begun
        client.send(FLUSH)
        client.reply()
        flushed_s = time.monotonic() - begun
        assert cached_s < flushed_s / 2
        assert flushed_s > 0.15
        client.flush()
        assert time.monotonic() - begun < flushed_s * 1.5


def test_an_orderly_end_loses_nothing(disk: Start, folder: Path) -> None:
    words = ("--file", folder / "medium", "--size", SIZE)
    one = disk(CACHED, *words)
    with one.client() as client:
        write_all(client, b"z")
    assert one.end() == 0
    one = disk(CACHED, "--file", folder / "medium")
    with one.client() as client:
        assert client.read(511 * STEP, BLOCK) == b"z" * BLOCK
        assert client.read(0, BLOCK) == b"z" * BLOCK


def test_power_comes_back_to_a_disk_that_serves(disk: Start) -> None:
    one = disk(CACHED, "--size", SIZE)
    with one.client() as client:
        client.write(0, b"lasts", FUA)
        for number in range(1, 50):
            client.send(WRITE, number * STEP, data=b"lost", cookie=number)
        for _ in range(1, 50):
            client.reply()
        one.cut()
        with pytest.raises(ConnectionError):
            client.read(0, 5)
    with one.client() as client:
        assert client.read(0, 5) == b"lasts"
        assert any(client.read(number * STEP, 4) == bytes(4) for number in range(1, 50))


def test_an_end_under_load_loses_nothing_that_was_acknowledged(disk: Start, folder: Path) -> None:
    """Each block is written over and over, each time with a number of its own."""
    words = ("--file", folder / "medium", "--size", SIZE)
    one = disk(CACHED, *words)
    sent, acknowledged = [0] * 200, [-1] * 200
    with one.client() as client:

        def send(number: int) -> None:
            client.send(
                WRITE, number * STEP, data=struct.pack("<I", sent[number]) * (BLOCK // 4), cookie=number
            )

        def take() -> int:
            reply = client.reply()
            assert reply.error == 0
            acknowledged[reply.cookie] = sent[reply.cookie]
            return reply.cookie

        for number in range(200):
            send(number)
        ending = time.monotonic() + 0.3
        while time.monotonic() < ending:
            number = take()
            sent[number] += 1
            send(number)
        one.process.send_signal(signal.SIGTERM)
        try:
            while True:
                take()
        except ConnectionError:
            pass
    assert one.process.wait(30) == 0
    assert max(acknowledged) > 1
    one = disk(CACHED, "--file", folder / "medium")
    with one.client() as client:
        for number, last in enumerate(acknowledged):
            found = client.read(number * STEP, BLOCK)
            assert found == found[:4] * (BLOCK // 4)
            assert last == -1 or last <= struct.unpack("<I", found[:4])[0] <= sent[number]


def test_where_the_file_is_full_writes_are_refused_and_nothing_is_forgotten(
    disk: Start, folder: Path
) -> None:
    one = disk(CACHED, "--file", folder / "medium", "--size", SIZE)
    with one.client() as client, one.client() as other:
        one.limit_file(STEP)
        kept = 0
        with pytest.raises(RefusedError, match=r"\b5\b"):
            for kept in range(1, BLOCKS):
                client.write(kept * STEP, b"k" * BLOCK)
                time.sleep(0.02)
        other.socket.settimeout(5)
        with pytest.raises(RefusedError):
            other.write(0, b"0" * BLOCK)
        with pytest.raises(RefusedError):
            other.flush()
        assert all(other.read(number * STEP, BLOCK) == b"k" * BLOCK for number in range(1, kept))
        one.limit_file(resource.RLIM_INFINITY)
        other.flush()
        other.write(0, b"0" * BLOCK, FUA)
    one.kill()
    one = disk(CACHED, "--file", folder / "medium")
    with one.client() as client:
        assert client.read(0, BLOCK) == b"0" * BLOCK
        assert all(client.read(number * STEP, BLOCK) == b"k" * BLOCK for number in range(1, kept))


def test_an_end_writes_what_can_be_written(disk: Start, folder: Path) -> None:
    one = disk(CACHED, "--file", folder / "medium", "--size", SIZE)
    with one.client() as client:
        one.limit_file(STEP)
        for number in (3, 2, 1, 0):
            client.send(WRITE, number * STEP, data=b"e" * BLOCK, cookie=number)
        acknowledged = {reply.cookie for reply in (client.reply() for _ in range(4)) if not reply.error}
    assert one.end() == 1
    assert "cannot be written" in one.said()
    if 0 in acknowledged:
        with (folder / "medium").open("rb") as medium:
            assert medium.read(BLOCK) == b"e" * BLOCK


def test_what_could_not_be_synchronised_is_told_from_then_on(
    disk: Start, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel tells once what it could not write, and may have forgotten it."""
    gate = folder / "gate"
    monkeypatch.setenv("LD_PRELOAD", str(preload(Path(__file__).parent / "failing_sync.c", folder)))
    monkeypatch.setenv("FAILING_GATE", str(gate))
    one = disk(CACHED, "--file", folder / "medium", "--size", SIZE)
    with one.client() as client, one.client() as other:
        client.write(0, b"1" * BLOCK)
        client.flush()
        client.write(0, b"2" * BLOCK)
        gate.touch()
        for again in (client, other, client):
            with pytest.raises(RefusedError, match=r"\b5\b"):
                again.flush()
            assert not gate.exists()
        with pytest.raises(RefusedError, match=r"\b5\b"):
            client.write(STEP, b"3" * BLOCK, FUA)
        assert other.read(0, BLOCK) == b"2" * BLOCK
    assert one.end() == 1


def test_what_is_ignored_does_not_end_a_disk(disk: Start, disk_binary: Path, folder: Path) -> None:
    ignoring = folder / "ignoring"
    ignoring.write_text(f"#!/bin/sh\ntrap '' HUP INT\nexec {disk_binary} \"$@\"\n", "utf-8")
    ignoring.chmod(0o755)
    with ModelledDisk(ignoring, folder, CACHED, "--size", SIZE) as one:
        for ignored in (signal.SIGHUP, signal.SIGINT):
            one.process.send_signal(ignored)
            time.sleep(0.1)
        with one.client() as client:
            client.write(0, b"goes on")
        assert one.end() == 0
    one = disk(CACHED, "--size", SIZE)
    one.process.send_signal(signal.SIGHUP)
    assert one.process.wait(30) == 0
