"""The keys of `[target]` for a PostgreSQL server that people use."""

from __future__ import annotations

import os
from typing import Literal

import msgspec

from ascar.errors import StudyError
from ascar.systems.postgresql.connection import ServerAddress

_PORT_MAX = 65535


class ExistingServerOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
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
        restarts: "never": only settings that take effect without a restart are changed.
        confirmed_server: the server that the command line confirms; see `--allow-live`.
    """

    server: Literal["existing"]
    host: str | None = None
    port: int | None = None
    user: str | None = None
    database: str | None = None
    service: str | None = None
    parameters: Literal["expert", "wide"] = "expert"
    memory: str | None = None
    restarts: Literal["never"] = "never"
    confirmed_server: str | None = None


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
    if options.port is not None and not 1 <= options.port <= _PORT_MAX:
        raise StudyError(f"target.port = {options.port}: must be from 1 to {_PORT_MAX}")
    for key in ("host", "user", "database", "service"):
        text = getattr(options, key)
        if text is not None and (not text or not text.isprintable()):
            raise StudyError(f"target.{key} = {text!r:.80}: must be a text of characters that are printed")
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
