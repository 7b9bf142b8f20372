"""The keys of `[target]` for a Redis or Valkey server that people use."""

from __future__ import annotations

from ascar.errors import StudyError
from ascar.systems.existing.keys import PasswordKeys
from ascar.systems.redis.connection import PORT, RedisAddress


class ExistingRedisOptions(PasswordKeys, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[target]` of kind "redis" with `server = "existing"`.

    Attributes:
        server: "existing": a server that people use.
        host: the host, or the path of its socket.
        port: the port. None: 6379.
        user: the user of the server's access control list. None: "default".
        password_file: a file that holds the password in one line, and that nobody else may read.
        parameters: "expert", about twenty settings, or "wide", all that bear on speed.
        memory: the memory that the server may come to use. None: three quarters of this machine's.
        confirmed_server: the server that the command line confirms; see `--allow-live`.
    """


def check_redis_options(options: ExistingRedisOptions) -> None:
    """See that every key is in range, and that no password would be lost in a crash.

    Raises:
        StudyError: a key is wrong.
    """
    options.check_reached("REDISCLI_AUTH")
    if options.user is not None and (" " in options.user or options.password_file is None):
        raise StudyError(
            f"target.user = {options.user!r:.80}: must be one word, and needs target.password_file"
        )
    redis_address_of(options).password()


def redis_address_of(options: ExistingRedisOptions) -> RedisAddress:
    """Where the server is."""
    return RedisAddress(
        host=options.host,
        port=PORT if options.port is None else options.port,
        user=options.user,
        password_file=options.password_path,
    )
