"""Where a server of others is, which asks for a password: that is in a file, and nowhere else."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import msgspec

from ascar.errors import StudyError
from ascar.small_file import SmallFile

_PASSWORD_BYTES_MAX = 4096
OTHERS_MASK = 0o077
"""The bits of a file's mode that let others than its owner use it."""


class PasswordAddress(msgspec.Struct, frozen=True, kw_only=True):
    """Where a server is; kinds say the port, and what no user means.

    Attributes:
        host: the host's name or address, or the path of a socket.
        port: the port; of no meaning for a socket.
        user: the user to connect as.
        password_file: the absolute path of a file that holds the password.
    """

    host: str
    port: int
    user: str | None
    password_file: str | None

    @property
    def is_socket(self) -> bool:
        """Whether the host is the path of a socket."""
        return self.host.startswith("/")

    @property
    def is_local(self) -> bool:
        """Whether the server is reached by a socket or the loopback of this machine."""
        return self.is_socket or self.host in ("localhost", "127.0.0.1", "::1")

    @property
    def name(self) -> str:
        """The name by which a user confirms the server: HOST:PORT, or the path of the socket."""
        return self.host if self.is_socket else f"{self.host}:{self.port}"

    def password(self) -> str | None:
        """The password.

        Raises:
            StudyError: its file cannot be read, holds none or what no password has, or others may read it.
        """
        if self.password_file is None:
            return None
        path = Path(self.password_file)
        key = f"target.password_file = {self.password_file!r:.200}"
        text = SmallFile(path, key, _PASSWORD_BYTES_MAX, error=StudyError).text()
        text = text.removesuffix("\n").removesuffix("\r")
        if not text or "\n" in text or "\r" in text:
            raise StudyError(f"{key}: must hold the password, in one line")
        for place, sign in enumerate(text, 1):
            if unicodedata.category(sign) == "Cc":
                raise StudyError(f"{key}: has {sign!r} as sign {place}; must have no control characters")
        if path.stat().st_mode & OTHERS_MASK:
            raise StudyError(f"{key}: others may read it; make it its owner's alone (chmod 600)")
        return text
