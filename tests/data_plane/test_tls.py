"""TLS on either side of the proxy: real peers, and whoever is not what they should be."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import socket
import ssl
import struct
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from benchmarks.harness import free_port

import nbd_peers as nbd
from certificates import Authority, Certificate
from data_plane_peers import disk_of, needed
from nbd_peers import RawClient, RawServer, Session, answering
from waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable

    from data_plane_peers import Proxy, Starter

ERR_INVALID, ERR_TLS_REQD = (1 << 31) + 3, (1 << 31) + 5
IMAGE_BYTES = 8 << 20


@dataclass(frozen=True)
class Identities:
    """Who is who: the second of each kind is by another CA, the third is over."""

    ca: Path
    other_ca: Path
    server: Certificate
    other_server: Certificate
    old_server: Certificate
    elsewhere: Certificate
    client: Certificate
    other_client: Certificate
    old_client: Certificate


@pytest.fixture(scope="session")
def identities(tmp_path_factory: pytest.TempPathFactory) -> Identities:
    """All of them, by two CAs."""
    needed("openssl", "openssl")
    folder = tmp_path_factory.mktemp("certificates")
    ca, other = Authority(folder), Authority(folder, "other-ca")
    return Identities(
        ca.path,
        other.path,
        ca.issue("server", "serverAuth"),
        other.issue("other-server", "serverAuth"),
        ca.issue("old-server", "serverAuth", days=-1),
        ca.issue("elsewhere", "serverAuth", "DNS:elsewhere.example"),
        ca.issue("client", "clientAuth", "DNS:client"),
        other.issue("other-client", "clientAuth", "DNS:client"),
        ca.issue("old-client", "clientAuth", "DNS:client", days=-1),
    )


def listen_tls(own: Certificate, ca: Path | None = None) -> str:
    """The table of a route whose clients have to speak TLS."""
    by = "" if ca is None else f"ca = {json.dumps(str(ca))}\n"
    files = f"certificate = {json.dumps(str(own.path))}\nkey = {json.dumps(str(own.key))}\n"
    return f"[route.listen_tls]\n{files}{by}"


def server_tls(ca: Path, own: Certificate | None = None, name: str | None = "localhost") -> str:
    """The table of a route whose server is spoken to in TLS."""
    text = f"[route.server_tls]\nca = {json.dumps(str(ca))}\n"
    if name is not None:
        text += f"name = {json.dumps(name)}\n"
    if own is not None:
        text += f"certificate = {json.dumps(str(own.path))}\nkey = {json.dumps(str(own.key))}\n"
    return text


def inside(own: Certificate) -> Callable[[Session], None]:
    """Answer everything at once, inside TLS."""

    def serve(session: Session) -> None:
        session.socket.sendall(nbd.GREETING)
        nbd.received(session.socket, 20)
        session.socket.sendall(nbd.option_reply(nbd.STARTTLS, nbd.ACK))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(own.path, own.key)
        session.socket = context.wrap_socket(session.socket, server_side=True)
        kind, count = struct.unpack(">8xII", nbd.received(session.socket, 16))
        assert kind == nbd.GO
        nbd.received(session.socket, count)
        session.socket.sendall(nbd.GO_ANSWER)
        for asked in session.requests():
            if asked.command != nbd.DISCONNECT:
                session.answer(asked)

    return serve


def context_of(ca: Path, own: Certificate | None = None) -> ssl.SSLContext:
    """What a client of Python's own believes and shows."""
    context = ssl.create_default_context(cafile=str(ca))
    if own is not None:
        context.load_cert_chain(own.path, own.key)
    return context


def start_tls(client: RawClient, context: ssl.SSLContext) -> None:
    """Up to the first option inside TLS."""
    client.greet()
    client.send(nbd.option(nbd.STARTTLS))
    assert client.answers(nbd.STARTTLS) == [(nbd.ACK, b"")]
    client.socket = context.wrap_socket(client.socket, server_hostname="localhost")


def go(client: RawClient) -> None:
    """Up to the requests, inside TLS."""
    client.send(nbd.option(nbd.GO, nbd.GO_DATA))
    assert client.answers(nbd.GO)[-1][0] == nbd.ACK


def image_of(folder: Path) -> Path:
    """A file that nothing but a faithful copy equals."""
    image = folder / "image"
    image.write_bytes(random.Random(3).randbytes(IMAGE_BYTES))
    return image


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def line_of(proxy: Proxy) -> str:
    """The one line of its log."""
    until(proxy.log)
    (line,) = proxy.log().splitlines()
    return line


def refused_by(proxy: Proxy) -> int:
    """How many connections it has refused."""
    return sum(one["refused"] for one in proxy.ask({"message": "rules.observe/1"})["gone"])


# --- real peers


@pytest.mark.parametrize("keys", ["", "window = 4\n"], ids=["free", "window"])
@pytest.mark.parametrize("own", [False, True], ids=["anybody", "mutual"])
def test_libnbd_and_qemu_are_clients(
    start: Starter, folder: Path, identities: Identities, own: bool, keys: str
):
    image, there, back = image_of(folder), folder / "there", folder / "back"
    there.write_bytes(bytes(IMAGE_BYTES))
    port = free_port()
    terms = listen_tls(identities.server, identities.ca if own else None)
    proxy = start.proxy(start.nbdkit("file", str(there)), keys, terms=terms, listen=f"tcp:127.0.0.1:{port}")
    files = identities.client.folder(folder / "files", "client")
    uri = f"nbds://localhost:{port}/?tls-certificates={files}&tls-verify-peer=true"
    subprocess.run([needed("nbdcopy", "libnbd-bin"), "--flush", image, uri], check=True)
    assert digest(there) == digest(image)
    listed = subprocess.run(["nbdinfo", "--json", uri], capture_output=True, text=True, check=True)
    found = json.loads(listed.stdout)
    assert (found["TLS"], found["structured"]) == (True, True)
    subprocess.run(
        [
            needed("qemu-img", "qemu-utils"), "convert", "--image-opts", "-O", "raw",
            "--object", f"tls-creds-x509,id=tls0,endpoint=client,dir={files},verify-peer=yes",
            f"driver=nbd,host=localhost,port={port},tls-creds=tls0", back,
        ],
        check=True,
    )  # fmt: skip
    assert digest(back) == digest(image)
    assert proxy.log() == ""


@pytest.mark.parametrize("own", [False, True], ids=["anybody", "mutual"])
def test_nbdkit_is_a_server(start: Starter, folder: Path, identities: Identities, own: bool):
    image, there, back = image_of(folder), folder / "there", folder / "back"
    there.write_bytes(bytes(IMAGE_BYTES))
    files = identities.server.folder(folder / "files", "server")
    words = ["--tls=require", f"--tls-certificates={files}", *(["--tls-verify-peer"] if own else [])]
    server = start.nbdkit(*words, "file", str(there))
    proxy = start.proxy(
        server, "window = 8\n", terms=server_tls(identities.ca, identities.client if own else None)
    )
    uri = f"nbd+unix:///?socket={disk_of(proxy)}"
    subprocess.run([needed("nbdcopy", "libnbd-bin"), "--flush", image, uri], check=True)
    subprocess.run(["nbdcopy", uri, back], check=True)
    assert digest(image) == digest(there) == digest(back)
    assert proxy.log() == ""


def test_qemu_on_both_sides(start: Starter, folder: Path, identities: Identities):
    image = image_of(folder)
    port, own = free_port(), free_port()
    files = identities.server.folder(folder / "server", "server")
    start.started(
        [
            needed("qemu-nbd", "qemu-utils"), "-f", "raw", "-t", "-x", "disk",
            "-b", "127.0.0.1", "-p", str(port),
            "--object", f"tls-creds-x509,id=tls0,endpoint=server,dir={files},verify-peer=yes",
            "--tls-creds", "tls0", image,
        ]
    )  # fmt: skip

    def listens() -> bool:
        with socket.socket() as asking:
            return asking.connect_ex(("127.0.0.1", port)) == 0

    until(listens)
    # The name is that of the address where none is given: 127.0.0.1 is in the certificate.
    terms = listen_tls(identities.server, identities.ca)
    terms += server_tls(identities.ca, identities.client, name=None)
    proxy = start.proxy(f"tcp:127.0.0.1:{port}", terms=terms, listen=f"tcp:127.0.0.1:{own}")
    shown = identities.client.folder(folder / "client", "client")
    orders = ["write -P 7 4096 65536", "flush", "read -P 7 4096 65536", "discard 1M 64k", "read -v 0 512"]
    done = subprocess.run(
        [
            needed("qemu-io", "qemu-utils"), "--image-opts",
            "--object", f"tls-creds-x509,id=tls0,endpoint=client,dir={shown}",
            *(word for order in orders for word in ("-c", order)),
            f"driver=nbd,host=127.0.0.1,port={own},export=disk,tls-creds=tls0",
        ],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "wrote 65536/65536" in done.stdout and "failed" not in done.stdout + done.stderr
    assert image.read_bytes()[4096:69632] == bytes([7]) * 65536
    assert proxy.log() == ""


def test_requests_of_all_lengths_and_depths_inside_tls(start: Starter, folder: Path, identities: Identities):
    """By libnbd's shell: 64 writes in flight of up to 256 KiB, then as many reads."""
    files = identities.server.folder(folder / "server", "server")
    server = start.nbdkit("--tls=require", f"--tls-certificates={files}", "memory", "32M")
    port = free_port()
    terms = listen_tls(identities.server) + server_tls(identities.ca)
    proxy = start.proxy(server, "window = 16\n", terms=terms, listen=f"tcp:127.0.0.1:{port}")
    shown = identities.client.folder(folder / "client", "client")
    script = f"""
import random
h.set_uri_allow_local_file(True)
h.connect_uri("nbds://localhost:{port}/?tls-certificates={shown}")
assert h.get_tls_negotiated()
draws = random.Random(5)
lengths = [draws.choice([512, 4096, 65536, 100_352, 262_144]) for _ in range(64)]
data = [draws.randbytes(length) for length in lengths]
held = []
def wait(cookies):
    for cookie in cookies:
        while not h.aio_command_completed(cookie):
            h.poll(-1)
for at, one in enumerate(data):
    held.append((at << 18, nbd.Buffer.from_bytearray(bytearray(one))))
wait([h.aio_pwrite(buffer, at) for at, buffer in held])
h.flush()
back = [nbd.Buffer(length) for length in lengths]
wait([h.aio_pread(buffer, at) for (at, _), buffer in zip(held, back)])
assert [bytes(buffer.to_bytearray()) for buffer in back] == data
try:
    h.pread(512, 1 << 40)
except nbd.Error as error:
    assert error.errno == "EINVAL"
h.shutdown()
"""
    needed("nbdsh", "python3-libnbd")
    words = ["nbdsh", "-c", "h.set_strict_mode(0)", "-c", script]
    # The shell is a module of the system's own Python.
    subprocess.run(words, check=True, env={**os.environ, "PATH": "/usr/bin:/bin"})
    until(lambda: not proxy.streams())
    assert proxy.log() == ""


@pytest.mark.parametrize("encrypted", [False, True])
def test_long_payloads_are_spliced_where_nothing_is_encrypted(
    start: Starter, folder: Path, identities: Identities, encrypted: bool
):
    with RawServer(folder / "server.sock", answering) as server:
        proxy = start.proxy(server.path, terms=listen_tls(identities.server) if encrypted else "")
        with RawClient(disk_of(proxy)) as client:
            if encrypted:
                start_tls(client, context_of(identities.ca))
                go(client)
            else:
                client.negotiate()
            calls = folder / "calls"
            command = [needed("strace", "strace"), "-f", "-qq", "-e", "trace=splice", "-o", calls, "-p"]
            tracer = start.started([*command, str(proxy.process.pid)])
            status = Path(f"/proc/{proxy.process.pid}/status")
            until(lambda: f"TracerPid:\t{tracer.pid}" in status.read_text())
            time.sleep(0.2)  # all threads
            for at in range(4):
                assert client.read(at, 1 << 20) == bytes(1 << 20)
            tracer.terminate()
            tracer.wait()
            assert ("splice(" in calls.read_text()) is not encrypted


# --- whoever asks for something else


def test_nothing_but_tls_is_answered_before_it(start: Starter, folder: Path, identities: Identities):
    with RawServer(folder / "server.sock", answering) as server:
        proxy = start.proxy(server.path, terms=listen_tls(identities.server))
        with RawClient(disk_of(proxy)) as client:
            client.greet()
            for kind, data in (
                (nbd.LIST, b""),
                (nbd.STRUCTURED_REPLY, b""),
                (nbd.GO, nbd.GO_DATA),
                (99, b"x"),
            ):
                client.send(nbd.option(kind, data))
                assert client.answers(kind)[-1][0] == ERR_TLS_REQD
            client.send(nbd.option(nbd.STARTTLS, b"x"))
            assert client.answers(nbd.STARTTLS)[-1][0] == ERR_INVALID
            client.send(nbd.option(nbd.STARTTLS))
            assert client.answers(nbd.STARTTLS) == [(nbd.ACK, b"")]
            client.socket = context_of(identities.ca).wrap_socket(client.socket, server_hostname="localhost")
            client.send(nbd.option(nbd.STARTTLS))
            assert client.answers(nbd.STARTTLS)[-1][0] == ERR_INVALID
            # That structured replies were asked for in the clear counts for nothing.
            go(client)
            assert client.read(1, 4096) == bytes(4096)
        with RawClient(disk_of(proxy)) as client:
            client.greet()
            client.send(nbd.option(nbd.EXPORT_NAME))
            assert client.is_closed()
        until(lambda: len(proxy.log().splitlines()) == 2)
        first, second = proxy.log().splitlines()
        assert "TLS is required here" in first and "asks for an export without TLS" in second
        assert len(server.sessions) == 1, "it hears of nobody who was not let in"


def test_a_client_without_tls_is_told_in_its_own_words(start: Starter, folder: Path, identities: Identities):
    proxy = start.proxy(start.nbdkit("memory", "1M"), terms=listen_tls(identities.server))
    uri = f"nbd+unix:///?socket={disk_of(proxy)}"
    done = subprocess.run([needed("nbdinfo", "libnbd-bin"), uri], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "not supported" in done.stderr
    assert "TLS is required here" in line_of(proxy)


INJECTED = {
    "an option": nbd.option(nbd.STRUCTURED_REPLY),
    "one that goes": nbd.option(nbd.GO, nbd.GO_DATA),
    "a request": nbd.request(nbd.READ, 1, 0, 4096),
    "half a record": b"\x16\x03\x01",
    "much": b"IHAVEOPT" * 20_000,
}


@pytest.mark.parametrize("what", INJECTED)
def test_what_a_client_is_made_to_say_before_tls_ends_the_connection(
    start: Starter, folder: Path, identities: Identities, what: str
):
    """Somebody on the way puts it behind the wish for TLS, and passes on what the client says."""
    with RawServer(folder / "server.sock", answering) as server:
        proxy = start.proxy(server.path, terms=listen_tls(identities.server))
        with RawClient(disk_of(proxy)) as client:
            client.greet()
            client.send(nbd.option(nbd.STARTTLS) + INJECTED[what])
            assert client.answers(nbd.STARTTLS) == [(nbd.ACK, b"")]
            client.socket.settimeout(1.0)  # what is half there may be waited for
            with pytest.raises((ssl.SSLError, OSError)):
                client.socket = context_of(identities.ca).wrap_socket(
                    client.socket, server_hostname="localhost"
                )
        assert "the client: TLS: " in line_of(proxy)
        assert server.sessions == []
        assert refused_by(proxy) == 1


@pytest.mark.parametrize("what", ["an answer", "a record"])
def test_what_a_server_is_made_to_say_before_tls_ends_the_connection(
    start: Starter, folder: Path, identities: Identities, what: str
):
    put = nbd.GO_ANSWER if what == "an answer" else b"\x17\x03\x03\x00\x10" + bytes(16)

    def serve(session: Session) -> None:
        session.socket.sendall(nbd.GREETING)
        assert nbd.received(session.socket, 20) == nbd.ZEROES_LEFT_OUT + nbd.option(nbd.STARTTLS)
        session.socket.sendall(nbd.option_reply(nbd.STARTTLS, nbd.ACK) + put)
        nbd.received(session.socket, 1 << 20)

    with RawServer(folder / "server.sock", serve) as server:
        proxy = start.proxy(server.path, terms=server_tls(identities.ca))
        with RawClient(disk_of(proxy)) as client:
            assert client.is_closed()
        assert "the server: TLS: " in line_of(proxy)


# --- whoever is not whom they should be


@pytest.mark.parametrize(
    ("who", "said"),
    [
        (None, "peer sent no certificates"),
        ("other_client", "UnknownIssuer"),
        ("old_client", "Expired"),
        ("server", "invalid peer certificate"),
    ],
)
def test_clients_that_are_not_let_in(
    start: Starter, folder: Path, identities: Identities, who: str | None, said: str
):
    with RawServer(folder / "server.sock", answering) as server:
        proxy = start.proxy(server.path, terms=listen_tls(identities.server, identities.ca))
        own = None if who is None else getattr(identities, who)
        with RawClient(disk_of(proxy)) as client, pytest.raises((ssl.SSLError, OSError)):
            start_tls(client, context_of(identities.ca, own))
            client.send(nbd.option(nbd.GO, nbd.GO_DATA))
            if not client.receive(1):
                raise ConnectionResetError
        line = line_of(proxy)
        assert "the client: TLS: " in line and said in line
        assert server.sessions == [], "it hears of nobody who was not let in"
        assert refused_by(proxy) == 1
        with RawClient(disk_of(proxy)) as client:
            start_tls(client, context_of(identities.ca, identities.client))
            go(client)
            assert client.read(1, 512) == bytes(512)


@pytest.mark.parametrize(
    ("who", "said"),
    [
        ("other_server", "UnknownIssuer"),
        ("old_server", "Expired"),
        ("elsewhere", "not valid for name"),
        ("client", "invalid peer certificate"),
    ],
)
def test_servers_that_are_not_believed(
    start: Starter, folder: Path, identities: Identities, who: str, said: str
):
    server = RawServer(folder / "server.sock", inside(getattr(identities, who)))
    with server:
        proxy = start.proxy(server.path, terms=server_tls(identities.ca))
        with RawClient(disk_of(proxy)) as client:
            assert client.is_closed()
        line = line_of(proxy)
        assert "the server: TLS: " in line and said in line
        assert refused_by(proxy) == 1


def test_a_server_without_tls_is_left_before_a_word_of_the_client(
    start: Starter, folder: Path, identities: Identities
):
    proxy = start.proxy(start.nbdkit("memory", "1M"), terms=server_tls(identities.ca))
    with RawClient(disk_of(proxy)) as client:
        assert client.is_closed()
    assert "TLS: the server refuses it with 0x8000000" in line_of(proxy)


def test_a_server_that_requires_tls_is_named_where_the_route_has_none(
    start: Starter, folder: Path, identities: Identities
):
    files = identities.server.folder(folder / "files", "server")
    proxy = start.proxy(start.nbdkit("--tls=require", f"--tls-certificates={files}", "memory", "1M"))
    with RawClient(disk_of(proxy)) as client:
        client.greet()
        for _ in range(2):
            client.send(nbd.option(nbd.GO, nbd.GO_DATA))
            assert client.answers(nbd.GO)[-1][0] == ERR_TLS_REQD
    assert "the server requires TLS, and the route has no server_tls" in line_of(proxy)


# --- ends


def test_what_was_asked_before_the_end_is_answered_inside_tls(
    start: Starter, folder: Path, identities: Identities
):
    def serve(session: Session) -> None:
        session.negotiate()
        for asked in list(session.requests()):  # all have come, and the client has ended its sending
            session.answer(asked)

    with RawServer(folder / "server.sock", serve) as server:
        proxy = start.proxy(server.path, terms=listen_tls(identities.server))
        with RawClient(disk_of(proxy)) as client:
            start_tls(client, context_of(identities.ca))
            go(client)
            client.send(b"".join(nbd.request(nbd.READ, at, 0, 512) for at in range(40)))
            # Its end is not announced: the socket's own, below TLS.
            socket.socket.shutdown(client.socket, socket.SHUT_WR)
            for at in range(40):
                assert client.receive(528) == nbd.simple_reply(at) + bytes(512)
            assert client.is_closed()
        until(lambda: not proxy.streams())


def test_a_record_that_was_changed_on_the_way_ends_the_connection(
    start: Starter, folder: Path, identities: Identities
):
    with RawServer(folder / "server.sock", answering) as server:
        proxy = start.proxy(server.path, terms=listen_tls(identities.server))
        with RawClient(disk_of(proxy)) as client:
            start_tls(client, context_of(identities.ca))
            go(client)
            assert client.read(1, 512) == bytes(512)
            socket.socket.sendall(client.socket, b"\x17\x03\x03\x00\x40" + os.urandom(64))
            with pytest.raises((ssl.SSLError, OSError)):
                if not client.receive(1):
                    raise ConnectionResetError
        assert "TLS: cannot decrypt peer's message" in line_of(proxy)
        until(lambda: not proxy.streams())


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_both_versions_and_no_older_one(
    start: Starter, folder: Path, identities: Identities, version: ssl.TLSVersion
):
    with RawServer(folder / "server.sock", inside(identities.server)) as server:
        terms = listen_tls(identities.server, identities.ca) + server_tls(identities.ca)
        proxy = start.proxy(server.path, terms=terms)
        context = context_of(identities.ca, identities.client)
        context.minimum_version = context.maximum_version = version
        with RawClient(disk_of(proxy)) as client:
            start_tls(client, context)
            go(client)
            for at, length in enumerate((512, 16_384, 16_385, 65_536, 1 << 20)):
                assert client.read(at, length) == bytes(length)


def test_a_client_that_does_not_read_holds_up_nobody_but_itself_inside_tls(
    start: Starter, folder: Path, identities: Identities
):
    """And what it sends meanwhile is taken in: neither direction waits for the other."""
    with RawServer(folder / "server.sock", answering) as server:
        proxy = start.proxy(server.path, terms=listen_tls(identities.server))
        with RawClient(disk_of(proxy)) as slow, RawClient(disk_of(proxy)) as other:
            for client in (slow, other):
                start_tls(client, context_of(identities.ca))
                go(client)
            length, count = 1 << 20, 16
            slow.send(b"".join(nbd.request(nbd.READ, at, 0, length) for at in range(count)))
            for at in range(50):
                assert other.read(at, 4096) == bytes(4096)
            for at in range(count):
                assert slow.receive(16) == nbd.simple_reply(at)
                assert slow.receive(length) == bytes(length)


def test_killed_it_ends_both_sides_inside_tls(start: Starter, folder: Path, identities: Identities):
    ended = threading.Event()

    def serve(session: Session) -> None:
        inside(identities.server)(session)
        ended.set()

    with RawServer(folder / "server.sock", serve) as server:
        proxy = start.proxy(server.path, terms=listen_tls(identities.server) + server_tls(identities.ca))
        with RawClient(disk_of(proxy)) as client:
            start_tls(client, context_of(identities.ca))
            go(client)
            assert client.read(1, 512) == bytes(512)
            proxy.process.kill()
            assert client.is_closed()
            assert ended.wait(20)


@pytest.mark.parametrize("clients", [1, 3], ids=["a client of zeroes", "a client without"])
@pytest.mark.parametrize("servers", [1, 3], ids=["a server of zeroes", "a server without"])
@pytest.mark.parametrize("side", ["client", "server"])
def test_zeroes_behind_an_export_are_left_out_as_each_side_knows_it(
    start: Starter, folder: Path, identities: Identities, side: str, clients: int, servers: int
):
    """One side has greeted before the other was there, so they may differ."""

    def serve(session: Session) -> None:
        session.socket.sendall(nbd.GREETING[:-1] + bytes([servers]))
        (flags,) = struct.unpack(">I", nbd.received(session.socket, 4))
        if side == "server":
            nbd.received(session.socket, 16)
            session.socket.sendall(nbd.option_reply(nbd.STARTTLS, nbd.ACK))
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(identities.server.path, identities.server.key)
            session.socket = context.wrap_socket(session.socket, server_side=True)
        assert flags & ~servers == 0
        assert nbd.received(session.socket, 16) == nbd.option(nbd.EXPORT_NAME)
        session.socket.sendall(struct.pack(">QH", 1 << 20, 1) + bytes(0 if flags & 2 else 124))
        for asked in session.requests():
            session.answer(asked)

    with RawServer(folder / "server.sock", serve) as server:
        terms = listen_tls(identities.server) if side == "client" else server_tls(identities.ca)
        proxy = start.proxy(server.path, terms=terms)
        with RawClient(disk_of(proxy)) as client:
            greeting = client.receive(len(nbd.GREETING))
            told = clients & greeting[-1]
            client.send(struct.pack(">I", told))
            if side == "client":
                client.send(nbd.option(nbd.STARTTLS))
                assert client.answers(nbd.STARTTLS) == [(nbd.ACK, b"")]
                client.socket = context_of(identities.ca).wrap_socket(
                    client.socket, server_hostname="localhost"
                )
            client.send(nbd.option(nbd.EXPORT_NAME))
            expected = struct.pack(">QH", 1 << 20, 1) + bytes(0 if told & 2 else 124)
            assert client.receive(len(expected)) == expected
            assert client.read(1, 4096) == bytes(4096)


def test_a_server_that_falls_silent_inside_tls_is_given_up(
    start: Starter, folder: Path, identities: Identities
):
    answer = inside(identities.server)

    def serve(session: Session) -> None:
        session.answer = lambda asked: None  # type: ignore[method-assign]
        answer(session)

    with RawServer(folder / "server.sock", serve) as server:
        proxy = start.proxy(server.path, "answer_s = 1\n", terms=server_tls(identities.ca))
        with RawClient(disk_of(proxy)) as client:
            client.negotiate()
            client.send(nbd.request(nbd.READ, 1, 0, 4096))
            assert client.is_closed()
        assert "the server has said nothing for 1 s, and owes 1 answers" in line_of(proxy)


# --- files


def test_a_renewed_certificate_needs_no_restart(start: Starter, folder: Path, identities: Identities):
    own = Certificate(folder / "own.pem", folder / "own.key", identities.ca)

    def put(found: Certificate) -> None:
        for file, to in ((found.path, own.path), (found.key, own.key)):
            shutil.copy(file, to)
            to.chmod(0o600)

    put(identities.old_server)
    with RawServer(folder / "server.sock", answering) as server:
        proxy = start.proxy(server.path, terms=listen_tls(own))
        with RawClient(disk_of(proxy)) as client, pytest.raises(ssl.SSLError, match="expired"):
            start_tls(client, context_of(identities.ca))
        put(identities.server)
        with RawClient(disk_of(proxy)) as client:
            start_tls(client, context_of(identities.ca))
            # Half of another one is in place: what is in use stays.
            shutil.copy(identities.elsewhere.path, own.path)
            with RawClient(disk_of(proxy)) as second:
                start_tls(second, context_of(identities.ca))
                go(second)
            go(client)
        lines = proxy.log().splitlines()
        assert "is not that of key; what was read before stays in use" in lines[-1]
        assert sum("stays in use" in line for line in lines) == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[route.listen_tls]\n", "route.listen_tls.certificate: is missing"),
        ("[route.listen_tls]\ncertificate = '{server}'\n", "route.listen_tls.key: is missing"),
        ("[route.listen_tls]\ncertificate = 'no.pem'\nkey = '{key}'\n", "no.pem: is not there"),
        ("[route.listen_tls]\ncertificate = '{key}'\nkey = '{key}'\n", "holds no certificate in PEM"),
        ("[route.listen_tls]\ncertificate = '{server}'\nkey = '{text}'\n", "holds no private key in PEM"),
        ("[route.listen_tls]\ncertificate = '{server}'\nkey = '{other}'\n", "is not that of key"),
        ("[route.listen_tls]\ncertificate = '{server}'\nkey = '{open}'\n", "others can read the key"),
        ("[route.listen_tls]\ncertificate = '{server}'\nkey = '{fifo}'\n", "is not a file"),
        ("[route.listen_tls]\nmode = 1\n", "unknown field `mode`"),
        ("[route.server_tls]\n", "missing field `ca`"),
        ("[route.server_tls]\nca = '{ca}'\n", "route.server_tls.name: is missing"),
        ("[route.server_tls]\nca = '{ca}'\nname = 'a b'\n", 'route.server_tls.name = "a b": must be'),
        (
            "[route.server_tls]\nca = '{ca}'\nname = 'a'\nkey = '{key}'\n",
            "server_tls.certificate: is missing",
        ),
        ("[route.server_tls]\nca = '{fifo}'\nname = 'a'\n", "route.server_tls.ca = "),
    ],
)
def test_files_that_are_of_no_use_are_named(
    ascard: Path, folder: Path, identities: Identities, text: str, said: str
):
    (folder / "open.key").write_bytes(identities.server.key.read_bytes())
    (folder / "open.key").chmod(0o644)
    (folder / "text").touch(mode=0o600)
    os.mkfifo(folder / "fifo")
    terms = text.format(
        ca=identities.ca, server=identities.server.path, key=identities.server.key,
        other=identities.client.key, open=folder / "open.key", text=folder / "text", fifo=folder / "fifo",
    )  # fmt: skip
    config = folder / "proxy.toml"
    config.write_text(f"control = 'c'\n[[route]]\nlisten = 'unix:a'\nserver = 'unix:/b'\n{terms}")
    done = subprocess.run(
        [ascard, "proxy", "--config", config, "--check"],
        capture_output=True,
        text=True,
        check=False,
        timeout=20,
    )
    assert done.returncode == 2, done.stderr
    (line,) = done.stderr.splitlines()
    assert said in line
