"""The keys of `[target]` for a MariaDB server that people use."""

from __future__ import annotations

from ascar.systems.existing.keys import PasswordKeys
from ascar.systems.mariadb.connection import PORT, MariaAddress


class ExistingMariaDBOptions(PasswordKeys, frozen=True, forbid_unknown_fields=True, kw_only=True):
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


def check_mariadb_options(options: ExistingMariaDBOptions) -> None:
    """See that every key is in range, and that no password would be lost in a crash.

    Raises:
        StudyError: a key is wrong.
    """
    options.check_reached("MYSQL_PWD")
    mariadb_address_of(options).password()


def mariadb_address_of(options: ExistingMariaDBOptions) -> MariaAddress:
    """Where the server is."""
    return MariaAddress(
        host=options.host,
        port=PORT if options.port is None else options.port,
        user=options.user,
        password_file=options.password_path,
    )
