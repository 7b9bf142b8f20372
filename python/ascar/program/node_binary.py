"""The node binary, `ascard`, on this machine."""

from __future__ import annotations

import grp
import os
import shutil
import stat
import sys
from pathlib import Path

from ascar.errors import EnvironmentLacks

INSTALLED_KEEPER = Path("/usr/libexec/ascar/ascard")
"""Where `sudo make install-keeper` puts the `ascard` that root runs for others; lines in sudoers name it."""


TUNING_GROUP = "ascar-tune"
"""The group whose members may have root's keeper started; the package ascar-node makes it."""


def way_to_root() -> str:
    """What gives a user who has no root a keeper of root's on this machine: the end of a sentence."""
    try:
        grp.getgrnam(TUNING_GROUP)
    except KeyError:
        return "be allowed to by `sudo make install-keeper`"
    return f"have root add you to the group {TUNING_GROUP}, and log in again"


def find_ascard() -> Path:
    """The `ascard` beside this Python, or in PATH.

    Raises:
        EnvironmentLacks: there is none.
    """
    beside = Path(sys.executable).parent / "ascard"
    if os.access(beside, os.X_OK):
        return beside
    found = shutil.which("ascard")
    if found is None:
        raise EnvironmentLacks(
            f"ascard: is neither {beside} nor in PATH; `pip install ascard` or `make setup` installs it"
        )
    return Path(found)


def find_keeper() -> Path:
    """The `ascard` that others than root may have root run: the installed one, else that of `find_ascard`.

    Raises:
        EnvironmentLacks: there is none, or others than root may write it and so be root.
    """
    keeper = INSTALLED_KEEPER if INSTALLED_KEEPER.exists() else find_ascard()
    check_roots_alone(keeper)
    return keeper


def check_roots_alone(keeper: Path) -> None:
    """See that nobody but root may write this file, or replace it.

    Raises:
        EnvironmentLacks: somebody else may; the message names where.
    """
    file = keeper.resolve()
    for place in (file, *file.parents):
        try:
            state = place.stat()
        except OSError as error:
            raise EnvironmentLacks(f"needs root: {keeper}: {error.strerror}: {_INSTALL}") from error
        # In a sticky directory such as /tmp nobody replaces what is root's.
        is_open = state.st_mode & 0o022 and (place == file or not state.st_mode & stat.S_ISVTX)
        if state.st_uid != 0 or is_open:
            raise EnvironmentLacks(
                f"needs root: {place} may be written by others than root, who would be root through sudo: "
                f"{_INSTALL}, or run this as root"
            )


_INSTALL = "install a keeper of root's with `sudo make install-keeper`"
