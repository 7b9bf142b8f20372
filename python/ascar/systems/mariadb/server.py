"""A MariaDB server of a study's own: a directory of data, an option file, the command-line client.

PLACE/my.cnf        the settings of the next start; no other option file is read
PLACE/mysqld.sock   the socket
"""

from __future__ import annotations

import re
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from ascar.errors import StageFailed
from ascar.program.mariadb import MariaPrograms
from ascar.systems.own_server.server import OwnServer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


SOCKET = "mysqld.sock"
USER = "root"
"""The user of the server, whom only its account can be: others do not reach the socket."""
DATABASE = "test"
_ERROR = "[ERROR] "
_PROGRAM = re.compile(r"^(?:/\S*/)?(?:mariadbd|mysqld): ")


class MariaServer(OwnServer[MariaPrograms]):
    """The server; nothing runs until `begin`; `fixed` are lines of the option file."""

    name = "MariaDB"
    variables = ("MYSQL_", "MARIADB_")

    @property
    def socket(self) -> Path:
        """The path of the socket."""
        return self.place / SOCKET

    @property
    def _temporary(self) -> Path:
        """Its temporary tables: a server that starts deletes those of others that share its directory."""
        return self.place / "tmp"

    @property
    def reached(self) -> Mapping[str, str]:
        """The client library's variables, and whom to connect as."""
        return {**at_socket(str(self.socket)), "MARIADB_USER": USER, "MARIADB_DATABASE": DATABASE}

    def create(self) -> None:
        """Make an empty directory of data, with a database for the load.

        Raises:
            StageFailed: mariadb-install-db fails.
        """
        super().create()
        self._make_temporary()
        install = self.programs.path("mariadb-install-db")
        options = ["--auth-root-authentication-method=normal", "--skip-name-resolve", "--skip-log-bin"]
        directories = [f"--datadir={self.data}", f"--tmpdir={self._temporary}"]
        self._run([install, "--no-defaults", *directories, *options])

    def begin(self, lines: Sequence[str], limit_s: float) -> None:
        """Start the server with lines of its option file, and wait until it answers.

        Raises:
            StageFailed: it does not start, e.g. since it refuses a setting; with its last words.
        """
        self._make_temporary()
        # Pages that an earlier server had in memory are not read at the start: trials begin alike.
        fixed = [
            *self._fixed,
            "skip_networking",
            f"datadir = {self.data}",
            f"tmpdir = {self._temporary}",
            f"socket = {self.socket}",
            f"pid_file = {self.place / 'mysqld.pid'}",
            "innodb_buffer_pool_load_at_startup = OFF",
            "innodb_buffer_pool_dump_at_shutdown = OFF",
        ]
        path = self.place / "my.cnf"
        self._write(path, "".join(f"{line}\n" for line in ["[mysqld]", *lines, *fixed]))
        self._launch([str(self.programs.server), f"--defaults-file={path}"], {"LC_ALL": "C"}, limit_s)

    def _make_temporary(self) -> None:
        """Make the directory of temporary tables, empty."""
        self._remove(self._temporary)
        self._make(self._temporary)

    def ping(self, limit_s: float) -> None:
        """See that the server answers.

        Raises:
            StageFailed: it does not within `limit_s`.
        """
        self.ask("SELECT 1", limit_s)

    def ask(self, statement: str, limit_s: float = 60.0) -> str:
        """The answer to a statement: rows a line, columns apart by a tab.

        Raises:
            StageFailed: the server refuses it, or does not answer in time.
        """
        client = [self.programs.path("mariadb"), "--no-defaults", "--batch", "--skip-column-names"]
        reached = [f"--socket={self.socket}", f"--user={USER}", f"--database={DATABASE}"]
        argv = [*client, *reached, "-e", statement]
        return self._asked(argv, statement, limit_s)

    def settings(self) -> dict[str, str]:
        """The values in force.

        Raises:
            StageFailed: the server does not answer.
        """
        return pairs_of(self.ask("SHOW GLOBAL VARIABLES"))

    def status(self) -> dict[str, str]:
        """The server's status variables.

        Raises:
            StageFailed: the server does not answer.
        """
        return pairs_of(self.ask("SHOW GLOBAL STATUS"))

    def catch_up(self, limit_s: float) -> None:
        """Do all work that InnoDB has put off: first the removal of old versions, which changes pages itself.

        Raises:
            StageFailed: it takes longer.
        """
        begun_s = time.monotonic()
        self.ask("SET GLOBAL innodb_max_purge_lag_wait = 0", limit_s)
        self.ask("SET GLOBAL innodb_log_checkpoint_now = ON", limit_s - (time.monotonic() - begun_s))

    def _shut_down(self) -> None:
        """Ask it to end; its process is then waited for."""
        with suppress(StageFailed):  # the connection ends with the server
            self.ask("SHUTDOWN")

    def _answers(self) -> bool:
        if not self.socket.exists():
            return False
        with suppress(StageFailed):
            self.ask("SELECT 1", 5.0)
            return True
        return False

    def _reason(self, said: str) -> str | None:
        """The first error, for those after it follow from it."""
        for line in said.splitlines():
            if _ERROR in line:
                return _PROGRAM.sub("", line.partition(_ERROR)[2])
        return None


def at_socket(path: str) -> dict[str, str]:
    """The variables by which clients find a socket, and neither host nor password of another server."""
    return {"MYSQL_UNIX_PORT": path, "MYSQL_HOST": "localhost", "MYSQL_PWD": ""}


def pairs_of(rows: str) -> dict[str, str]:
    """Names and values of rows with two columns."""
    pairs = (row.partition("\t") for row in rows.splitlines())
    return {name: value for name, mark, value in pairs if mark}
