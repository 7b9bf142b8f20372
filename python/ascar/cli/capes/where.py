"""Which session a command is about, and how it is reached: one that runs here, or by a connection file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from ascar.messaging import Settings


def session_at(session: str | None, connection: Path | None, user: str) -> tuple[str, Callable[[], Settings]]:
    """Its name, and what tells how to connect now: a session that is begun anew has other passwords.

    Args:
        session: the session's name or its folder's path; None means the only session on this machine.
        connection: a connection file; None: it runs here.
        user: the user whose connection file is used for a session on this machine.

    Raises:
        InputError: the file is wrong, or no session is named beside it.
        EnvironmentLacks: it does not run here.
    """
    from ascar.capes.session.folder import find_folder
    from ascar.errors import InputError
    from ascar.messaging import read_settings, token

    if connection is not None:
        if session is None:
            raise InputError(f"--connection = {str(connection)!r}: name the session, too")
        read_settings(connection)
        return token("session", session), lambda: read_settings(connection)
    folder = find_folder(session)
    folder.settings(user)
    return folder.runner().session, lambda: folder.settings(user)
