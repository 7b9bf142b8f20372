"""What a local file system under tuning needs of the one who starts it: root, and the load's account."""

from __future__ import annotations

import os
import pwd

from ascar.errors import EnvironmentLacks, StudyError
from ascar.systems.keeper_process import command as keeper_command


def check_root() -> None:
    """See that the keeper can be started.

    Raises:
        EnvironmentLacks: neither root nor a way to become it.
    """
    try:
        keeper_command(None)
    except EnvironmentLacks as error:
        raise lacks_root(error) from error


def lacks_root(error: EnvironmentLacks) -> EnvironmentLacks:
    """The same error, in this target's words."""
    return EnvironmentLacks(f"target.kind = 'localfs': {error.message}; the kind 'sqlite' needs no root")


def owner_of_load(user: str | None, *, as_root: bool = False) -> tuple[int, int] | None:
    """Whom the load's files belong to: uid and gid; None: the caller.

    Args:
        user: the account.
        as_root: whether the load is started by root, whoever the caller is.

    Raises:
        StudyError: there is no such account.
        EnvironmentLacks: the caller may not run programs as that one.
    """
    if user is None:
        return None
    try:
        entry = pwd.getpwnam(user)
    except KeyError as error:
        raise StudyError(
            f"target.user = {user!r}: there is no such account; name another, or none"
        ) from error
    if not as_root and os.geteuid() not in (0, entry.pw_uid):
        raise EnvironmentLacks(f"target.user = {user!r}: only root can run a load as another; leave it out")
    return entry.pw_uid, entry.pw_gid
