"""Bytes pass as they are: whole images, every phase of a negotiation, and what ends either side."""

from __future__ import annotations

import hashlib
import random
import signal
import socket
import struct
import subprocess
import threading
import time
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

import pytest
from benchmarks.harness import free_port

import nbd_peers as nbd
from data_plane_peers import disk_of, fio, needed
from nbd_peers import RawClient, RawServer, Session, answering
from waiting import until

if TYPE_CHECKING:
    from pathlib import Path


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize(
    "keys", ["", "window = 4\n", "window = 8\ngap_us = 50\n"], ids=["free", "window", "pace"]
)
@pytest.mark.parametrize("server_words", [(), ("--no-sr",)], ids=["structured", "simple"])
def test_an_image_is_the_same_on_both_sides(start, folder, keys, server_words):
    needed("nbdcopy", "libnbd-bin")
    image, there, back = (folder / name for name in ("image", "there", "back"))
    image.write_bytes(random.Random(1).randbytes(24 << 20))
    there.write_bytes(bytes(24 << 20))
    proxy = start.proxy(start.nbdkit(*server_words, "file", str(there)), keys)
    uri = f"nbd+unix:///?socket={disk_of(proxy)}"
    subprocess.run(["nbdcopy", "--flush", image, uri], check=True)
    subprocess.run(["nbdcopy", uri, back], check=True)
    assert digest(image) == digest(there) == digest(back)
    assert proxy.log() == ""


def test_exports_are_listed_through_it(start):
    needed("nbdinfo", "libnbd-bin")
    proxy = start.proxy(start.nbdkit("memory", "1M"))
    uri = f"nbd+unix:///?socket={disk_of(proxy)}"
    done = subprocess.run(["nbdinfo", "--list", uri], capture_output=True, text=True, check=True)
    assert "1048576" in done.stdout


def test_servers_over_tcp(start, folder):
    needed("nbdcopy", "libnbd-bin")
    image, back = folder / "image", folder / "back"
    image.write_bytes(random.Random(2).randbytes(4 << 20))
    port, own = free_port(), free_port()
    start.started([needed("nbdkit", "nbdkit"), "-f", "-p", str(port), "-i", "127.0.0.1", "file", str(image)])

    def listens() -> bool:
        with socket.socket() as asking:
            return asking.connect_ex(("127.0.0.1", port)) == 0

    until(listens)
    start.proxy(f"tcp:127.0.0.1:{port}", **{f"tcp:127.0.0.1:{own}": f"tcp:127.0.0.1:{port}"})
    subprocess.run(["nbdcopy", f"nbd://127.0.0.1:{own}", back], check=True)
    assert digest(image) == digest(back)


@pytest.mark.parametrize("zeroes", [0, 124])
def test_an_export_that_is_asked_for_by_the_old_way(start, zeroes):
    proxy = start.proxy(start.nbdkit("memory", "1M"), "window = 2\n")
    with RawClient(disk_of(proxy)) as client:
        client.receive(len(nbd.GREETING))
        client.send(struct.pack(">I", 1 if zeroes else 3) + nbd.option(nbd.EXPORT_NAME))
        size, flags = struct.unpack(">QH", client.receive(10))
        assert (size, flags & 1) == (1 << 20, 1)
        assert client.receive(zeroes) == bytes(zeroes)
        for at in range(5):
            assert client.read(at, 4096) == bytes(4096)


def test_tls_and_extended_headers_are_refused_and_the_server_hears_nothing_of_them(start, folder):
    seen: list[int] = []

    def serve(session: Session) -> None:
        session.socket.sendall(nbd.GREETING)
        nbd.received(session.socket, 4)
        while len(header := nbd.received(session.socket, 16)) == 16:
            kind, count = struct.unpack(">8xII", header)
            nbd.received(session.socket, count)
            seen.append(kind)
            session.socket.sendall(nbd.option_reply(kind, nbd.ACK))

    with RawServer(folder / "server.sock", serve) as server:
        proxy = start.proxy(server.path)
        with RawClient(disk_of(proxy)) as client:
            client.greet()
            for kind in (nbd.STARTTLS, nbd.EXTENDED_HEADERS):
                client.send(nbd.option(kind))
                assert client.answers(kind)[-1][0] == nbd.ERR_UNSUP
            client.send(nbd.option(nbd.STRUCTURED_REPLY) + nbd.option(nbd.GO, nbd.GO_DATA))
            assert client.answers(nbd.STRUCTURED_REPLY) == [(nbd.ACK, b"")]
            assert client.answers(nbd.GO) == [(nbd.ACK, b"")]
        assert seen == [nbd.STRUCTURED_REPLY, nbd.GO]
        until(proxy.log)
        assert "TLS was refused" in proxy.log() and len(proxy.log().splitlines()) == 1


PHASES = [
    b"",
    nbd.ZEROES_LEFT_OUT[:2],
    nbd.ZEROES_LEFT_OUT,
    nbd.ZEROES_LEFT_OUT + nbd.option(nbd.GO, nbd.GO_DATA)[:9],
    nbd.ZEROES_LEFT_OUT + nbd.option(nbd.GO, nbd.GO_DATA)[:17],
    nbd.ZEROES_LEFT_OUT + nbd.option(nbd.LIST),
    nbd.ZEROES_LEFT_OUT + nbd.option(nbd.ABORT),
    nbd.ZEROES_LEFT_OUT + nbd.option(nbd.GO, nbd.GO_DATA),
    nbd.ZEROES_LEFT_OUT + nbd.option(nbd.GO, nbd.GO_DATA) + nbd.request(nbd.READ, 1, 0, 4096)[:20],
    nbd.ZEROES_LEFT_OUT + nbd.option(nbd.GO, nbd.GO_DATA) + nbd.request(nbd.WRITE, 1, 0, 4096) + b"x" * 99,
]


@pytest.mark.parametrize("phase", range(len(PHASES)))
def test_a_client_that_leaves_in_any_phase_takes_the_servers_side_along(start, folder, phase):
    ended = threading.Event()

    def serve(session: Session) -> None:
        try:
            answering(session)
        finally:
            ended.set()

    with RawServer(folder / "server.sock", serve) as server:
        proxy = start.proxy(server.path)
        with RawClient(disk_of(proxy)) as client:
            client.send(PHASES[phase])
            time.sleep(0.05)
        assert ended.wait(20)
        until(lambda: not proxy.streams())
        assert proxy.log() == ""


@pytest.mark.parametrize("phase", ["greeting", "half", "flags", "option", "reply", "requests", "answer"])
def test_a_server_that_leaves_in_any_phase_takes_the_client_along(start, folder, phase):
    def serve(session: Session) -> None:
        if phase == "greeting":
            return
        session.socket.sendall(nbd.GREETING if phase != "half" else nbd.GREETING[:5])
        if phase in {"half", "flags"}:
            return
        nbd.received(session.socket, 4 if phase == "option" else 26)
        if phase == "option":
            return
        session.socket.sendall(nbd.GO_ANSWER[:9] if phase == "reply" else nbd.GO_ANSWER)
        if phase in {"reply", "requests"}:
            return
        nbd.received(session.socket, 28)
        session.socket.sendall(nbd.simple_reply(7) + b"y" * 100)

    with RawServer(folder / "server.sock", serve) as server:
        proxy = start.proxy(server.path)
        with RawClient(disk_of(proxy)) as client:
            with suppress(BrokenPipeError):  # it may be over already
                client.send(PHASES[7] + nbd.request(nbd.READ, 7, 0, 4096))
            client.drain()
        until(lambda: not proxy.streams())
        assert proxy.log() == ""


def test_a_server_that_is_not_there_is_said_in_a_line(start, folder):
    proxy = start.proxy(folder / "nobody.sock")
    with RawClient(disk_of(proxy)) as client:
        assert client.is_closed()
    until(proxy.log)
    assert proxy.log().count("\n") == 1
    assert "the server cannot be reached" in proxy.log()


GARBAGE = {
    "a greeting": (b"garbage " * 4, None),
    "an oldstyle greeting": (b"NBDMAGIC" + struct.pack(">Q", 0x420281861253) + bytes(136), None),
    "a reply": (None, b"\xff" * 64),
    "a reply to nothing": (None, nbd.simple_reply(99)),
    "a chunk that was not agreed on": (None, nbd.chunk(1, 0)),
}


@pytest.mark.parametrize("what", GARBAGE)
def test_what_no_server_says_closes_that_connection_alone(start, folder, what):
    greeting, reply = GARBAGE[what]

    def serve(session: Session) -> None:
        if greeting is not None:
            session.socket.sendall(greeting)
            nbd.received(session.socket, 1)
            return
        session.negotiate()
        for _ in session.requests():
            session.socket.sendall(reply or b"")

    with (
        RawServer(folder / "server.sock", serve) as server,
        RawServer(folder / "good.sock", answering) as good,
    ):
        proxy = start.proxy(server.path, **{"unix:good.sock": f"unix:{good.path}"})
        with RawClient(proxy.folder / "good.sock") as other, RawClient(disk_of(proxy)) as client:
            other.negotiate()
            if greeting is None:
                client.negotiate()
                client.send(nbd.request(nbd.READ, 1, 0, 512))
            assert client.is_closed()
            assert other.read(1, 4096) == bytes(4096)
        until(proxy.log)
        assert len(proxy.log().splitlines()) == 1


@pytest.mark.parametrize(
    "said",
    [
        b"GET / HTTP/1.1\r\n\r\n" * 3,
        nbd.request(nbd.READ, 1, 0, 512) * 2,
        nbd.request(nbd.WRITE, 1, 0, 1 << 31),
    ],
    ids=["http", "one cookie twice", "too much data"],
)
def test_what_no_client_says_closes_that_connection_alone(start, folder, said):
    gate = threading.Event()

    def serve(session: Session) -> None:
        session.negotiate()
        for asked in session.requests():
            gate.wait(20)
            session.answer(asked)

    with RawServer(folder / "server.sock", serve) as server:
        proxy = start.proxy(server.path)
        with RawClient(disk_of(proxy)) as other, RawClient(disk_of(proxy)) as client:
            other.negotiate()
            client.negotiate()
            client.send(said)
            assert client.is_closed()
            gate.set()
            assert other.read(1, 4096) == bytes(4096)
        until(proxy.log)
        assert len(proxy.log().splitlines()) == 1


def test_a_slow_reader_holds_up_nobody_but_itself(start, folder):
    with RawServer(folder / "server.sock", answering) as server:
        proxy = start.proxy(server.path)
        with RawClient(disk_of(proxy)) as slow, RawClient(disk_of(proxy)) as other:
            slow.negotiate()
            other.negotiate()
            length, count = 1 << 20, 16
            slow.send(b"".join(nbd.request(nbd.READ, at, 0, length) for at in range(count)))
            for at in range(100):
                assert other.read(at, 4096) == bytes(4096)
            for at in range(count):
                assert slow.receive(16) == nbd.simple_reply(at)
                assert slow.receive(length) == bytes(length)


def test_what_was_asked_before_the_end_is_answered(start, folder):
    def serve(session: Session) -> None:
        session.negotiate()
        for asked in list(session.requests()):  # all have come, and the client has ended its sending
            if asked.command != nbd.DISCONNECT:
                session.answer(asked)

    with RawServer(folder / "server.sock", serve) as server:
        proxy = start.proxy(server.path)
        with RawClient(disk_of(proxy)) as client:
            client.negotiate()
            client.send(b"".join(nbd.request(nbd.READ, at, 0, 512) for at in range(40)))
            client.send(nbd.request(nbd.DISCONNECT, 99))
            client.socket.shutdown(socket.SHUT_WR)
            for at in range(40):
                assert client.receive(528) == nbd.simple_reply(at) + bytes(512)
            assert client.is_closed()


@pytest.mark.slow
def test_a_long_answer_goes_on_after_the_end_of_sending(start, folder):
    pieces, lingers_s = 46, 30.0

    def serve(session: Session) -> None:
        session.negotiate()
        (asked,) = session.requests()
        session.socket.sendall(nbd.simple_reply(asked.cookie))
        for _ in range(pieces):
            time.sleep(0.75)
            session.socket.sendall(bytes(asked.length // pieces))

    with RawServer(folder / "server.sock", serve) as server, ExitStack() as stack:
        proxy = start.proxy(server.path)
        lengths = [512 * pieces, 1024 * pieces]  # as they come, and from page to page
        clients = [stack.enter_context(RawClient(disk_of(proxy))) for _ in lengths]
        begun_s = time.monotonic()
        for client, length in zip(clients, lengths, strict=True):
            client.negotiate()
            client.send(nbd.request(nbd.READ, 1, 0, length))
            client.socket.shutdown(socket.SHUT_WR)
        for client, length in zip(clients, lengths, strict=True):
            assert client.receive(16 + length) == nbd.simple_reply(1) + bytes(length)
            assert client.is_closed()
        assert time.monotonic() - begun_s > lingers_s


def test_killed_it_closes_both_sides(start, folder):
    ended = threading.Event()

    def serve(session: Session) -> None:
        answering(session)
        ended.set()

    with RawServer(folder / "server.sock", serve) as server:
        proxy = start.proxy(server.path)
        with RawClient(disk_of(proxy)) as client:
            client.negotiate()
            assert client.read(1, 512) == bytes(512)
            proxy.process.kill()
            assert client.is_closed()
            assert ended.wait(20)


def test_told_to_end_it_leaves_no_socket(start, folder):
    with RawServer(folder / "server.sock", answering) as server:
        proxy = start.proxy(server.path)
        with RawClient(disk_of(proxy)) as client:
            client.negotiate()
            assert proxy.end() == 0
            assert client.is_closed()
        assert not disk_of(proxy).exists() and not proxy.control.exists()
        assert proxy.log() == ""


def test_a_socket_in_use_is_refused_and_one_that_was_left_is_taken_over(start, folder):
    with RawServer(folder / "server.sock", answering) as server:
        proxy = start.proxy(server.path)
        done = subprocess.run(proxy.process.args, capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert "route.listen = unix:" in done.stderr and len(done.stderr.splitlines()) == 1
        with RawClient(disk_of(proxy)) as client:
            client.negotiate()
        proxy.process.kill()
        proxy.process.wait()
        start.started(proxy.process.args)

        def listens() -> bool:
            with socket.socket(socket.AF_UNIX) as asking:
                return asking.connect_ex(str(disk_of(proxy))) == 0

        until(listens)
        with RawClient(disk_of(proxy)) as client:
            client.negotiate()
            assert client.read(1, 4096) == bytes(4096)


def test_a_server_that_dies_under_load_ends_the_client(start, folder):
    path = folder / "server.sock"
    words = ["-f", "-U", path, "--filter=delay", "memory", "64M", "rdelay=5ms"]
    server = start.started([needed("nbdkit", "nbdkit"), *words])
    until(path.exists)
    proxy = start.proxy(path)
    uri = f"--uri=nbd+unix:///?socket={disk_of(proxy)}"
    load = start.started(
        [
            needed("fio", "fio"),
            "--name=load",
            "--ioengine=nbd",
            uri,
            "--rw=randread",
            "--bs=4k",
            "--iodepth=16",
            "--time_based",
            "--runtime=600",
            f"--output={folder}/fio.log",
        ]
    )

    def is_served() -> bool:
        assert load.poll() is None, (folder / "fio.log").read_text() + proxy.log()
        return any(one["replies"] > 10 for one in proxy.streams())

    until(is_served, 90.0)
    server.send_signal(signal.SIGKILL)
    assert load.wait(20) != 0
    until(lambda: not proxy.streams())


def test_fio_works_through_it(start):
    proxy = start.proxy(start.nbdkit("memory", "64M"))
    found = fio(disk_of(proxy), depth=16, seconds=1, read="randrw")
    assert found["read"]["iops"] > 0 and found["write"]["iops"] > 0
