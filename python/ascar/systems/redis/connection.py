"""A connection to a Redis server that others run, kept open from the beginning.

A password is read from a file. It is never part of a study, of an argument or of a journal.
"""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from ascar.errors import InputError, StageFailed
from ascar.systems.existing.address import PasswordAddress
from ascar.systems.redis.protocol import RefusedCommand, Reply, exchanged

if TYPE_CHECKING:
    from typing import BinaryIO

APPLICATION = "ascar"
"""The name of ascar's connections in CLIENT LIST."""

PORT = 6379

_CONNECT_S = 10.0
_MEANT = {
    "NOAUTH": "asks for a password; write it to a file, and name that in target.password_file",
    "WRONGPASS": "refuses the password in target.password_file for {user}",
    "DENIED": "is in protected mode, and refuses connections from other machines; run ascar on the server's "
    "machine, or give the server a password",
    "LOADING": "is loading its data; try again when it has",
    "MASTERDOWN": "is a replica without its primary; tune the primary",
    "ERR AUTH": "has no password for {user}; leave target.password_file out",
    "ERR max number of clients": "takes no more clients (maxclients)",
}
"""What a server's errors mean, by how they begin."""


class RedisAddress(PasswordAddress, frozen=True, kw_only=True):
    """Where a server is.

    Attributes:
        host: the host's name or address, or the path of a socket.
        port: the port; of no meaning for a socket.
        user: the user of its access control list. None: "default".
        password_file: the absolute path of a file that holds the password.
    """

    port: int = PORT
    user: str | None = None
    password_file: str | None = None


class RedisSession:
    """A connection to a server; one command at a time, from any thread.

    Args:
        address: where the server is.
        name: the name of the connection in CLIENT LIST.

    Raises:
        StageFailed: the server refuses the connection, with its reason.
    """

    def __init__(self, address: RedisAddress, name: str = APPLICATION) -> None:
        self._address = address
        self._lock = threading.Lock()
        self._open = True
        try:
            password = address.password()
        except InputError as error:
            raise StageFailed("program", f"Redis: {error.message}") from error
        try:
            self._socket, self._stream = _connected(address)
        except OSError as error:
            raise StageFailed("program", f"Redis: {address.name}: {_reason(error)}") from error
        try:
            if password is not None:
                self._asked(("AUTH", *((address.user,) if address.user else ()), password), "AUTH")
            self._asked(("PING",), "PING")
            self._asked(("CLIENT", "SETNAME", name), "CLIENT SETNAME")
        except BaseException:
            self.close()
            raise

    @property
    def is_open(self) -> bool:
        """Whether the connection has not been lost."""
        return self._open

    def ask(self, *words: str, limit_s: float = 10.0) -> Reply:
        """The answer to a command.

        Raises:
            RefusedCommand: the server answers with an error.
            StageFailed: it does not answer in time, or is gone.
        """
        return self._asked(words, " ".join(words)[:80], limit_s)

    def close(self) -> None:
        """End the connection."""
        self._open = False
        with suppress(OSError):
            self._stream.close()
        with suppress(OSError):
            self._socket.close()

    def _asked(self, words: tuple[str, ...], what: str, limit_s: float = _CONNECT_S) -> Reply:
        with self._lock:
            if not self._open:
                raise StageFailed("program", f"Redis: {self._address.name}: the connection is lost")
            try:
                return exchanged(self._socket, self._stream, words, limit_s, what)
            except RefusedCommand as refusal:
                meant = meaning_of(refusal.said, self._address)
                if meant is None:
                    raise
                raise StageFailed("program", f"Redis: {self._address.name}: {meant}") from refusal
            except StageFailed as failure:
                self.close()  # an answer that comes late would be taken for the next one's
                raise StageFailed(
                    "program", f"Redis: {self._address.name}: {failure.message}"[:400]
                ) from failure
            except BaseException:  # ^C: an answer that comes late would be taken for the next one's
                self.close()
                raise


def meaning_of(said: str, address: RedisAddress) -> str | None:
    """What an error of the server means for whoever connects; None: it is one of the command."""
    user = f"user {address.user!r}" if address.user else "the default user"
    return next((text.format(user=user) for begin, text in _MEANT.items() if said.startswith(begin)), None)


def _connected(address: RedisAddress) -> tuple[socket.socket, BinaryIO]:
    if address.is_socket:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.settimeout(_CONNECT_S)
            connection.connect(address.host)
        except BaseException:
            connection.close()
            raise
    else:
        connection = socket.create_connection((address.host, address.port), _CONNECT_S)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection, connection.makefile("rb")


def _reason(error: OSError) -> str:
    return error.strerror or str(error) or type(error).__name__
