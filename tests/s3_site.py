"""An S3 server that runs, what listens in before it, and what clients asked it and were told."""

from __future__ import annotations

import io
import os
import re
import shutil
import socket
import sys
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from subprocess import DEVNULL, Popen
from typing import TYPE_CHECKING, Any

import pytest
from benchmarks.harness import free_port

from http_peers import Heard, body_of, head_of
from waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TOOLS = Path(__file__).resolve().parents[1] / "build" / "tools"
KEY_ID, SECRET = "example", "example-secret"
# What a server draws anew, or tells the time by.
DRAWN = {"date", "last-modified", "x-amz-request-id", "x-amz-id-2", "x-amz-version-id"}
# What depends on the time of a request, or on its port.
SIGNED = {"authorization", "host", "x-amz-date"}
# The time of a file, as rclone keeps it.
TIME = "x-amz-meta-mtime"
# The parts of an upload, whose tags the SDK of Go writes in an order that it draws.
PARTS = re.compile(rb"<(?:ETag|PartNumber)>[^<]*")
UPLOAD = re.compile(rb"(?<=uploadId=)[^& ]*")


class Recorder:
    """A listener that passes bytes on to an address, and keeps them by connection.

    Args:
        port: of the server, on this machine.
    """

    def __init__(self, port: int) -> None:
        self.sent: list[bytearray] = []
        self.got: list[bytearray] = []
        self._to = port
        self._threads: list[threading.Thread] = []
        self._sockets: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._begin(self._accept)

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        for one in self._sockets:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        for one in [self._listener, *self._sockets]:
            one.close()

    def exchanges(self) -> list[Exchange]:
        """What was asked and told, connection by connection."""
        return [one for sent, got in zip(self.sent, self.got, strict=True) for one in exchanges(sent, got)]

    def _begin(self, work: Callable[..., None], *arguments: Any) -> None:
        self._threads.append(threading.Thread(target=work, args=arguments))
        self._threads[-1].start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self._to))
            self._sockets += [client, server]
            self.sent.append(bytearray())
            self.got.append(bytearray())
            self._begin(self._pass, client, server, self.sent[-1])
            self._begin(self._pass, server, client, self.got[-1])

    @staticmethod
    def _pass(come: socket.socket, go: socket.socket, kept: bytearray) -> None:
        with suppress(OSError):
            while data := come.recv(1 << 16):
                kept += data
                go.sendall(data)
        for side, how in ((go, socket.SHUT_WR), (come, socket.SHUT_RD)):
            with suppress(OSError):
                side.shutdown(how)


@dataclass(frozen=True)
class Exchange:
    """A request and its response.

    Attributes:
        asked: the request.
        told: the response.
    """

    asked: Heard
    told: Heard

    @property
    def method(self) -> str:
        """What is to be done."""
        return _method(self.asked)

    @property
    def status(self) -> int:
        """What came of it."""
        return int(self.told.head.split(b" ", 2)[1])

    def likeness(self) -> tuple[tuple[bytes, ...], str, tuple[bytes, ...], str]:
        """What is the same in another run: the lines of both heads, and digests of both bodies.

        Left out is what a server draws, its order of lines among that; what depends on the time and the port
        of a request; the order of tags; and how long lists and errors are, which tell times and ids.
        """
        asked, told = self.asked.body, self.told.body
        drawn, own = {*SIGNED, TIME}, {*DRAWN, TIME}
        if parts := PARTS.findall(asked):
            asked = b"".join(sorted(parts))
            drawn.add("x-amz-content-sha256")
        if "xml" in self.told.fields.get("content-type", ""):
            told = b""
            own.add("content-length")
        return (
            _lines(self.asked.head, drawn),
            sha256(asked).hexdigest(),
            _lines(self.told.head, own),
            sha256(told).hexdigest(),
        )


def _method(asked: Heard) -> str:
    return asked.head.split(b" ", 1)[0].decode()


def _lines(head: bytes, without: set[str]) -> tuple[bytes, ...]:
    """The lines of a head, those of some fields with their names alone."""
    first, *lines = head.split(b"\r\n")[:-2]
    fields = [(line.partition(b":")[0], line) for line in lines]
    kept = (name if name.decode().lower() in without else line for name, line in fields)
    return (UPLOAD.sub(b"", first), *sorted(kept))


def exchanges(sent: bytes | bytearray, got: bytes | bytearray) -> Iterator[Exchange]:
    """The requests of a connection, each with its response; a 100 is none.

    Raises:
        AssertionError: one side says more than the other one answers or has asked, or what is no message.
    """
    asks, tells = io.BytesIO(sent), io.BytesIO(got)
    while head := head_of(asks):
        asked = _heard(asks, head)
        while (told := head_of(tells)).split(b" ", 2)[1].startswith(b"1"):
            pass
        bodiless = _method(asked) == "HEAD" or told.split(b" ", 2)[1] in {b"204", b"304"}
        yield Exchange(asked, Heard(told, b"") if bodiless else _heard(tells, told))
    assert tells.read() == b"", "nobody has asked for it"


def _heard(stream: io.BytesIO, head: bytes) -> Heard:
    body = body_of(stream, Heard(head, b"").fields)
    assert body is not None, head
    return Heard(head, body)


@contextmanager
def s3_server(folder: Path, *words: str | Path) -> Iterator[int]:
    """The port of an S3 server whose objects are files in a folder; skips where there is none.

    Args:
        folder: an empty folder.
        words: more options of versitygw's.
    """
    found = versitygw()
    port = free_port()
    keys = {"ROOT_ACCESS_KEY": KEY_ID, "ROOT_SECRET_KEY": SECRET}
    command = [found, "--port", f"127.0.0.1:{port}", *words, "posix", folder]
    with Popen(command, env={**os.environ, **keys}, stdout=DEVNULL, stderr=DEVNULL) as process:

        def listens() -> bool:
            with socket.socket() as asking:
                return asking.connect_ex(("127.0.0.1", port)) == 0

        until(lambda: listens() or process.poll() is not None)
        assert process.poll() is None
        yield port
        process.kill()


def versitygw() -> str:
    """Where the server's program is; skips where it is missing."""
    found = shutil.which("versitygw", path=f"{os.environ['PATH']}:{TOOLS / 'bin'}")
    if found is None:
        pytest.skip("versitygw, a server of S3, is missing: make s3")
    return found


def s3_client(port: int) -> Any:
    """A client of boto3's that tries once; skips where that is missing."""
    for packages in TOOLS.glob("s3/lib/python3*/site-packages"):
        if str(packages) not in sys.path:
            sys.path.append(str(packages))  # last: what ascar has in a version of its own stays so
    boto3 = pytest.importorskip("boto3", reason="boto3 is missing: make s3")
    from botocore.config import Config

    return boto3.client(
        "s3",
        endpoint_url=f"http://127.0.0.1:{port}",
        aws_access_key_id=KEY_ID,
        aws_secret_access_key=SECRET,
        region_name="us-east-1",
        config=Config(
            retries={"total_max_attempts": 1}, s3={"addressing_style": "path"}, signature_version="s3v4"
        ),
    )
