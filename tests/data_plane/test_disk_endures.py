"""A modelled disk and clients that it cannot trust: it goes on for the others."""

from __future__ import annotations

import random
import resource
import socket
import struct
import time
from typing import TYPE_CHECKING

import pytest

from modelled_disk import CACHED, MECHANICAL, MEMORY, ModelledDisk
from nbd_client import (
    ABORT,
    BLOCK_STATUS,
    CACHE,
    ERR_UNSUP,
    FUA,
    LIST,
    NO_HOLE,
    READ,
    STARTTLS,
    WRITE,
    WRITE_ZEROES,
    RefusedError,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Start = Callable[..., ModelledDisk]

BLOCK = 4096


def works(disk: ModelledDisk) -> bool:
    """Whether a new client is served."""
    with disk.client() as client:
        client.write(8192, b"works")
        return client.read(8192, 5) == b"works"


def connected(disk: ModelledDisk) -> socket.socket:
    raw = socket.socket(socket.AF_UNIX)
    raw.settimeout(20)
    raw.connect(str(disk.socket))
    return raw


def ended(raw: socket.socket) -> bool:
    """Whether the server closes the connection, whatever it says before."""
    try:
        while raw.recv(1 << 16):
            pass
    except ConnectionError:
        pass
    return True


def test_garbage_ends_only_its_own_connection(disk: Start) -> None:
    one = disk(MEMORY, "--size", "1MiB")
    draws = random.Random(1)
    openings = [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\xff" * 64,
        struct.pack(">I", 3) + b"IHAVEOPT" + struct.pack(">II", 7, 1 << 30),
        struct.pack(">I", 3) + b"IHAVEOPT" + struct.pack(">II", 1, 4) + b"none",
        struct.pack(">I", 0) + b"IHAVEOPT" + struct.pack(">II", LIST, 0),
        *(struct.pack(">I", 3) + draws.randbytes(64) for _ in range(10)),
    ]
    for opening in openings:
        with connected(one) as raw:
            raw.sendall(opening)
            assert ended(raw), opening
    with one.client() as client:
        client.socket.sendall(b"\0" * 28)
        assert ended(client.socket)
    assert works(one)
    assert "panicked" not in one.said()


def test_what_is_not_offered_is_refused_and_the_connection_stays(disk: Start) -> None:
    one = disk(MEMORY, "--size", "1MiB")
    with one.client(None) as client:
        for option in (STARTTLS, 9, 10, 11, 99):
            assert client.option(option)[-1][0] == ERR_UNSUP
        with pytest.raises(RefusedError, match="6"):
            client.go("another")
        client.go("disk")
        for command in (BLOCK_STATUS, 8, 77):
            with pytest.raises(RefusedError, match="22"):
                client.ask(command, 0, 512)
        with pytest.raises(RefusedError, match="28"):
            client.write((1 << 20) - 1, b"ab")
        with pytest.raises(RefusedError, match="22"):
            client.ask(READ, 0, 1 << 31)
        assert client.ask(READ, 0, 0) == b""
        client.write(0, b"goes on")
        assert client.read(0, 7) == b"goes on"
    with one.client(None) as client:
        assert client.option(ABORT)[-1][0] == 1


def test_clients_may_vanish_at_any_moment(disk: Start) -> None:
    one = disk(MECHANICAL, "--size", "16MiB")
    for part in (0, 3, 27):
        with one.client() as client:
            client.socket.sendall(struct.pack(">IHHQQI", 0x25609513, 0, WRITE, 1, 0, 4096)[:part])
    with one.client() as client:
        client.socket.sendall(struct.pack(">IHHQQI", 0x25609513, 0, WRITE, 1, 0, 1 << 20) + b"x" * 1000)
    with one.client() as client:
        for cookie in range(50):
            client.send(READ, cookie << 18, 4096, cookie=cookie)
    assert works(one)


def test_a_client_that_reads_nothing_takes_no_memory(disk: Start) -> None:
    one = disk(MEMORY, "--size", "64MiB")
    assert works(one)
    before = one.memory_kib()
    with one.client() as client:
        client.socket.settimeout(0.5)
        sent = 0
        try:
            for cookie in range(100_000):
                client.send(READ, 0, 32 << 20, cookie=cookie)
                sent += 1
        except TimeoutError:
            pass
        assert sent < 100_000
        assert one.memory_kib() < before + (16 << 10)
        assert works(one)


def test_a_write_of_one_who_reads_nothing_overwrites_nothing_newer(disk: Start) -> None:
    """Its reply waits behind others that are not read; the write is done all the same, in its turn."""
    one = disk(MEMORY, "--size", "64MiB")
    with one.client() as silent, one.client() as other:
        silent.send(READ, 0, 32 << 20, cookie=1)
        silent.send(WRITE, 0, data=b"A" * BLOCK, cookie=2)
        time.sleep(0.2)
        other.write(0, b"B" * BLOCK)
        other.flush()
        silent.socket.close()
        time.sleep(0.2)
        assert other.read(0, BLOCK) == b"B" * BLOCK


def test_writes_of_one_who_reads_nothing_keep_no_memory(disk: Start) -> None:
    one = disk(MEMORY, "--size", "64MiB")
    with one.client() as silent, one.client() as other:
        silent.send(READ, 0, 32 << 20)
        silent.socket.settimeout(10)
        for cookie in range(1, 18):
            silent.send(WRITE, 0, data=bytes(32 << 20), cookie=cookie)
        other.socket.settimeout(5)
        other.write(48 << 20, b"B" * BLOCK)
        assert other.read(48 << 20, BLOCK) == b"B" * BLOCK


def test_writes_whose_data_does_not_come_keep_no_memory(disk: Start) -> None:
    one = disk(MEMORY, "--size", "64MiB")
    silent = [one.client() for _ in range(40)]
    try:
        for client in silent:
            client.socket.sendall(struct.pack(">IHHQQI", 0x25609513, 0, WRITE, 1, 0, 32 << 20))
        time.sleep(0.2)
        with one.client() as other:
            other.socket.settimeout(5)
            other.write(0, b"B" * BLOCK)
            assert other.read(0, BLOCK) == b"B" * BLOCK
    finally:
        for client in silent:
            client.socket.close()


def test_long_requests_take_no_memory_and_hold_up_nobody(disk: Start) -> None:
    """Each chunk of an array's member is a request of its own, and there are a million."""
    array = MEMORY.replace("[[servers]]", "[[servers]]\ncount = 3") + "\n[striping]\nsize_kib = 4\n"
    one = disk(array, "--raid", "5")
    with one.client() as client, one.client() as other:
        with pytest.raises(RefusedError, match="22"):
            client.ask(CACHE, 0, (32 << 20) + 1)
        client.ask(CACHE, 0, 32 << 20)
        before = one.memory_kib()
        length = client.size // BLOCK * BLOCK
        for cookie in range(4):
            client.send(WRITE_ZEROES, 0, length, cookie=cookie)
        waited_s = list[float]()
        for _ in range(20):
            begun = time.monotonic()
            other.write(length - BLOCK, b"B" * BLOCK)
            waited_s.append(time.monotonic() - begun)
            time.sleep(0.01)
        assert max(waited_s) < 0.5, waited_s
        assert one.memory_kib() < before + (64 << 10)
        assert [client.reply().error for _ in range(4)] == [0] * 4


def test_zeroes_last_as_the_request_says(disk: Start, folder: Path) -> None:
    words = ("--file", folder / "medium", "--size", "64MiB")
    length, begin = 40 << 20, BLOCK
    for scenario in (MEMORY, CACHED.replace("write_mb_per_s = 40", "write_mb_per_s = 400")):
        one = disk(scenario, *words)
        with one.client() as client:
            for at in (0, begin, length // 2, length, length + begin):
                client.write(at, b"x" * BLOCK, FUA)
            client.ask(WRITE_ZEROES, begin, length, flags=FUA | NO_HOLE)
        one.kill()
        medium = (folder / "medium").read_bytes()
        assert medium[:BLOCK] == b"x" * BLOCK
        assert not any(medium[begin : begin + length])
        assert medium[length + begin :][:BLOCK] == b"x" * BLOCK


def test_a_thousand_clients_are_served(disk: Start) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 4096:
        pytest.skip(f"{hard} open files are too few for a thousand clients")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        one = disk(MEMORY, "--size", "16MiB")
        clients = [one.client() for _ in range(1000)]
        for number, client in enumerate(clients):
            client.send(WRITE, number * 512, data=number.to_bytes(2, "big"))
        for client in clients:
            assert client.reply().error == 0
        with one.client() as client:
            assert client.read(999 * 512, 2) == (999).to_bytes(2, "big")
        assert one.memory_kib() < 200 << 10
        for client in clients:
            client.socket.close()
        assert works(one)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_all_parts_of_a_disk_share_its_time_but_not_its_data(disk: Start) -> None:
    one = disk(MECHANICAL, "--exports", "a,b")
    count, least_s = 25, 0.0065
    with one.client("a") as first, one.client("b") as second:
        first.write(0, b"first")
        second.write(0, b"other")
        assert (first.read(0, 5), second.read(0, 5)) == (b"first", b"other")
        begun = time.monotonic()
        for number in range(count):
            for client in (first, second):
                client.send(READ, number * 7919 * 4096 * 97 % client.size // 4096 * 4096, 4096)
            for client in (first, second):
                client.reply()
        # Each read costs a seek from one part to the other. Two disks would need half as long.
        assert time.monotonic() - begun > 2 * count * least_s
