"""A server that falls silent: it is given up when it owes answers for too long, and not otherwise."""

from __future__ import annotations

import json
import socket
import subprocess
import threading
import time
from typing import TYPE_CHECKING

import pytest

import nbd_peers as nbd
from data_plane_peers import disk_of
from nbd_peers import RawClient, RawServer, Session, answering
from waiting import until

if TYPE_CHECKING:
    from pathlib import Path

    from data_plane_peers import Proxy, Starter

LIMIT = "answer_s = 1\n"


def silent_total(proxy: Proxy) -> int:
    """What `--watch` shows first."""
    command = [*proxy.process.args, "--watch"]  # pyrefly: ignore
    with subprocess.Popen(command, stdout=subprocess.PIPE) as watching:
        assert watching.stdout is not None
        found = json.loads(watching.stdout.readline())
        watching.kill()
    return found["0.silent_total"]


@pytest.mark.parametrize("said", ["nothing", "half a header", "half of its data", "half of long data"])
def test_a_server_that_falls_silent_is_given_up(start: Starter, folder: Path, said: str):
    length = (1 << 20) if "long" in said else 4096
    gone = threading.Event()

    def serve(session: Session) -> None:
        session.negotiate()
        for asked in session.requests():
            if asked.cookie < 2:
                session.answer(asked)
            elif asked.cookie == 3:
                continue
            elif said == "half a header":
                session.socket.sendall(nbd.simple_reply(asked.cookie)[:9])
            elif "data" in said:
                session.socket.sendall(nbd.simple_reply(asked.cookie) + bytes(length // 2))
        gone.set()

    with RawServer(folder / "server.sock", serve) as server:
        proxy = start.proxy(server.path, LIMIT)
        with RawClient(disk_of(proxy)) as client:
            client.negotiate()
            for cookie in range(2):
                assert client.read(cookie, length) == bytes(length)
            begun_s = time.monotonic()
            client.send(nbd.request(nbd.READ, 2, 0, length) + nbd.request(nbd.FLUSH, 3))
            client.drain()
            assert 0.9 < time.monotonic() - begun_s < 10
        assert gone.wait(20), "its side is closed as well"
        until(proxy.log)
        (line,) = proxy.log().splitlines()
        assert line.endswith("the server has said nothing for 1 s, and owes 2 answers; it is closed")
        assert silent_total(proxy) == 1
        assert proxy.streams() == []


def test_a_server_that_takes_nothing_is_given_up(start: Starter, folder: Path):
    done = threading.Event()

    def serve(session: Session) -> None:
        session.negotiate()
        done.wait(60)

    with RawServer(folder / "server.sock", serve) as server:
        proxy = start.proxy(server.path, LIMIT)
        with RawClient(disk_of(proxy)) as client:
            client.negotiate()
            with pytest.raises(OSError):
                for cookie in range(100):
                    client.send(nbd.request(nbd.WRITE, cookie, 0, 1 << 20) + bytes(1 << 20))
            until(proxy.log)
        done.set()
        assert "the server has said nothing for 1 s" in proxy.log()


def test_one_that_owes_nothing_or_says_a_little_is_not(start: Starter, folder: Path):
    def serve(session: Session) -> None:
        session.negotiate()
        for asked in session.requests():
            session.socket.sendall(nbd.simple_reply(asked.cookie))
            for _ in range(5):  # longer than the limit altogether
                time.sleep(0.25)
                session.socket.sendall(bytes(asked.length // 5))

    with RawServer(folder / "server.sock", serve) as server:
        proxy = start.proxy(server.path, LIMIT)
        with RawClient(disk_of(proxy)) as idle, RawClient(disk_of(proxy)) as client:
            idle.negotiate()
            client.negotiate()
            time.sleep(1.2)
            assert client.read(1, 5 << 10) == bytes(5 << 10)
            assert idle.read(2, 5 << 10) == bytes(5 << 10)
        assert proxy.log() == ""


def test_a_client_that_does_not_read_is_not_the_servers_silence(start: Starter, folder: Path):
    with RawServer(folder / "server.sock", answering) as server:
        proxy = start.proxy(server.path, LIMIT)
        with RawClient(disk_of(proxy)) as client:
            client.negotiate()
            length, count = 1 << 20, 8
            client.send(b"".join(nbd.request(nbd.READ, at, 0, length) for at in range(count)))
            time.sleep(2.5)
            for at in range(count):
                assert client.receive(16 + length) == nbd.simple_reply(at) + bytes(length)
        assert proxy.log() == ""


@pytest.mark.parametrize("length", [4096, 1 << 20])
def test_a_client_that_sends_its_data_late_is_not_the_servers_silence(
    start: Starter, folder: Path, length: int
):
    with RawServer(folder / "server.sock", answering) as server:
        proxy = start.proxy(server.path, LIMIT)
        with RawClient(disk_of(proxy)) as client:
            client.negotiate()
            for cookie in range(2):
                client.send(nbd.request(nbd.WRITE, cookie, 0, length) + bytes(length // 2))
                time.sleep(2.5)
                client.send(bytes(length // 2))
                assert client.receive(16) == nbd.simple_reply(cookie)
        assert proxy.log() == ""


def test_a_server_that_takes_a_long_request_in_slowly_is_not_silent(start: Starter, folder: Path):
    length, count = 1 << 20, 4

    def serve(session: Session) -> None:
        session.negotiate()
        session.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        asked = 28 * count + length * count
        while asked and (taken := nbd.received(session.socket, min(asked, length // 4))):
            asked -= len(taken)
            time.sleep(0.2)  # longer than the limit altogether
        session.socket.sendall(b"".join(map(nbd.simple_reply, range(count))))
        nbd.received(session.socket, 1)

    with RawServer(folder / "server.sock", serve) as server:
        proxy = start.proxy(server.path, LIMIT)
        with RawClient(disk_of(proxy)) as client:
            client.negotiate()
            for cookie in range(count):
                client.send(nbd.request(nbd.WRITE, cookie, 0, length) + bytes(length))
            assert client.receive(16 * count) == b"".join(map(nbd.simple_reply, range(count)))
        assert proxy.log() == ""


def test_a_server_that_owes_another_answer_is_given_up_while_the_client_is_late(start: Starter, folder: Path):
    def serve(session: Session) -> None:
        session.negotiate()
        for _ in session.requests():
            pass

    with RawServer(folder / "server.sock", serve) as server:
        proxy = start.proxy(server.path, LIMIT)
        with RawClient(disk_of(proxy)) as client:
            client.negotiate()
            client.send(nbd.request(nbd.READ, 0, 0, 4096) + nbd.request(nbd.WRITE, 1, 0, 4096) + bytes(9))
            client.drain()
        until(proxy.log)
        assert "the server has said nothing for 1 s" in proxy.log()


@pytest.mark.parametrize("value", ["0", "86401", "-1"])
def test_a_limit_that_is_none_is_named(ascard: Path, folder: Path, value: str):
    config = folder / "proxy.toml"
    config.write_text(
        f"control = 'c'\nanswer_s = {value}\n[[route]]\nlisten = 'unix:a'\nserver = 'unix:/b'\n"
    )
    done = subprocess.run(
        [ascard, "proxy", "--config", config, "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert f"answer_s = {value}: allowed are 1 to 86400" in done.stderr
