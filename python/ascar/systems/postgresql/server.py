"""A PostgreSQL server of a study's own: a data directory, a process, a socket only for its account.

    PLACE/data      the data directory of the running server
    PLACE/saved     a copy of it as the load's fill left it, from which each trial starts
    PLACE/load      where the load runs
    PLACE           the socket; nothing listens on the network

The keeper of the user ends the process and removes PLACE if we are killed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ascar.errors import StageFailed
from ascar.systems.program.foreground import Foreground

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ascar.program.postgresql import Account, Programs
    from ascar.systems.keeper import Keeper

ROLE = "postgres"
DATABASE = "postgres"
_LOOK_S = 0.02
_END_S = 30.0
_STAGE_S = 600.0
_SETTINGS = "ascar.conf"


class PostgresServer:
    """The server; nothing runs until `start`.

    Args:
        programs: the version to run.
        account: whom it runs as.
        place: the directory, which exists and belongs to the account.
        keeper: a keeper of the user.
    """

    def __init__(self, programs: Programs, account: Account, place: Path, keeper: Keeper) -> None:
        self.programs, self.account, self.place = programs, account, place
        self._keeper = keeper
        self._process: Foreground | None = None

    @property
    def data(self) -> Path:
        """The data directory."""
        return self.place / "data"

    @property
    def saved(self) -> Path:
        """The copy that trials start from; it is there once `save` was called."""
        return self.place / "saved"

    def create(self) -> None:
        """Make an empty data directory.

        Raises:
            StageFailed: initdb fails.
        """
        self._remove(self.data)
        initdb = self.programs.path("initdb")
        self._run(
            [initdb, "-D", str(self.data), "-U", ROLE, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
        )
        with (self.data / "postgresql.conf").open("a", encoding="utf-8") as file:
            file.write(f"include_if_exists '{_SETTINGS}'\n")

    def save(self) -> None:
        """Keep the data as it is as the state from which trials start; the server is stopped."""
        self._remove(self.saved)
        self.data.rename(self.saved)

    def load(self) -> None:
        """Make the data directory as it was saved, on disk and not in memory; the server is stopped.

        Raises:
            StageFailed: it cannot be copied.
        """
        self._remove(self.data)
        self._run(["cp", "-a", "--reflink=auto", "--", str(self.saved), str(self.data)], as_us=True)
        self._run(["sync", "-f", str(self.data)], as_us=True)
        for folder, _, names in os.walk(self.place):
            for name in names:
                with suppress(OSError), Path(folder, name).open("rb") as file:
                    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    def configure(self, lines: Sequence[str]) -> None:
        """Write the settings that the next start reads."""
        path = self.data / _SETTINGS
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        if self.account.name is not None:
            os.chown(path, self.account.uid, self.account.gid)

    def start(self, options: Sequence[str], limit_s: float) -> None:
        """Start the server, and wait until it answers.

        Args:
            options: NAME=VALUE, which no configuration overrides.
            limit_s: seconds that it may take.

        Raises:
            StageFailed: it does not start, e.g. since it refuses a setting; with its last words.
        """
        fixed = [
            "listen_addresses=",
            f"unix_socket_directories={self.place}",
            "unix_socket_permissions=0700",
            *options,
        ]
        words = [word for one in fixed for word in ("-c", one)]
        argv = self.account.run(self.programs.path("postgres"), "-D", str(self.data), *words)
        self._process = Foreground(argv, {"LC_ALL": "C"}, self.place, self._keeper, _END_S)
        begun_s = time.monotonic()
        while not self._answers():
            try:
                self._process.check_alive()
            except StageFailed as failure:
                self.stop()
                raise StageFailed("change", _reason(failure), failure.stderr) from None
            if time.monotonic() - begun_s > limit_s:
                self.stop()
                raise StageFailed("change", f"the PostgreSQL server does not answer after {limit_s:g} s")
            time.sleep(_LOOK_S)

    def check_alive(self) -> None:
        """See that the server runs.

        Raises:
            StageFailed: it does not.
        """
        if self._process is None:
            raise StageFailed("program", "the PostgreSQL server is not running")
        self._process.check_alive()

    def stop(self) -> None:
        """End the server, in its fast mode where it can: it writes what is not written."""
        process, self._process = self._process, None
        if process is None:
            return
        with suppress(StageFailed):
            process.check_alive()
            self._run([self.programs.path("pg_ctl"), "stop", "-D", str(self.data), "-m", "fast", "-t", "120"])
        process.end()

    def ask(self, statement: str, limit_s: float = 60.0) -> str:
        """The answer to a statement: rows a line, columns apart by "|".

        Raises:
            StageFailed: the server refuses it, or does not answer in time.
        """
        argv = self.account.run(self.programs.path("psql"), *self._connection(), "-c", statement)
        try:
            done = subprocess.run(
                argv, capture_output=True, text=True, timeout=limit_s, check=False, cwd=self.place
            )
        except subprocess.TimeoutExpired:
            problem = f"the PostgreSQL server does not answer within {limit_s:g} s: {statement[:80]}"
            raise StageFailed("program", problem) from None
        if done.returncode != 0:
            raise StageFailed("program", f"PostgreSQL: {_last(done.stderr)}", done.stderr)
        return done.stdout

    def _connection(self) -> list[str]:
        return [
            "-X",
            "-A",
            "-t",
            "-q",
            "-v",
            "ON_ERROR_STOP=1",
            "-h",
            str(self.place),
            "-U",
            ROLE,
            "-d",
            DATABASE,
        ]

    def _answers(self) -> bool:
        if not (self.place / ".s.PGSQL.5432").exists():
            return False
        with suppress(StageFailed):
            self.ask("SELECT 1", 5.0)
            return True
        return False

    def _remove(self, path: Path) -> None:
        try:
            if path.exists():
                shutil.rmtree(path)
        except OSError as error:
            raise StageFailed("change", f"{error.filename}: {error.strerror}") from error

    def _run(self, argv: Sequence[str], *, as_us: bool = False) -> None:
        words = list(argv) if as_us else self.account.run(*argv)
        try:
            done = subprocess.run(
                words, capture_output=True, text=True, timeout=_STAGE_S, check=False, cwd=self.place
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise StageFailed("change", f"{argv[0]}: {error}") from error
        if done.returncode != 0:
            raise StageFailed("change", f"{Path(argv[0]).name}: {_last(done.stderr)}", done.stderr)


def _last(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip()[:300] if lines else "no message"


def _reason(failure: StageFailed) -> str:
    """The line of the server's last words that says why it ended, rather than that it did."""
    for line in reversed(failure.stderr.splitlines()):
        if "FATAL" in line or "PANIC" in line:
            return f"the PostgreSQL server does not start: {line.partition('] ')[2] or line}"[:400]
    return f"the PostgreSQL server does not start: {failure.message}"
