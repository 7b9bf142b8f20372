"""A connection to a PostgreSQL server that others run: one psql, kept open from the beginning.

A password is found by libpq's own means, a password file or a service (manual, sections 34.16 and 34.17).
It is never part of a study, of an argument or of a journal.
"""

from __future__ import annotations

import os
import secrets
import shutil

import msgspec

from ascar.errors import EnvironmentLacks, StageFailed
from ascar.systems.existing.client_program import ClientProgram

APPLICATION = "ascar"
"""The name of ascar's sessions in pg_stat_activity."""

_CONNECT_S = 10
# Manual, section 34.15.
_KEPT = (
    *("PGPASSFILE", "PGSERVICEFILE", "PGSYSCONFDIR", "HOME"),
    *("PGSSLMODE", "PGSSLROOTCERT", "PGSSLCERT", "PGSSLKEY", "PGSSLCRL", "PGSSLCRLDIR", "PGSSLNEGOTIATION"),
    *("PGREQUIREAUTH", "PGCHANNELBINDING", "PGGSSENCMODE", "PGKRBSRVNAME"),
)


class ServerAddress(msgspec.Struct, frozen=True, kw_only=True):
    """Where a server is, as libpq is told; what is None is left to libpq.

    Attributes:
        host: the host's name or address, or the directory of the socket.
        port: the port.
        user: the role.
        database: the database to connect to.
        service: a service of libpq's service file.
        files: libpq's variables that name files or say what a connection has to be secured by, and the home
            directory, in which libpq looks for others.
    """

    host: str | None = None
    port: int | None = None
    user: str | None = None
    database: str | None = None
    service: str | None = None
    files: dict[str, str] = {}

    def here(self) -> ServerAddress:
        """The address with the files that libpq finds now, for a program that is started elsewhere later."""
        return msgspec.structs.replace(
            self, files={name: os.environ[name] for name in _KEPT if name in os.environ}
        )

    def variables(self) -> dict[str, str]:
        """The variables of libpq for a load (manual, section 34.15)."""
        given = {
            "PGHOST": self.host,
            "PGPORT": None if self.port is None else str(self.port),
            "PGUSER": self.user,
            "PGDATABASE": self.database,
            "PGSERVICE": self.service,
        }
        return {name: value for name, value in given.items() if value is not None}

    def conninfo(self, application: str) -> str:
        """The connection string (manual, section 34.1.1.1)."""
        given = {
            "service": self.service,
            "host": self.host,
            "port": self.port,
            "user": self.user,
            "dbname": self.database,
            "application_name": application,
            "connect_timeout": _CONNECT_S,
        }
        return " ".join(f"{key}={_quoted(str(one))}" for key, one in given.items() if one is not None)


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


class PsqlSession:
    """A session with a server; one statement at a time, from any thread.

    Args:
        address: where the server is.
        application: the name of the session.

    Raises:
        EnvironmentLacks: psql is not installed.
        StageFailed: the server refuses the connection, with its reason.
    """

    def __init__(self, address: ServerAddress, application: str = APPLICATION) -> None:
        psql = shutil.which("psql")
        if psql is None:
            raise EnvironmentLacks(
                "psql is not installed; install the package postgresql-client (Fedora: postgresql)"
            )
        words = [psql, "-X", "-A", "-t", "-q", "-w", "-d", address.conninfo(application)]
        self._program = ClientProgram("PostgreSQL", words, address.files, _last_words)
        try:
            self.ask("SET statement_timeout = '10s'; SET client_min_messages = error", _CONNECT_S + 5.0)
            self.host, _, self.port = self.command(r"\echo :HOST :PORT").strip().rpartition(" ")
        except BaseException:
            self.close()
            raise

    def ask(self, statement: str, limit_s: float = 10.0) -> str:
        """The answer to a statement: rows a line, columns apart by "|".

        Raises:
            StageFailed: the server refuses it, does not answer in time, or is gone.
        """
        return self.command(f"{statement};", limit_s)

    def command(self, line: str, limit_s: float = 10.0) -> str:
        """What a line of psql's input prints.

        Raises:
            StageFailed: as `ask`.
        """
        mark = secrets.token_hex(8)
        # psql prints the message on its own, and whether there was an error on the line that ends the answer.
        script = f"{line}\n\\echo {mark} :ERROR :LAST_ERROR_MESSAGE\n"
        said, _ = self._program.exchanged(script, mark, line, limit_s)
        answer, _, ended = said.rpartition(mark)
        failed, _, message = ended.strip().partition(" ")
        if failed == "true":
            raise StageFailed("program", f"PostgreSQL: {message[:300]}", f"{line}\n{message}")
        return answer

    @property
    def is_open(self) -> bool:
        """Whether the connection has not been lost."""
        return self._program.is_open

    def close(self) -> None:
        """End the session."""
        self._program.close()


def _last_words(lines: list[str]) -> str:
    """The line that says why psql ended."""
    fatal = [line for line in lines if "FATAL" in line or "error" in line]
    return (fatal or lines)[-1].removeprefix("psql: ")
