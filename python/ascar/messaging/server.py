"""A nats-server of our own: started, watched, started again when it dies, and never left behind."""

from __future__ import annotations

import atexit
import fcntl
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Self

from ascar.errors import EnvironmentLacks, MessagingError, Refused
from ascar.messaging.bound import bound
from ascar.messaging.server_config import HOST, ServerLimits, User, config_text
from ascar.messaging.settings import Settings
from ascar.messaging.subjects import token

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

_TERM_S = 5.0
_POLL_S = 0.02
_RESTARTS_MAX = 5  # within
_RESTARTS_PERIOD_S = 60.0
_GREETING_S = 2.0


def find_nats_server() -> Path:
    """The program: beside this Python, where its wheel puts it, or on the PATH.

    Raises:
        EnvironmentLacks: it is nowhere.
    """
    beside = Path(sys.executable).parent / "nats-server"
    if os.access(beside, os.X_OK):
        return beside
    found = shutil.which("nats-server")
    if found is None:
        raise EnvironmentLacks(
            "nats-server: is not installed; install it with: pip install 'ascar[online]', or"
            " set ASCAR_NATS_URL to a server that runs elsewhere"
        )
    return Path(found)


class MessageServer:
    """A server on a free port of 127.0.0.1, whose users have passwords made for this run.

    Use it in a `with` statement. It is stopped when that is left, when this process ends, and, by the kernel,
    when this process is killed. When the server itself dies it is started again on the same port with the
    same passwords, so that clients find it again; five times a minute at most.

    Args:
        directory: the directory for the server's files, which is made if need be and is readable only by us;
            one server a directory.
        users: the users who may connect, each by a connection file NAME.toml in the directory.
        limits: the limits that the server enforces.
        start_timeout_s: the time within which the server must answer.

    Raises:
        EnvironmentLacks: there is no nats-server.
    """

    def __init__(
        self,
        directory: Path,
        users: Sequence[User],
        limits: ServerLimits = ServerLimits(),  # noqa: B008  # frozen
        *,
        start_timeout_s: float = 20.0,
    ) -> None:
        assert users, "a server without users is of no use"
        self.directory = directory
        self.restarts = 0
        self._program = find_nats_server()
        self._users = {token("user", user.name): (user, secrets.token_urlsafe(32)) for user in users}
        self._limits = limits
        self._start_timeout_s = start_timeout_s
        self._port = -1
        self._process: subprocess.Popen[bytes] | None = None
        self._problem: str | None = None
        self._ready = threading.Event()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._lock_fd: int | None = None

    def __enter__(self) -> Self:
        """Start it."""
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop it."""
        self.stop()

    @property
    def url(self) -> str:
        """Its address, once it was started."""
        assert self._port > 0, "it has been started"
        return f"nats://{HOST}:{self._port}"

    @property
    def pid(self) -> int | None:
        """Of the server's process; None while there is none."""
        process = self._process
        return None if process is None or process.poll() is not None else process.pid

    @property
    def problem(self) -> str | None:
        """Why it was given up; None while it is there, or will be."""
        return self._problem

    def settings(self, user: str) -> Settings:
        """How a user connects."""
        return Settings(url=self.url, user=user, password=self._users[user][1])

    def settings_path(self, user: str) -> Path:
        """The file that says so."""
        assert user in self._users, user
        return self.directory / f"{user}.toml"

    def start(self) -> None:
        """Start it, and wait until it answers.

        Raises:
            Refused: another server has this directory.
            MessagingError: it does not start.
        """
        assert self._thread is None, "it is started once"
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.directory.chmod(0o700)
        self._lock()
        atexit.register(self.stop)
        # The kernel kills the server with the thread that started it, so that is one that stays.
        self._thread = threading.Thread(target=self._watch, name="nats-server", daemon=True)
        self._thread.start()
        self._ready.wait()
        if self._problem is not None:
            problem = self._problem
            self.stop()
            raise MessagingError(f"nats-server: {problem}")
        for name in self._users:
            _write_private(self.settings_path(name), self.settings(name).to_toml().encode())

    def stop(self) -> None:
        """Stop it for certain, and remove its files; more than once is allowed."""
        self._stopping.set()
        process = self._process
        if process is not None:
            _end(process)
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
        if self._lock_fd is not None:
            for path in (self._config, *(self.settings_path(name) for name in self._users)):
                path.unlink(missing_ok=True)
            self._forget_ports()
            os.close(self._lock_fd)
            self._lock_fd = None
        atexit.unregister(self.stop)

    @property
    def _config(self) -> Path:
        return self.directory / "server.conf"

    def _lock(self) -> None:
        descriptor = os.open(self.directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            raise Refused(
                f"{self.directory}: another message server runs there; stop it, "
                "or set ASCAR_RUNTIME_DIR to another folder"
            ) from None
        self._lock_fd = descriptor

    def _watch(self) -> None:
        """Keep a server running until it is stopped."""
        starts_s: list[float] = []
        try:
            while not self._stopping.is_set():
                now_s = time.monotonic()
                starts_s = [at for at in starts_s if now_s - at < _RESTARTS_PERIOD_S]
                if len(starts_s) > _RESTARTS_MAX:
                    self._problem = f"died {_RESTARTS_MAX} times within a minute; {self._last_words()}"
                    return
                starts_s.append(now_s)
                if not self._run_once():
                    return
                self.restarts += 1
        except OSError as error:
            self._problem = f"{error.filename or self._program}: {error.strerror}"
        finally:
            self._ready.set()

    def _run_once(self) -> bool:
        """Run a server to its end; whether another is to be started."""
        self._forget_ports()
        config = config_text(self.directory, self._port, list(self._users.values()), self._limits)
        _write_private(self._config, config.encode())
        with (self.directory / "server.err").open("wb") as errors:
            self._process = process = subprocess.Popen(
                bound([str(self._program), "-c", str(self._config)], signal.SIGKILL),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,  # ^C is for us: we stop it when we have said good-bye
            )
        if self._stopping.is_set():  # asked between the question and the start
            _end(process)
            return False
        due_s = time.monotonic() + self._start_timeout_s
        while process.poll() is None and not self._stopping.is_set():
            if self._answers(process.pid):
                self._ready.set()
                process.wait()
                return True
            if time.monotonic() > due_s:
                _end(process)
                self._problem = f"did not answer within {self._start_timeout_s:g} s; {self._last_words()}"
                return False
            time.sleep(_POLL_S)
        if self._ready.is_set():  # one has worked before: this is a death like others
            return True
        if not self._stopping.is_set():
            self._problem = f"ended with status {process.returncode} at its start; {self._last_words()}"
        return False

    def _answers(self, pid: int) -> bool:
        """Whether the server has told its port, and greets there."""
        path = self.directory / f"{self._program.name}_{pid}.ports"
        try:
            urls = json.loads(path.read_bytes())["nats"]
            self._port = int(str(urls[0]).rsplit(":", 1)[1])
            with socket.create_connection((HOST, self._port), timeout=_GREETING_S) as connection:
                return connection.recv(5) == b"INFO "
        except (OSError, ValueError, LookupError, TypeError):
            return False  # not there yet, or not all of it

    def _forget_ports(self) -> None:
        for path in self.directory.glob("*.ports"):
            path.unlink(missing_ok=True)

    def _last_words(self) -> str:
        for name in ("server.err", "server.log"):
            with suppress(OSError):
                lines = (self.directory / name).read_text("utf-8", "replace").strip().splitlines()
                if lines:
                    return lines[-1][:300]
        return f"see {self.directory / 'server.log'}"


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process: politely, then for certain."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(_TERM_S)
        except subprocess.TimeoutExpired:
            process.kill()
    process.wait()


def _write_private(path: Path, content: bytes) -> None:
    """Write a file that nobody else can read, at no moment; readers see all of it or the one before."""
    new = path.with_name(f".{path.name}.new")
    new.unlink(missing_ok=True)
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    new.replace(path)
