"""Whom a server of a study's own runs as: never root."""

from __future__ import annotations

import os
import pwd
from dataclasses import dataclass
from pathlib import Path

from ascar.errors import EnvironmentLacks, StudyError


@dataclass(frozen=True, slots=True)
class Account:
    """Whom the server runs as.

    Attributes:
        name: the account; None: ourselves.
        uid: its number.
        gid: the number of its group.
        home: its home directory.
    """

    name: str | None
    uid: int
    gid: int
    home: Path

    @classmethod
    def of(cls, user: str | None, server: str, usual: str) -> Account:
        """The account of a study; the package's where root names none.

        Args:
            user: what the study names.
            server: the name of the server, for people.
            usual: the account that packages make for the server.

        Raises:
            StudyError: there is no such account, or it is root's.
            EnvironmentLacks: we are root, and the package's account is not there.
        """
        root = os.geteuid() == 0
        if user is None and not root:
            entry = pwd.getpwuid(os.geteuid())
            return cls(None, entry.pw_uid, entry.pw_gid, Path(entry.pw_dir))
        try:
            entry = pwd.getpwnam(user or usual)
        except (KeyError, ValueError) as error:
            if user is None:
                raise EnvironmentLacks(
                    f"there is no account {usual!r}, and {server} must not run as root; "
                    "name an account in target.user"
                ) from error
            raise StudyError(f"target.user = {user!r}: there is no such account") from error
        if entry.pw_uid == 0:
            raise StudyError(f"target.user = {user!r}: {server} must not run as root; name another account")
        if not root and entry.pw_uid != os.geteuid():
            raise StudyError(f"target.user = {user!r}: only root can run a server as somebody else")
        return cls(entry.pw_name if root else None, entry.pw_uid, entry.pw_gid, Path(entry.pw_dir))

    def run(self, *argv: str) -> list[str]:
        """The words that run a program as the account."""
        if self.name is None:
            return list(argv)
        setpriv = ["setpriv", f"--reuid={self.uid}", f"--regid={self.gid}", "--init-groups"]
        return [*setpriv, "--", *argv]
