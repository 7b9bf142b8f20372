"""The keys of `[target]` for a MariaDB server that people use."""

from __future__ import annotations

import os
from pathlib import Path

from ascar.errors import StudyError
from ascar.systems.existing.keys import ExistingKeys, check_port, check_text
from ascar.systems.mariadb.connection import PORT, MariaAddress


class ExistingMariaDBOptions(ExistingKeys, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[target]` of kind "mariadb" with `server = "existing"`.

    Attributes:
        server: "existing": a server that people use.
        host: the host, or the path of its socket.
        port: the port. None: 3306.
        user: the user of the server. None: that of your account.
        password_file: a file that holds the password in one line, and that nobody else may read.
        parameters: "expert", or "wide", all that bear on speed.
        memory: the memory that the server may come to use. None: three quarters of this machine's.
        confirmed_server: the server that the command line confirms; see `--allow-live`.
    """

    host: str = "127.0.0.1"
    port: int | None = None
    user: str | None = None
    password_file: str | None = None


def check_mariadb_options(options: ExistingMariaDBOptions) -> None:
    """See that every key is in range, and that no password would be lost in a crash.

    Raises:
        StudyError: a key is wrong.
    """
    if os.environ.get("MYSQL_PWD") and options.password_file is None:
        raise StudyError(
            "MYSQL_PWD: is not there after a crash, when the old values are to be put back; write the "
            "password to a file, and name that in target.password_file"
        )
    check_port(options.port)
    for key in ("host", "user", "password_file"):
        check_text(key, getattr(options, key))
    if "@" in options.host or "://" in options.host:
        raise StudyError("target.host: must be a host or the path of a socket, without user and password")
    if options.host.startswith("/") and options.port is not None:
        raise StudyError(f"target.port = {options.port}: must be left out where target.host is a socket")
    mariadb_address_of(options).password()


def mariadb_address_of(options: ExistingMariaDBOptions) -> MariaAddress:
    """Where the server is."""
    given = options.password_file
    return MariaAddress(
        host=options.host,
        port=PORT if options.port is None else options.port,
        user=options.user,
        password_file=None if given is None else str(Path(given).expanduser().absolute()),
    )
