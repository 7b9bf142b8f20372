"""The keys of `[target]` that every server of others has."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

import msgspec

from ascar.errors import StudyError

_PORT_MAX = 65535


class ExistingKeys(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The keys that kinds share; they say what these mean for them.

    Attributes:
        server: "existing": a server that people use.
        parameters: which settings are searched.
        memory: the memory that the server may come to use. None: three quarters of this machine's.
        confirmed_server: the server that the command line confirms; see `--allow-live`.
    """

    server: Literal["existing"]
    parameters: Literal["expert", "wide"] = "expert"
    memory: str | None = None
    confirmed_server: str | None = None


class PasswordKeys(ExistingKeys, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The keys of kinds whose password is in a file that ascar reads; they say what these mean for them.

    Attributes:
        server: "existing": a server that people use.
        host: the host, or the path of its socket.
        port: the port. None: the server's usual one.
        user: the user to connect as.
        password_file: a file that holds the password in one line, and that nobody else may read.
        parameters: which settings are searched.
        memory: the memory that the server may come to use. None: three quarters of this machine's.
        confirmed_server: the server that the command line confirms; see `--allow-live`.
    """

    host: str = "127.0.0.1"
    port: int | None = None
    user: str | None = None
    password_file: str | None = None

    @property
    def password_path(self) -> str | None:
        """The absolute path of that file, for a program that is started elsewhere later."""
        return None if self.password_file is None else str(Path(self.password_file).expanduser().absolute())

    def check_reached(self, variable: str) -> None:
        """See that every key is in range, and that no password would be lost in a crash.

        Args:
            variable: the variable of the environment by which the server's client takes a password.

        Raises:
            StudyError: a key is wrong.
        """
        if os.environ.get(variable) and self.password_file is None:
            raise StudyError(
                f"{variable}: is not there after a crash, when the old values are to be put back; write the "
                "password to a file, and name that in target.password_file"
            )
        check_port(self.port)
        for key in ("host", "user", "password_file"):
            check_text(key, getattr(self, key))
        if "@" in self.host or "://" in self.host:
            raise StudyError("target.host: must be a host or the path of a socket, without user and password")
        if self.host.startswith("/") and self.port is not None:
            raise StudyError(f"target.port = {self.port}: must be left out where target.host is a socket")


def check_port(port: int | None) -> None:
    """See that a port is one.

    Raises:
        StudyError: it is out of range.
    """
    if port is not None and not 1 <= port <= _PORT_MAX:
        raise StudyError(f"target.port = {port}: must be from 1 to {_PORT_MAX}")


def check_text(key: str, text: str | None) -> None:
    """See that a text of `[target]` is one line that is not empty.

    Raises:
        StudyError: it is not.
    """
    if text is not None and (not text or not text.isprintable()):
        raise StudyError(f"target.{key} = {text!r:.80}: must be a text of characters that are printed")
