"""Servers from packages, which tests run: whether they can, where, and what is left of them."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from ascar.catalogues import mariadb, postgresql
from ascar.errors import EnvironmentLacks
from ascar.program.account import Account
from ascar.program.mariadb import MariaPrograms
from ascar.program.postgresql import Programs

if TYPE_CHECKING:
    from collections.abc import Generator


def postgresql_account() -> Account:
    """Whom PostgreSQL runs as."""
    return Account.of(None, "PostgreSQL", "postgres")


def postgresql_installed() -> bool:
    """Whether a server that ascar tunes is there, and has an account."""
    try:
        postgresql_account()
        return Programs.find().major >= postgresql.VERSION_MIN
    except EnvironmentLacks:
        return False


def mariadb_account() -> Account:
    """Whom MariaDB runs as."""
    return Account.of(None, "MariaDB", "mysql")


def mariadb_installed() -> bool:
    """Whether a server that ascar tunes is there, with its load, and has an account."""
    try:
        mariadb_account()
        return MariaPrograms.find().number >= mariadb.VERSION_MIN and shutil.which("sysbench") is not None
    except EnvironmentLacks:
        return False


@contextmanager
def server_place(account: Account, prefix: str) -> Generator[str]:
    """A directory that the server's account can reach, with a path short enough for a socket."""
    with TemporaryDirectory(prefix=prefix, dir="/var/tmp") as folder:
        os.chown(folder, account.uid, -1)
        yield folder


def running(place: str, program: str) -> list[str]:
    """The command lines of a program's processes that name the place."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if place in words and program in words:
            found.append(words)
    return found
