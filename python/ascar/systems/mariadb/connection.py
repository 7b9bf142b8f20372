"""A connection to a MariaDB server that others run: one `mariadb`, kept open from the beginning.

A password is read from a file. It is never part of a study, of an argument or of a journal.
"""

from __future__ import annotations

import re
import secrets
import shutil
import threading
from collections import Counter
from typing import ClassVar

from ascar.errors import EnvironmentLacks, InputError, Refused, StageFailed
from ascar.systems.existing.address import PasswordAddress
from ascar.systems.existing.client_program import ClientProgram
from ascar.systems.mariadb.server import pairs_of
from ascar.tls import Tls  # noqa: TC001 - msgspec reads it

PORT = 3306

_CONNECT_S = 10
_BEGIN = (
    "SET SESSION sql_mode = 'STRICT_ALL_TABLES', SESSION wait_timeout = 31536000, "
    "SESSION max_statement_time = 0"
)
"""A value that is out of range is refused, not made another one; a session that waits for a load stays."""
_ERROR = re.compile(r"^ERROR (\d+) \([0-9A-Z]+\)(?: at line \d+)?: (.*)$", re.MULTILINE)
# CR_SERVER_GONE_ERROR and those beside it, ER_CONNECTION_KILLED, ER_SERVER_SHUTDOWN; a line comes in pieces.
_LOST = re.compile(rb"^ERROR (?:20(?:02|03|06|13|55)|1927|1053) .*\n", re.MULTILINE)
_NO_RIGHT = frozenset({"1044", "1142", "1227"})
_SERVER = "MariaDB"


def mariadb_client() -> str | None:
    """The path of the client, which older versions call `mysql`; None: it is not installed."""
    return shutil.which("mariadb") or shutil.which("mysql")


class MariaAddress(PasswordAddress, frozen=True, kw_only=True):
    """Where a server is.

    Attributes:
        host: the host's name or address, or the path of a socket.
        port: the port; of no meaning for a socket.
        user: the user of the server. None: that of the caller's account.
        password_file: the absolute path of a file that holds the password.
        tls: absolute paths of certificates, where the server has to speak TLS. None: it need not.
    """

    port: int = PORT
    user: str | None = None
    password_file: str | None = None
    tls: Tls | None = None

    def words(self) -> list[str]:
        """The arguments of a client."""
        if self.is_socket:
            # A host of the caller's environment (MYSQL_HOST) would go before the socket.
            return ["--protocol=socket", "--host=localhost", f"--socket={self.host}", *self._user()]
        reached = ["--protocol=tcp", f"--host={self.host}", f"--port={self.port}"]
        tls = [
            f"--{name}" if value is None else f"--{name}={value}"
            for name, value in self.tls_options().items()
        ]
        return [*reached, *tls, *self._user()]

    def tls_options(self) -> dict[str, str | None]:
        """The options of a client for TLS, None where one has no value; none: the client decides.

        A client that has to verify the server's certificate ends before it says who it is, where the server
        offers no TLS.
        """
        if self.tls is None:
            return {}
        files = {"ssl-ca": self.tls.ca, "ssl-cert": self.tls.certificate, "ssl-key": self.tls.key}
        named = {option: path for option, path in files.items() if path is not None}
        return {"ssl": None, "ssl-verify-server-cert": None, **named}

    def _user(self) -> list[str]:
        return [] if self.user is None else [f"--user={self.user}"]


class MariaSession:
    """A session with a server; one statement at a time, from any thread.

    Args:
        address: where the server is.

    Raises:
        EnvironmentLacks: the client is not installed.
        StageFailed: the server refuses the connection, with its reason.
    """

    _selects: ClassVar[Counter[str]] = Counter()
    """The SELECT statements of this process, which are none of a server's clients, by the server's name."""
    _counting: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, address: MariaAddress) -> None:
        program = mariadb_client()
        if program is None:
            raise EnvironmentLacks("mariadb is not installed; install the package mariadb-client")
        try:
            password = address.password()
        except InputError as error:
            raise StageFailed("program", f"{_SERVER}: {error.message}") from error
        options = ["--no-defaults", "--batch", "--skip-column-names", "--unbuffered", "--force"]
        options += ["--skip-reconnect", f"--connect-timeout={_CONNECT_S}", *address.words()]
        self._name = address.name
        secret = {} if password is None else {"MYSQL_PWD": password}
        self._program = ClientProgram(_SERVER, [program, *options], secret, _last_words, _LOST)
        try:
            self.ask(_BEGIN, _CONNECT_S + 5.0)
        except BaseException:
            self.close()
            raise

    def ask(self, statement: str, limit_s: float = 10.0) -> str:
        """The answer to a statement: rows a line, columns apart by a tab.

        Raises:
            Refused: the user lacks a right.
            StageFailed: the server refuses it, does not answer in time, or is gone.
        """
        mark = secrets.token_hex(8)
        with self._counting:
            self._selects[self._name] += 1 + statement.upper().startswith("SELECT")
        answer, errors = self._program.exchanged(
            f"{statement};\nSELECT '{mark}';\n", mark, statement, limit_s
        )
        found = _ERROR.search(errors)
        if found is not None and found[1] in _NO_RIGHT:
            raise Refused(f"{_SERVER}: {found[2][:300]}")
        if found is not None:
            raise StageFailed("program", f"{_SERVER}: {found[2][:300]}", f"{statement}\n{errors}")
        return answer.rpartition(mark)[0]

    def variables(self) -> dict[str, str]:
        """The values in force.

        Raises:
            StageFailed: the server does not answer.
        """
        return pairs_of(self.ask("SHOW GLOBAL VARIABLES"))

    def status(self, limit_s: float = 10.0) -> dict[str, str]:
        """The server's status variables.

        Raises:
            StageFailed: the server does not answer.
        """
        return pairs_of(self.ask("SHOW GLOBAL STATUS", limit_s))

    @property
    def own_selects(self) -> int:
        """The SELECT statements that this process has sent to the server, by whatever session."""
        return self._selects[self._name]

    @property
    def is_open(self) -> bool:
        """Whether the connection has not been lost."""
        return self._program.is_open

    def close(self) -> None:
        """End the session."""
        self._program.close()


def _last_words(lines: list[str]) -> str:
    """The error with which the client ended."""
    found = [match[2] for match in map(_ERROR.match, lines) if match is not None]
    return (found or lines)[0]
