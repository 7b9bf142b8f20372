"""HTTP through the proxy: bytes as they were, windows and paces, ends of either side, and what is refused."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from benchmarks.harness import free_port

from certificates import Authority
from data_plane_peers import disk_of, needed
from http_peers import HTTP, OK, TcpServer, answered, answering, head_of, request, requests
from nbd_peers import CountingServer, RawClient, RawServer, Session
from waiting import until

if TYPE_CHECKING:
    from data_plane_peers import Proxy, Starter

TWO_AT_ONCE = "1,1000000\n0,2147483647,0,2147483647,100,2147483647,0,200,0\n"


def status_of(said: bytes) -> int:
    """The status of a response; 0: there is none."""
    return int(said.split(b" ", 2)[1]) if said else 0


def until_closed(client: RawClient) -> bytes:
    """All that comes until the other side ends."""
    with client.socket.makefile("rb") as stream:
        return stream.read()


def counting(path: Path, delay_s: float) -> CountingServer:
    """A server that counts how many requests it has at once, on all connections."""
    return CountingServer(path, delay_s, requests, lambda session, _: session.socket.sendall(OK))


def all_at_once(proxy: Proxy, connections: int, count: int) -> None:
    """So many requests on each of so many connections, all of which are answered."""

    def ask() -> None:
        with RawClient(disk_of(proxy)) as client:
            for _ in range(count):
                client.send(request())
                assert client.receive(len(OK)) == OK

    threads = [threading.Thread(target=ask) for _ in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_what_a_client_has_signed_passes_as_it_is(start: Starter, folder: Path):
    asked = (
        b"PUT /bucket/key%20with%2Fslash//x?list-type=2&prefix=a%2Bb+c HTTP/1.1\r\n"
        b"hOsT:s3.example:9000\r\n"
        b"X-Amz-Date:  20261130T070000Z  \r\n"
        b"Authorization: AWS4-HMAC-SHA256 Credential=a/20261130/r/s3/aws4_request, "
        b"SignedHeaders=host;x-amz-date, Signature=00\r\n"
        b"x-amz-meta-b: 2\r\nX-Amz-Meta-A: 1\r\nx-amz-meta-b: 1\r\nx-amz-meta-e: \xc3\xbc\xff\r\n"
        b"Content-Length: 5\r\nConnection: keep-alive\r\n\r\nhello"
    )
    told = (
        b'HTTP/1.1 200 \r\nx-AMZ-id-2:  a\r\nETag: "b"\r\nETAG: c\r\nServer:\r\nKeep-Alive: timeout=5\r\n'
        b"content-length: 3\r\n\r\nabc"
    )
    heard = []

    def serve(session: Session) -> None:
        for _ in range(2):
            heard.append(session.socket.recv(len(asked), socket.MSG_WAITALL))
            session.socket.sendall(told)
        session.socket.recv(1)

    with RawServer(folder / "server.sock", serve) as server:
        proxy = start.proxy(server.path, terms=HTTP)
        with RawClient(disk_of(proxy)) as client:
            for _ in range(2):
                client.send(asked)
                assert client.receive(len(told)) == told
        until(lambda: not proxy.streams())
        assert heard == [asked, asked]
        assert proxy.log() == ""


def test_what_is_of_one_connection_is_not_passed_on(start: Starter, folder: Path):
    heard = []

    def serve(session: Session) -> None:
        for one in requests(session):
            heard.append(one.head)
            session.socket.sendall(OK.replace(b"\r\n", b"\r\nUpgrade: h2c\r\nConnection: upgrade\r\n", 1))

    with RawServer(folder / "server.sock", serve) as server:
        proxy = start.proxy(server.path, terms=HTTP)
        with RawClient(disk_of(proxy)) as client:
            client.send(request("/", "Connection: X-Own, close", "TE: trailers", "x-own: 1", "X-Other: 2"))
            assert client.receive(len(OK)) == OK
        assert heard == [request("/", "Connection: close", "X-Other: 2")]


def test_no_more_than_the_window_is_in_flight_on_all_connections(start: Starter, folder: Path):
    with counting(folder / "server.sock", 0.02) as server:
        proxy = start.proxy(server.path, "window = 3\n", terms=HTTP)
        all_at_once(proxy, 8, 4)
        assert server.most == 3
        assert proxy.log() == ""


def test_requests_leave_a_pace_apart(start: Starter, folder: Path):
    with counting(folder / "server.sock", 0.0) as server:
        proxy = start.proxy(server.path, "gap_us = 20000\n", terms=HTTP)
        all_at_once(proxy, 2, 6)
        assert sum(server.gaps_s) > 11 * 0.02 * 0.95


def test_rules_hold_streams_at_work(start: Starter, folder: Path):
    with counting(folder / "server.sock", 0.02) as server:
        proxy = start.proxy(server.path, terms=HTTP)
        with RawClient(disk_of(proxy)) as kept:
            all_at_once(proxy, 6, 2)
            assert server.most > 3
            asked = {"message": "rules.load/1", "rules": "a1", "text": TWO_AT_ONCE, "within_s": 30.0}
            assert proxy.ask(asked)["rules"] == "a1"
            for _ in range(3):  # the window begins at 8, and is 2 from the second reply on
                kept.send(request())
                assert kept.receive(len(OK)) == OK
            server.most = 0
            all_at_once(proxy, 6, 2)
            assert server.most == 2


def test_pipelined_requests_are_answered_in_their_order(start: Starter, folder: Path):
    def serve(session: Session) -> None:
        for one in requests(session):
            body = one.target.encode() + one.body
            session.socket.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))

    with RawServer(folder / "server.sock", serve) as server:
        proxy = start.proxy(server.path, "window = 2\n", terms=HTTP)
        with RawClient(disk_of(proxy)) as client:
            chunked = b"2\r\nab\r\n1;x\r\nc\r\n0\r\n\r\n"
            client.send(
                request("/1")
                + request("/2", "Content-Length: 3", method="PUT", body=b"xyz")
                + b"\r\n"
                + request("/3", "Transfer-Encoding: chunked", method="POST", body=chunked)
                + request("/4", "Connection: close")
            )
            said = b"".join(
                b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
                for body in (b"/1", b"/2xyz", b"/3abc", b"/4")
            )
            assert client.receive(len(said)) == said


def test_bodies_pass_piece_by_piece(start: Starter, folder: Path):
    def serve(session: Session) -> None:
        with session.socket.makefile("rb") as stream:
            head_of(stream)
            session.socket.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            while count := int(stream.readline(), 16):
                session.socket.sendall(b"%x\r\n%s\r\n" % (count, stream.read(count)))
                stream.readline()
            session.socket.sendall(b"0\r\n\r\n")

    with RawServer(folder / "server.sock", serve) as server:
        proxy = start.proxy(server.path, "window = 1\n", terms=HTTP)
        with RawClient(disk_of(proxy)) as client:
            client.send(request("/", "Transfer-Encoding: chunked", method="POST"))
            assert client.receive(47) == b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
            for count in (1, 100, 300_000, 5):
                chunk = b"%x\r\n%s\r\n" % (count, bytes(count))
                client.send(chunk)
                assert client.receive(len(chunk)) == chunk
            client.send(b"0\r\n\r\n")
            assert client.receive(5) == b"0\r\n\r\n"
        (gone,) = until(lambda: proxy.ask({"message": "rules.observe/1"})["gone"])
        assert (gone["read_bytes"], gone["written_bytes"], gone["replies"]) == (300_106, 300_106, 1)


def test_a_large_object_is_never_in_memory(start: Starter, folder: Path):
    count = 64 << 20

    def serve(session: Session) -> None:
        with session.socket.makefile("rb") as stream:
            assert b"%d" % count in head_of(stream)
            left = count
            while left:
                left -= len(stream.read1(min(left, 1 << 20)))
            session.socket.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % count)
            for _ in range(count >> 20):
                session.socket.sendall(bytes(1 << 20))

    with RawServer(folder / "server.sock", serve) as server:
        proxy = start.proxy(server.path, terms=HTTP)
        with RawClient(disk_of(proxy)) as client:
            client.send(request("/", f"Content-Length: {count}", method="PUT"))
            for _ in range(count >> 20):
                client.send(bytes(1 << 20))
            with client.socket.makefile("rb") as stream:
                assert head_of(stream).startswith(b"HTTP/1.1 200")
                left = count
                while left:
                    left -= len(stream.read1(min(left, 1 << 20)))
        peak_kib = int(_status(proxy)["VmHWM"].split()[0])
        assert peak_kib < 32 << 10


def _status(proxy: Proxy) -> dict[str, str]:
    lines = Path(f"/proc/{proxy.process.pid}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def test_the_servers_100_is_what_the_client_waits_for(start: Starter, folder: Path):
    may_go_on = threading.Event()

    def serve(session: Session) -> None:
        with session.socket.makefile("rb") as stream:
            head_of(stream)
            may_go_on.wait(20)
            session.socket.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
            assert stream.read(4) == b"data"
            session.socket.sendall(OK)
            head_of(stream)
            session.socket.sendall(
                b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            )

    with RawServer(folder / "server.sock", serve) as server:
        proxy = start.proxy(server.path, terms=HTTP)
        with RawClient(disk_of(proxy)) as client:
            expecting = request("/", "Expect: 100-continue", "Content-Length: 4", method="PUT")
            client.send(expecting)
            client.socket.settimeout(0.2)
            with pytest.raises(TimeoutError):
                client.receive(1)
            client.socket.settimeout(20)
            may_go_on.set()
            assert client.receive(25) == b"HTTP/1.1 100 Continue\r\n\r\n"
            client.send(b"data")
            assert client.receive(len(OK)) == OK
            client.send(expecting)
            assert status_of(until_closed(client)) == 403


def test_a_client_that_leaves_gives_its_place_back(start: Starter, folder: Path):
    ended = threading.Event()

    def serve(session: Session) -> None:
        for one in requests(session):
            if one.target == "/hangs":
                assert session.socket.recv(1) == b""
                ended.set()
                return
            session.socket.sendall(OK)

    with RawServer(folder / "server.sock", serve) as server:
        proxy = start.proxy(server.path, "window = 1\n", terms=HTTP)
        with RawClient(disk_of(proxy)) as waits, RawClient(disk_of(proxy)) as behind:
            with RawClient(disk_of(proxy)) as leaves:
                leaves.send(request("/hangs"))
                until(lambda: [it for it in proxy.streams() if it["in_flight"] == 1])
                waits.send(request())
                behind.send(request())
                until(lambda: proxy.streams()[0]["waiting"] == 2)
            # One that waits leaves as well.
            waits.socket.close()
            begun_s = time.monotonic()
            assert behind.receive(len(OK)) == OK
            assert time.monotonic() - begun_s < 5
            assert ended.wait(20), "the server is told"
        until(lambda: not proxy.streams())
        assert proxy.log() == ""


def test_a_server_that_leaves_gives_the_place_back(start: Starter, folder: Path):
    def serve(session: Session) -> None:
        for one in requests(session):
            if one.target == "/dies":
                time.sleep(0.1)
                return
            session.socket.sendall(OK)

    with RawServer(folder / "server.sock", serve) as server:
        proxy = start.proxy(server.path, "window = 1\n", terms=HTTP)
        with RawClient(disk_of(proxy)) as one, RawClient(disk_of(proxy)) as other:
            one.send(request("/dies"))
            until(lambda: [it for it in proxy.streams() if it["in_flight"] == 1])
            other.send(request())
            begun_s = time.monotonic()
            assert other.receive(len(OK)) == OK
            assert time.monotonic() - begun_s < 1.5, "also before the other client has heard of it"
            said = until_closed(one)
            assert status_of(said) == 502 and b"has ended the connection without an answer" in said


@pytest.mark.parametrize(
    ("said", "status", "why"),
    [
        (b"", 502, "without an answer"),
        (b"NBDMAGIC", 502, "a status line"),
        (b"HTTP/1.1 200 OK\nContent-Length: 0\n\n", 502, "carriage return"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 502, "beside"),
        (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: a\r\n\r\n", 502, "101"),
        (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 10_000, 502, "longer than"),
    ],
)
def test_a_server_that_answers_nothing_or_garbage(
    start: Starter, folder: Path, said: bytes, status: int, why: str
):
    def serve(session: Session) -> None:
        session.socket.recv(1)
        session.socket.sendall(said)
        if said:
            session.socket.recv(1 << 16)
            session.socket.recv(1)

    with RawServer(folder / "server.sock", serve) as server:
        proxy = start.proxy(server.path, terms=HTTP)
        for method in ("GET", "HEAD"):
            with RawClient(disk_of(proxy)) as client:
                client.send(request(method=method))
                found = until_closed(client)
                assert status_of(found) == status
                assert (why.encode() in found) == (method == "GET")
        until(lambda: not proxy.streams())


def test_a_server_that_cannot_be_reached(start: Starter, folder: Path):
    proxy = start.proxy(folder / "nobody.sock", terms=HTTP)
    for method, told in (("GET", True), ("HEAD", False)):
        with RawClient(disk_of(proxy)) as client:
            client.send(request(method=method))
            said = until_closed(client)
            assert status_of(said) == 502
            assert (b"the server cannot be reached" in said) == told
    until(lambda: proxy.log().count("the server cannot be reached") == 2)
    (gone,) = proxy.ask({"message": "rules.observe/1"})["gone"]
    assert gone["refused"] == 2


def test_a_server_that_says_nothing(start: Starter, folder: Path):
    def serve(session: Session) -> None:
        for one in requests(session):
            if one.target == "/half":
                session.socket.sendall(OK[:-1])
            elif one.target == "/":
                session.socket.sendall(OK)

    with RawServer(folder / "server.sock", serve) as server:
        proxy = start.proxy(server.path, "answer_s = 1\n", terms=HTTP)
        with RawClient(disk_of(proxy)) as client, RawClient(disk_of(proxy)) as half:
            client.send(request())
            assert client.receive(len(OK)) == OK
            time.sleep(1.3)  # nothing is owed
            half.send(request("/half"))
            client.send(request("/silent"))
            said = until_closed(client)
            assert status_of(said) == 504
            assert b"the server has said nothing for 1 s" in said
            assert until_closed(half) == OK[:-1], "an answer that has begun is not followed by another"
        until(lambda: [it for it in proxy.ask({"message": "rules.observe/1"})["gone"] if it["silent"] == 2])


def test_an_answer_that_is_cut_is_not_taken_for_whole(start: Starter, folder: Path):
    port = free_port()

    def serve(session: Session) -> None:
        for one in requests(session):
            if one.target == "/long":
                session.socket.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n" + bytes(100_000))
                return
            session.socket.sendall(b"HTTP/1.0 200 OK\r\n\r\nabc")
            if one.target == "/reset":
                time.sleep(0.1)
                at_once = struct.pack("ii", 1, 0)
                session.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)
            return

    with TcpServer(serve) as server:
        proxy = start.proxy(server.address, terms=HTTP, listen=f"tcp:127.0.0.1:{port}")

        def ask(target: str) -> tuple[int, bytes]:
            with socket.create_connection(("127.0.0.1", port), 20) as client:
                client.sendall(request(target))
                return answered(client)

        assert ask("/closes") == (200, b"abc")
        with pytest.raises(http.client.IncompleteRead):
            ask("/long")
        with pytest.raises(ConnectionResetError):
            ask("/reset")
        until(lambda: not proxy.streams())


def test_an_idle_connection_that_the_server_ends_just_ends(start: Starter, folder: Path):
    def serve(session: Session) -> None:
        for _ in requests(session):
            session.socket.sendall(OK)
            return

    with RawServer(folder / "server.sock", serve) as server:
        proxy = start.proxy(server.path, terms=HTTP)
        with RawClient(disk_of(proxy)) as client:
            client.send(request())
            assert client.receive(len(OK)) == OK
            assert until_closed(client) == b"", "its next request goes on another connection"
        assert proxy.log() == ""


@pytest.mark.parametrize(
    ("said", "status"),
    [
        (request("/", "Content-Length: 1", "Transfer-Encoding: chunked", method="POST"), 400),
        (request("/", "Transfer-Encoding: chunked", "Content-Length: 1", method="POST"), 400),
        (request("/", "Content-Length: 1", "Content-Length: 2", method="POST"), 400),
        (request("/", "Transfer-Encoding : chunked", method="POST"), 400),
        (request("/", "X: a", " Transfer-Encoding: chunked", method="POST"), 400),
        (request("/", "Transfer-Encoding: xchunked", method="POST"), 501),
        (request("/").replace(b"\r\n", b"\n"), 400),
        (request("/", "Host: other"), 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET /\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
        (b"\0" * 10, 400),
        (request("/", "X: " + "a" * 40_000), 431),
        (request("/", *(f"X-{at}: a" for at in range(200))), 431),
        (request("s3.example:443", method="CONNECT"), 501),
        (request("/", "Connection: Upgrade", "Upgrade: websocket"), 501),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    ],
)
def test_what_no_two_would_read_alike_is_refused(start: Starter, folder: Path, said: bytes, status: int):
    heard = []

    def serve(session: Session) -> None:
        heard.append(session.socket.recv(1 << 16))

    with RawServer(folder / "server.sock", serve) as server:
        proxy = start.proxy(server.path, terms=HTTP)
        with RawClient(disk_of(proxy)) as client:
            client.send(said)
            found = until_closed(client)
            assert status_of(found) == status
            assert found.endswith(b"\n") and b"Connection: close\r\n" in found
        assert until(lambda: heard) == [b""], "the server hears nothing of it"
        (line,) = until(proxy.log).splitlines()
        assert f"({status}); it is closed" in line


def test_a_refusal_comes_behind_earlier_answers(start: Starter, folder: Path):
    def serve(session: Session) -> None:
        for _ in requests(session):
            time.sleep(0.2)
            session.socket.sendall(OK)

    with RawServer(folder / "server.sock", serve) as server:
        proxy = start.proxy(server.path, "window = 1\n", terms=HTTP)
        with RawClient(disk_of(proxy)) as client:
            client.send(request() + request() + request("a:1", method="CONNECT") + request())
            found = until_closed(client)
            assert found.startswith(OK + OK + b"HTTP/1.1 501 ")
            assert found.count(b"HTTP/1.1") == 3


@pytest.mark.parametrize("answers", [False, True])
def test_a_bad_chunk_ends_the_connection(start: Starter, folder: Path, answers: bool):
    heard = []

    def serve(session: Session) -> None:
        with session.socket.makefile("rb") as stream:
            head_of(stream)
            if answers:
                session.socket.sendall(OK)
            heard.append(stream.read())

    with RawServer(folder / "server.sock", serve) as server:
        proxy = start.proxy(server.path, terms=HTTP)
        with RawClient(disk_of(proxy)) as client:
            client.send(request("/", "Transfer-Encoding: chunked", method="POST", body=b"3\r\nabc\r\n"))
            if answers:
                assert client.receive(len(OK)) == OK
            client.send(b"zz\r\n0\r\n\r\n" + request())
            said = until_closed(client)
            assert status_of(said) == (0 if answers else 400)
        until(lambda: heard)
        assert heard[0].startswith(b"3\r\nabc") and b"zz" not in heard[0] and b"GET" not in heard[0]


def test_a_refusal_reaches_a_client_that_goes_on_sending(start: Starter, folder: Path):
    def serve(session: Session) -> None:
        with session.socket.makefile("rb") as stream:
            head_of(stream)
            refusal = b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            session.socket.sendall(refusal)
            session.socket.shutdown(socket.SHUT_WR)
            time.sleep(0.3)

    with RawServer(folder / "server.sock", serve) as server:
        proxy = start.proxy(server.path, terms=HTTP)
        with RawClient(disk_of(proxy)) as client:
            client.send(request("/", f"Content-Length: {64 << 20}", method="PUT"))
            sending = threading.Thread(target=_send_all, args=(client, 64))
            sending.start()
            assert status_of(until_closed(client)) == 413
            sending.join()


def _send_all(client: RawClient, count: int) -> None:
    with suppress(OSError):  # the server has had enough
        for _ in range(count):
            client.send(bytes(1 << 20))


def test_overloads_are_counted_and_told(start: Starter, folder: Path):
    statuses = iter([b"503 Slow Down", b"429 Too Many Requests", b"500 Internal Server Error", b"200 OK"])

    def serve(session: Session) -> None:
        for _ in requests(session):
            session.socket.sendall(OK.replace(b"200 OK", next(statuses)))

    with RawServer(folder / "server.sock", serve) as server:
        proxy = start.proxy(server.path, "window = 1\n", terms=HTTP)
        with RawClient(disk_of(proxy)) as client:
            for status in (503, 429, 500, 200):
                client.send(request())
                assert answered(client.socket)[0] == status
            (stream,) = proxy.streams()
            assert (stream["overloads"], stream["replies"], stream["in_flight"]) == (2, 4, 0)
        command = [*proxy.process.args, "--watch"]  # pyrefly: ignore
        with subprocess.Popen(command, stdout=subprocess.PIPE) as watching:
            assert watching.stdout is not None
            found = json.loads(watching.stdout.readline())
            watching.kill()
        assert found["0.overloads_total"] == 2


def test_a_client_that_is_killed_amid_its_request(start: Starter, folder: Path):
    with counting(folder / "server.sock", 0.3) as server:
        proxy = start.proxy(server.path, "window = 1\n", terms=HTTP)
        asks = f"""
import socket
client = socket.socket(socket.AF_UNIX)
client.connect({str(disk_of(proxy))!r})
client.sendall({request("/", "Content-Length: 10", method="PUT")!r} + b"half")
print("said", flush=True)
client.recv(1)
"""
        with subprocess.Popen([sys.executable, "-c", asks], stdout=subprocess.PIPE) as killed:
            assert killed.stdout is not None
            killed.stdout.readline()
            until(lambda: [it for it in proxy.streams() if it["in_flight"] == 1])
            killed.send_signal(signal.SIGKILL)
        until(lambda: not proxy.streams())
        assert server.came_s == [], "half a request is none"


def test_many_connections_that_come_and_go(start: Starter, folder: Path):
    with RawServer(folder / "server.sock", answering()) as server:
        proxy = start.proxy(server.path, "window = 4\n", terms=HTTP)
        before = len(_descriptors(proxy))
        with ExitStack() as stack:
            clients = [stack.enter_context(RawClient(disk_of(proxy))) for _ in range(40)]
            for client in clients:
                client.send(request())
            for client in clients:
                assert client.receive(len(OK)) == OK
        until(lambda: not proxy.streams())
        until(lambda: len(_descriptors(proxy)) <= before)


def _descriptors(proxy: Proxy) -> list[Path]:
    return list(Path(f"/proc/{proxy.process.pid}/fd").iterdir())


def test_tls_on_both_sides(start: Starter, tmp_path: Path):
    needed("openssl", "openssl")
    authority = Authority(tmp_path)
    own, other = authority.issue("server", "serverAuth"), authority.issue("proxy", "serverAuth")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(own.path, own.key)
    port = free_port()
    terms = (
        HTTP
        + f"[route.listen_tls]\ncertificate = {json.dumps(str(other.path))}\n"
        + f"key = {json.dumps(str(other.key))}\n"
        + f"[route.server_tls]\nca = {json.dumps(str(authority.path))}\nname = 'localhost'\n"
    )
    with TcpServer(answering(), context) as server:
        proxy = start.proxy(server.address, "window = 2\n", terms=terms, listen=f"tcp:127.0.0.1:{port}")
        client = http.client.HTTPSConnection(
            "localhost", port, timeout=20, context=ssl.create_default_context(cafile=str(authority.path))
        )
        body = bytes(300_000)
        for _ in range(3):
            client.request("PUT", "/a", body)
            response = client.getresponse()
            assert (response.status, response.read()) == (200, b"ok")
        client.close()
        until(lambda: not proxy.streams())
        with socket.create_connection(("127.0.0.1", port), 20) as plain:
            plain.sendall(request())
            with suppress(ConnectionResetError):
                assert plain.recv(1 << 16)[:1] in (b"", b"\x15"), "an alert, and no response"
        assert "the client: TLS" in until(proxy.log)


@pytest.mark.slow
@pytest.mark.parametrize(
    "said",
    [
        b"GET / HT",
        request("/", "Content-Length: 5", method="PUT", body=b"ab"),
        request("/", "Content-Length: 500000", method="PUT", body=bytes(400_000)),
        request("/", "Transfer-Encoding: chunked", method="PUT", body=b"3\r\nab"),
    ],
    ids=["head", "body", "long body", "chunk"],
)
def test_a_client_that_does_not_go_on_is_told_so(start: Starter, folder: Path, said: bytes):
    with RawServer(folder / "server.sock", answering()) as server:
        proxy = start.proxy(server.path, "window = 1\n", terms=HTTP)
        with RawClient(disk_of(proxy)) as client:
            client.socket.settimeout(90)
            client.send(said)
            begun_s = time.monotonic()
            assert status_of(until_closed(client)) == 408
            assert 29 < time.monotonic() - begun_s < 70
        with RawClient(disk_of(proxy)) as another:
            another.send(request())
            assert another.receive(len(OK)) == OK


@pytest.mark.slow
def test_a_head_a_byte_at_a_time_does_not_last_for_ever(start: Starter, folder: Path):
    with RawServer(folder / "server.sock", answering()) as server:
        proxy = start.proxy(server.path, terms=HTTP)
        with RawClient(disk_of(proxy)) as client:
            begun_s = time.monotonic()
            try:
                client.send(b"GET / HTTP/1.1\r\n")
                while time.monotonic() - begun_s < 60:
                    client.send(b"X: y\r\n")
                    time.sleep(0.5)
                pytest.fail("it goes on for ever")
            except OSError:
                assert 29 < time.monotonic() - begun_s < 45
        assert "(408)" in proxy.log()
