"""A MariaDB server that people use, as tests need one: with a socket, a port, a my.cnf and clients."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING

from ascar.program.mariadb import MariaPrograms
from ascar.systems.mariadb.server import pairs_of
from live_redis import free_port
from own_servers import mariadb_account
from waiting import until

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence


class LiveMariaDB:
    """A running server, and what a test asks it."""

    def __init__(self, place: Path, lines: Sequence[str]) -> None:
        self.place, self.programs, self.account = place, MariaPrograms.find(), mariadb_account()
        self.socket, self.conf, self.data = place / "db.sock", place / "my.cnf", place / "data"
        self.port, self.name = free_port(), str(self.socket)
        self._lines = lines
        self._process: subprocess.Popen[bytes] | None = None

    def make(self) -> None:
        self.data.mkdir()
        own = [
            f"port = {self.port}",
            "bind_address = 127.0.0.1",
            f"socket = {self.socket}",
            f"datadir = {self.data}",
            f"pid_file = {self.place}/pid",
            "innodb_buffer_pool_size = 32M",
            "innodb_log_file_size = 16M",
            "# an administrator's comment",
            "innodb_io_capacity = 300",
        ]
        self.conf.write_text("".join(f"{line}\n" for line in ["[mysqld]", *own, *self._lines]))
        for path in (self.place, self.data):
            os.chown(path, self.account.uid, -1)
        words = [self.programs.path("mariadb-install-db"), "--no-defaults", f"--datadir={self.data}"]
        words += ["--auth-root-authentication-method=normal", "--skip-name-resolve", "--skip-log-bin"]
        subprocess.run(self.account.run(*words), check=True, capture_output=True, cwd=self.place)

    def start(self) -> None:
        words = self.account.run(str(self.programs.server), f"--defaults-file={self.conf}")
        with (self.place / "log").open("ab") as log:
            self._process = subprocess.Popen(words, stdout=log, stderr=log, cwd=self.place)
        until(self._answers, 60)

    def stop(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def ask(self, statement: str, *, check: bool = True) -> str:
        client = [self.programs.path("mariadb"), "--no-defaults", "--batch", "--skip-column-names"]
        words = [*client, f"--socket={self.socket}", "--user=root", "-e", statement]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0 or not check, done.stderr
        return done.stdout

    def get(self, name: str) -> str:
        return self.settings()[name]

    def settings(self) -> dict[str, str]:
        """All that is set, but for what changes by itself."""
        moving = (
            "timestamp",
            "gtid_",
            "error_count",
            "warning_count",
            "rand_seed",
            "identity",
            "last_insert_id",
        )
        told = pairs_of(self.ask("SHOW GLOBAL VARIABLES"))
        return {name: value for name, value in told.items() if not name.startswith(moving)}

    @contextmanager
    def clients(self) -> Generator[None]:
        """Two people who use it."""
        reached = [f"--socket={self.socket}", "--user=root"]
        words = [self.programs.path("mariadb"), "--no-defaults", "--batch", *reached]
        asked = b"SELECT COUNT(*) FROM information_schema.ENGINES;\n" * 20
        loop = f"while cat {self.place}/asked; do sleep 0.05; done | exec {' '.join(words)} >/dev/null"
        (self.place / "asked").write_bytes(asked)
        people = [
            subprocess.Popen(["/bin/sh", "-c", loop], stderr=subprocess.DEVNULL, start_new_session=True)
            for _ in range(2)
        ]
        try:
            time.sleep(0.3)
            yield
        finally:
            for one in people:
                with suppress(ProcessLookupError):
                    os.killpg(one.pid, 9)
                one.wait()

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self.place / "log").read_text()
        return self.socket.exists() and "1" in self.ask("SELECT 1", check=False)


@contextmanager
def live_mariadb(*lines: str) -> Generator[LiveMariaDB]:
    """A server that runs, with further lines of its my.cnf."""
    place = Path(mkdtemp(prefix="ascar-live-", dir="/var/tmp"))
    place.chmod(0o755)
    server = LiveMariaDB(place, lines)
    try:
        server.make()
        server.start()
        yield server
    finally:
        with suppress(AssertionError, OSError):
            server.stop()
        shutil.rmtree(place, ignore_errors=True)
