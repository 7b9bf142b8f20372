"""What a proxy's clients do is written down while somebody wants to know, and read in parts."""

from __future__ import annotations

import contextlib
import json
import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import http_peers
import resp_peers
from ascar.features import TraceOperation
from ascar.messaging import decode
from ascar.sharp.deployment.messages import RecordingPart
from ascar.sharp.deployment.recording import recorded_of
from data_plane_peers import disk_of
from http_peers import HTTP, answered
from http_peers import request as request_of_http
from nbd_peers import FLUSH, READ, WRITE, RawClient, RawServer, Session, request
from resp_peers import RespClient, command
from waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ascar.sharp.deployment.recording import ControllerTrace
    from data_plane_peers import Proxy, Starter

TAKES_S = 0.02
CACHE = 5


def serve(session: Session) -> None:
    """Answers one request after the other, each after a while."""
    session.negotiate()
    for asked in session.requests():
        time.sleep(TAKES_S)
        session.answer(asked)


@pytest.fixture
def proxy(start: Starter, folder: Path) -> Iterator[Proxy]:
    with RawServer(folder / "server.sock", serve) as target:
        yield start.proxy(target.path, "window = 1\n")


def begun(proxy: Proxy, seconds: float) -> int:
    """The number of a recording that has begun."""
    return proxy.ask({"message": "rules.record/1", "seconds": seconds})["number"]


def part(proxy: Proxy, number: int, at: int = 0) -> RecordingPart:
    asked = {"message": "rules.read/1", "number": number, "part": at}
    return decode(proxy.ask_line(json.dumps(asked).encode() + b"\n"), RecordingPart)


def recorded(proxy: Proxy, number: int) -> ControllerTrace:
    """All of a recording, once it is over."""
    first = until(lambda: (found := part(proxy, number)).parts and found)
    return recorded_of([first, *(part(proxy, number, at) for at in range(1, first.parts))])


def test_requests_are_written_down_as_they_were_asked_and_as_they_left(proxy: Proxy) -> None:
    with RawClient(disk_of(proxy)) as client, RawClient(disk_of(proxy)) as other:
        client.negotiate()
        other.negotiate()
        client.read(1, 4096)  # before anybody wants to know
        number, before_s = begun(proxy, 0.8), time.time()
        assert part(proxy, number).parts is None
        # Two of one connection at once: the second one waits for the window.
        client.send(request(READ, 7, 8192, 4096) + request(READ, 8, 12288, 4096))
        client.receive(2 * (16 + 4096))
        for asked in (request(WRITE, 7, 1 << 20, 512) + bytes(512), request(FLUSH, 8), request(CACHE, 9)):
            other.send(asked)
            other.receive(16)
        client.send(request(READ, 9, (1 << 64) - 4096, 512))
        client.receive(16 + 512)
        found = recorded(proxy, number)
        client.read(10, 4096)  # after it
    operations, requests = found.operations, found.requests
    kinds = [TraceOperation.READ, TraceOperation.READ, TraceOperation.WRITE, TraceOperation.SYNC]
    assert operations.operation.tolist() == [*kinds, TraceOperation.READ]
    assert operations.offset_bytes.tolist() == [8192, 12288, 1 << 20, 0, 1 << 62]
    assert operations.size_bytes.tolist() == [4096, 4096, 512, 0, 512]
    assert len(set(operations.thread.tolist())) == 2
    assert requests.operation.tolist() == [0, 0, 1, 0]
    assert set(requests.thread.tolist()) == {requests.thread[0]}, "one client, one stream"
    assert len(set(operations.file.tolist())) == 1
    # From the asking, the second one waited for the first; from the leaving, it did not.
    assert TAKES_S <= operations.latency_s[0] < operations.latency_s[1] - 0.8 * TAKES_S
    assert TAKES_S <= requests.latency_s[1] < 2 * TAKES_S
    assert abs(found.begin_s - before_s) < 0.5
    assert found.end_s - found.begin_s == pytest.approx(0.8)
    assert (operations.seconds >= found.begin_s).all() and (operations.seconds < found.end_s).all()
    waited_s = float((operations.latency_s[:2] - requests.latency_s[:2]).sum())
    assert found.waiting_mean == pytest.approx(waited_s / 0.8, rel=0.2)


def test_streams_that_end_or_begin_meanwhile_are_in_it_and_what_is_in_flight_has_no_latency(
    proxy: Proxy,
) -> None:
    number = begun(proxy, 0.6)
    for at in range(3):
        with RawClient(disk_of(proxy)) as client:
            client.negotiate()
            client.read(1, 4096, 4096 * at)
        until(lambda: not proxy.streams())
    with RawClient(disk_of(proxy)) as client:
        client.negotiate()
        end_s = time.monotonic() + 0.7
        cookie = 0
        while time.monotonic() < end_s:
            client.read(cookie, 512)
            cookie += 1
        found = recorded(proxy, number)
    assert len(set(found.operations.thread.tolist())) == 4
    assert len(set(found.requests.thread.tolist())) == 4
    assert not np.isnan(found.operations.latency_s[:-1]).any()
    assert np.isnan(found.operations.latency_s).sum() <= 1
    with RawClient(disk_of(proxy)) as client:
        client.negotiate()
        sent = answered_bytes = 0

        def on_its_way() -> bool:
            """Whether one is; each takes only a while, and the next one follows its answer."""
            nonlocal sent, answered_bytes
            if answered_bytes == sent * (16 + 512):
                client.send(request(READ, sent, 0, 512))
                sent += 1
            if any(stream["in_flight"] for stream in proxy.streams()):
                return True
            with contextlib.suppress(BlockingIOError):
                answered_bytes += len(client.socket.recv(16 + 512, socket.MSG_DONTWAIT))
            return False

        until(on_its_way)
        assert len(recorded(proxy, begun(proxy, 0.1)).operations) == 0, "it had left before"


def test_what_is_wrong_is_refused_and_a_new_recording_takes_the_place_of_the_last(proxy: Proxy) -> None:
    ask = proxy.ask
    for seconds in (0, -1, 1e308, 3_601):
        assert "seconds = " in ask({"message": "rules.record/1", "seconds": seconds})["reason"]
    assert "no such recording" in ask({"message": "rules.read/1", "number": 1, "part": 0})["reason"]
    first, second = begun(proxy, 3_600), begun(proxy, 0.05)
    assert second == first + 1
    assert "no such recording" in ask({"message": "rules.read/1", "number": first, "part": 0})["reason"]
    until(lambda: part(proxy, second).parts)
    refused = ask({"message": "rules.read/1", "number": second, "part": 1})
    assert refused["reason"] == "part = 1: must be from 0 to 0"
    for wrong in ({"number": -1, "part": 0}, {"number": second}, {"number": second, "part": 2**70}):
        assert ask({"message": "rules.read/1", **wrong})["message"] == "refusal/1"


def test_objects_are_files_and_ranges_are_places(start: Starter, folder: Path) -> None:
    def serve_objects(session: Session) -> None:
        for asked in http_peers.requests(session):
            time.sleep(TAKES_S)
            count = {"GET": 1_000, "PUT": 1}.get(asked.head.split()[0].decode(), 0)
            head = f"HTTP/1.1 200 OK\r\nContent-Length: {count}\r\n\r\n"
            session.socket.sendall(head.encode() + bytes(count))

    with RawServer(folder / "server.sock", serve_objects) as target:
        proxy = start.proxy(target.path, terms=HTTP)
        number = begun(proxy, 0.8)
        with contextlib.closing(socket.socket(socket.AF_UNIX)) as client:
            client.settimeout(20.0)
            client.connect(str(disk_of(proxy)))
            for method, path, *more in (
                ("GET", "/b/one?x-id=GetObject", "Range: bytes=4096-5095"),
                ("GET", "/b/one", "X-Amz-Date: 1"),
                ("PUT", "/b/two", "Content-Length: 500"),
                ("HEAD", "/b/one"),
                ("DELETE", "/b/two"),
                ("PUT", "/b/two", "Transfer-Encoding: chunked"),
            ):
                body = {"500": bytes(500), "chunked": b"3\r\nabc\r\n0\r\n\r\n"}
                sent = body.get(more[0].rpartition(" ")[2], b"") if more else b""
                client.sendall(request_of_http(path, *more, method=method, body=sent))
                answered(client, method)
        found = recorded(proxy, number).operations
    kinds = [TraceOperation.READ, TraceOperation.READ, TraceOperation.WRITE, TraceOperation.WRITE]
    assert found.operation.tolist() == kinds
    assert found.offset_bytes.tolist() == [4096, 0, 0, 0]
    assert found.size_bytes.tolist() == [1_000, 1_000, 500, 3]
    one, other, *two = found.file.tolist()
    assert one == other and two[0] == two[1] != one
    assert (found.latency_s >= TAKES_S).all()


def test_values_are_files_by_their_keys_and_what_has_none_is_not_written_down(
    start: Starter, folder: Path
) -> None:
    def serve_values(session: Session) -> None:
        for asked in resp_peers.commands(session):
            time.sleep(TAKES_S)
            session.socket.sendall(b"$5\r\nvalue\r\n" if asked[0] == b"GET" else b"+OK\r\n")

    with RawServer(folder / "server.sock", serve_values) as target:
        proxy = start.proxy(target.path, terms='protocol = "resp"\n')
        number = begun(proxy, 0.8)
        with RespClient(disk_of(proxy)) as client:
            for words in (
                ("PING",),
                ("SET", "a", "1"),
                ("GET", "a"),
                ("AUTH", "a"),
                ("BLPOP", "a", "0"),
                ("hset", "b", "f", "v"),
            ):
                client.ask(*words)
        found = recorded(proxy, number).operations
    assert found.operation.tolist() == [TraceOperation.WRITE, TraceOperation.READ, TraceOperation.WRITE]
    assert found.size_bytes.tolist() == [
        len(command("SET", "a", "1")),
        len(b"$5\r\nvalue\r\n"),
        len(command("hset", "b", "f", "v")),
    ]
    first, again, other = found.file.tolist()
    assert first == again != other
    assert (found.latency_s >= TAKES_S).all()


def test_protocols_are_written_down_side_by_side(start: Starter, folder: Path) -> None:
    def serve_ok(session: Session) -> None:
        for _ in resp_peers.commands(session):
            session.socket.sendall(b"+OK\r\n")

    with (
        RawServer(folder / "server.sock", serve) as blocks,
        RawServer(folder / "values.sock", serve_ok) as values,
    ):
        other = f'[[route]]\nlisten = "unix:values"\nserver = "unix:{values.path}"\nprotocol = "resp"\n'
        proxy = start.proxy(blocks.path, terms=other)
        number = begun(proxy, 0.4)
        with RawClient(disk_of(proxy)) as client, RespClient(proxy.folder / "values") as teller:
            client.negotiate()
            client.read(1, 4096)
            teller.ask("SET", "a", "1")
        found = recorded(proxy, number).operations
    assert found.operation.tolist() == [TraceOperation.READ, TraceOperation.WRITE]
    assert len(set(found.file.tolist())) == len(set(found.thread.tolist())) == 2


@pytest.mark.slow
def test_memory_is_bounded_however_much_is_written_down(start: Starter, folder: Path) -> None:
    def at_once(session: Session) -> None:
        session.negotiate()
        for asked in session.requests():
            session.answer(asked)

    with RawServer(folder / "server.sock", at_once) as target:
        proxy = start.proxy(target.path)
        number = begun(proxy, 3_600)
        with RawClient(disk_of(proxy)) as client:
            client.negotiate()
            for at in range(0, 120_000, 500):
                client.send(b"".join(request(READ, at + one, 512 * one, 1) for one in range(500)))
                client.receive(500 * 17)
        assert _memory_kib(proxy) < 40_000
        # It is told at its end, however soon its room was used up.
        assert part(proxy, number).parts is None
        again = begun(proxy, 0.05)
        until(lambda: part(proxy, again).parts)


def _memory_kib(proxy: Proxy) -> int:
    status = Path("/proc", str(proxy.process.pid), "status").read_text("ascii")
    return int(status.partition("VmRSS:")[2].split()[0])
