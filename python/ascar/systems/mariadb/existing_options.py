"""The keys of `[target]` for a MariaDB server that people use."""

from __future__ import annotations

from pathlib import Path

from ascar.errors import InputError, StudyError
from ascar.systems.existing.address import OTHERS_MASK
from ascar.systems.existing.keys import PasswordKeys, check_text
from ascar.systems.mariadb.connection import PORT, MariaAddress
from ascar.tls import Tls


class ExistingMariaDBOptions(PasswordKeys, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[target]` of kind "mariadb" with `server = "existing"`.

    Attributes:
        server: "existing": a server that people use.
        host: the host, or the path of its socket.
        port: the port. None: 3306.
        user: the user of the server. None: that of your account.
        password_file: a file that holds the password in one line, and that nobody else may read.
        tls: files in PEM: `ca`, who signs the server's certificate (left out: whom the system trusts), and
            `certificate` and `key` of our own; the server has to speak TLS, and to have a certificate for
            `host`. None: the client decides.
        parameters: "expert", or "wide", all that bear on speed.
        memory: the memory that the server may come to use. None: three quarters of this machine's.
        confirmed_server: the server that the command line confirms; see `--allow-live`.
    """

    tls: Tls | None = None


def check_mariadb_options(options: ExistingMariaDBOptions) -> None:
    """See that every key is in range, and that no password would be lost in a crash.

    Raises:
        StudyError: a key is wrong.
    """
    options.check_reached("MYSQL_PWD")
    address = mariadb_address_of(options)
    address.password()
    if options.tls is None or address.tls is None:
        return
    if address.is_socket:
        raise StudyError("target.tls: must be left out where target.host is a socket, which nobody overhears")
    for key in Tls.__struct_fields__:
        check_text(f"tls.{key}", getattr(options.tls, key))
    try:
        address.tls.check()
        address.tls.context()
    except InputError as error:
        raise StudyError(f"target.{error.message}") from None
    if address.tls.key is not None and Path(address.tls.key).stat().st_mode & OTHERS_MASK:
        key = f"target.tls.key = {options.tls.key!r:.200}"
        raise StudyError(f"{key}: others may read it; make it its owner's alone (chmod 600)")


def mariadb_address_of(options: ExistingMariaDBOptions) -> MariaAddress:
    """Where the server is."""
    return MariaAddress(
        host=options.host,
        port=PORT if options.port is None else options.port,
        user=options.user,
        password_file=options.password_path,
        tls=None if options.tls is None else _absolute(options.tls),
    )


def _absolute(tls: Tls) -> Tls:
    """The same files for a program that is started elsewhere later."""

    def path(name: str | None) -> str | None:
        return None if not name else str(Path(name).expanduser().absolute())

    return Tls(ca=path(tls.ca), certificate=path(tls.certificate), key=path(tls.key))
