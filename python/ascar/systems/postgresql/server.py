"""A PostgreSQL server of a study's own: programs of one version, a data directory, psql."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from ascar.errors import StageFailed
from ascar.program.postgresql import Programs
from ascar.systems.own_server.server import OwnServer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


ROLE = "postgres"
DATABASE = "postgres"
SOCKET = ".s.PGSQL.5432"
_SETTINGS = "ascar.conf"
_REASONS = ("FATAL", "PANIC", "initdb: error: ")


class PostgresServer(OwnServer[Programs]):
    """The server; nothing runs until `begin`; `fixed` are NAME=VALUE."""

    name = "PostgreSQL"
    variables = ("PG",)

    @property
    def reached(self) -> Mapping[str, str]:
        """The variables of libpq (manual, section 34.15)."""
        return {"PGHOST": str(self.place), "PGPORT": "5432", "PGUSER": ROLE, "PGDATABASE": DATABASE}

    def create(self) -> None:
        """Make an empty data directory.

        Raises:
            StageFailed: initdb fails.
        """
        self._remove(self.data)
        initdb = self.programs.path("initdb")
        words = [initdb, "-D", str(self.data), "-U", ROLE]
        words += ["-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
        path = self.data / "postgresql.conf"
        try:
            self._run(words)
            with path.open("a", encoding="utf-8") as file:
                file.write(f"include_if_exists '{_SETTINGS}'\n")
        except StageFailed as failure:
            # Its last line tells of the directory that it empties again.
            reason = self._reason(failure.stderr)
            if reason is None:
                raise
            raise StageFailed("change", f"initdb: {reason}"[:400], failure.stderr) from None
        except OSError as error:
            raise StageFailed("change", f"{path}: {error.strerror}") from error

    def configure(self, lines: Sequence[str]) -> None:
        """Write the settings that the next start reads."""
        self._write(self.data / _SETTINGS, "".join(f"{line}\n" for line in lines))

    def begin(self, lines: Sequence[str], limit_s: float) -> None:
        """Start the server with settings, and wait until it answers.

        Raises:
            StageFailed: it does not start, e.g. since it refuses a setting; with its last words.
        """
        self.configure(lines)
        fixed = [
            "listen_addresses=",
            "port=5432",  # which PGPORT would change
            f"unix_socket_directories={self.place}",
            "unix_socket_permissions=0700",
            *self._fixed,
        ]
        words = [word for one in fixed for word in ("-c", one)]
        argv = [self.programs.path("postgres"), "-D", str(self.data), *words]
        self._launch(argv, {"LC_ALL": "C"}, limit_s)

    def ping(self, limit_s: float) -> None:
        """See that the server answers.

        Raises:
            StageFailed: it does not within `limit_s`.
        """
        self.ask("SELECT 1", limit_s)

    def ask(self, statement: str, limit_s: float = 60.0) -> str:
        """The answer to a statement: rows a line, columns apart by "|".

        Raises:
            StageFailed: the server refuses it, or does not answer in time.
        """
        return self._asked(
            [self.programs.path("psql"), *self._connection(), "-c", statement], statement, limit_s
        )

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

    def _shut_down(self) -> None:
        """End it; what a trial has changed is removed with its data, so only the fill is checkpointed."""
        mode = "immediate" if self.saved.exists() else "fast"
        self._run([self.programs.path("pg_ctl"), "stop", "-D", str(self.data), "-m", mode, "-t", "120"])

    def _answers(self) -> bool:
        if not (self.place / SOCKET).exists():
            return False
        with suppress(StageFailed):
            self.ask("SELECT 1", 5.0)
            return True
        return False

    def _reason(self, said: str) -> str | None:
        for line in reversed(said.splitlines()):
            if any(mark in line for mark in _REASONS):
                return line.partition("] ")[2] or line.partition("error: ")[2] or line
        return None
