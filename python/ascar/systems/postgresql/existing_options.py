"""The keys of `[target]` for a PostgreSQL server that people use."""

from __future__ import annotations

import os
from typing import Literal

from ascar.errors import StudyError
from ascar.systems.existing.keys import ExistingKeys, check_port, check_text
from ascar.systems.postgresql.connection import ServerAddress


class ExistingServerOptions(ExistingKeys, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[target]` of kind "postgresql" with `server = "existing"`.

    Attributes:
        server: "existing": a server that people use.
        host: the host, or the directory of the socket. None: as libpq finds it.
        port: the port. None: as libpq finds it.
        user: the role. None: as libpq finds it.
        database: the database to connect to. None: as libpq finds it.
        service: a service of libpq's service file, in place of these.
        parameters: "expert", about twenty settings, or "wide", all that bear on speed.
        memory: the memory that the server may come to use. None: three quarters of this machine's.
        restarts: "never": only settings that take effect without a restart are changed; or "allowed".
        restart_command: the command that starts the server anew, where that is allowed.
        restart_limit: how long the server may take to answer after it; at most 45 s.
        confirmed_server: the server that the command line confirms; see `--allow-live`.
    """

    host: str | None = None
    port: int | None = None
    user: str | None = None
    database: str | None = None
    service: str | None = None
    restarts: Literal["never", "allowed"] = "never"
    restart_command: tuple[str, ...] = ()
    restart_limit: str = "30 s"


def check_options(options: ExistingServerOptions) -> None:
    """See that every key is in range, and that no password would be lost in a crash.

    Raises:
        StudyError: a key is wrong.
    """
    if os.environ.get("PGPASSWORD"):
        raise StudyError(
            "PGPASSWORD: is not there after a crash, when the old values are to be put back; use a "
            "password file (PGPASSFILE) or a service"
        )
    check_port(options.port)
    for key in ("host", "user", "database", "service"):
        text = getattr(options, key)
        check_text(key, text)
        if text is not None and "password" in text.lower() and "=" in text:
            raise StudyError(f"target.{key}: must not hold a password; use a password file or a service")
    if options.service is not None and (options.host, options.port) != (None, None):
        raise StudyError("target.service: names host and port already; leave target.host and target.port out")


def address_of(options: ExistingServerOptions) -> ServerAddress:
    """Where the server is."""
    return ServerAddress(
        host=options.host,
        port=options.port,
        user=options.user,
        database=options.database,
        service=options.service,
    ).here()
