"""A Redis server that people use, as tests need one: with a socket, a port, a redis.conf and clients."""

from __future__ import annotations

import random
import shutil
import socket
import subprocess
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING

from ascar.errors import EnvironmentLacks, StageFailed
from ascar.program.redis import RedisPrograms
from ascar.systems.redis.counters import calls_of, fields_of
from ascar.systems.redis.protocol import Reply, ask
from waiting import until

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence


def redis_installed() -> bool:
    """Whether a server that ascar tunes is there."""
    try:
        return RedisPrograms.find().number >= (7, 0)
    except EnvironmentLacks:
        return False


class LiveRedis:
    """A running server, and what a test asks it; it runs as whoever runs the tests."""

    def __init__(self, place: Path, lines: Sequence[str]) -> None:
        self.place, self.programs = place, RedisPrograms.find()
        self.socket, self.conf = place / "redis.sock", place / "redis.conf"
        self.port = free_port()
        self.name = str(self.socket)
        self._lines = lines
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        if not self.conf.exists():
            own = [
                f"port {self.port}",
                f"unixsocket {self.socket}",
                f"dir {self.place}",
                "hz 20",
                "# an administrator's comment",
                'save ""',
            ]
            self.conf.write_text("".join(f"{line}\n" for line in [*own, *self._lines]))
        words = [str(self.programs.server), str(self.conf)]
        log = (self.place / "log").open("ab")
        with log:
            self._process = subprocess.Popen(words, stdout=log, stderr=log, cwd=self.place)
        until(self._answers, 60)

    def stop(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def ask(self, *words: str) -> Reply:
        return ask(self.socket, words, 30.0)

    def get(self, name: str) -> str:
        told = self.ask("CONFIG", "GET", name)
        assert isinstance(told, list)
        return str(told[1])

    @contextmanager
    def clients(self) -> Generator[None]:
        """Somebody who uses it, at a pace that leaves the machine to others."""
        with self._running(self.programs.path("cli"), "-r", "-1", "-i", "0.001", "SET", "key", "x" * 100):
            yield

    @contextmanager
    def eager_clients(self) -> Generator[None]:
        """People who use it, each as fast as the server answers."""
        words = ("-l", "-q", "-c", "4", "-r", "1000", "SET", "key:__rand_int__", "x" * 100)
        with self._running(self.programs.path("benchmark"), *words):
            yield

    def rate(self, over_s: float = 0.5) -> float:
        """Commands a second."""
        begun, begun_s = self._calls(), time.monotonic()
        time.sleep(over_s)
        return (self._calls() - begun) / (time.monotonic() - begun_s)

    @contextmanager
    def _running(self, program: str, *words: str) -> Generator[None]:
        argv = [program, "-s", str(self.socket), *words]
        with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as load:
            try:
                until(lambda: self.rate() > 20, 60)
                yield
            finally:
                load.kill()

    def _calls(self) -> float:
        return calls_of(fields_of(str(self.ask("INFO", "commandstats"))))[0]

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self.place / "log").read_text()
        try:
            self.ask("PING")
        except StageFailed as failure:
            return "NOAUTH" in failure.message or "Authentication" in failure.message
        return True


@contextmanager
def live_redis(*lines: str) -> Generator[LiveRedis]:
    """A server that runs, with further lines of its redis.conf."""
    place = Path(mkdtemp(prefix="ascar-live-", dir="/var/tmp"))
    server = LiveRedis(place, lines)
    try:
        server.start()
        yield server
    finally:
        with suppress(AssertionError, OSError):
            server.stop()
        shutil.rmtree(place, ignore_errors=True)


def free_port() -> int:
    """A port that nobody listens on, also one for the bus of a cluster."""
    for port in random.sample(range(20_000, 55_000), 100):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")
