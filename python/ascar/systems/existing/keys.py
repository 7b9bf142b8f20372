"""The keys of `[target]` that every server of others has."""

from __future__ import annotations

from typing import Literal

import msgspec

from ascar.errors import StudyError

_PORT_MAX = 65535


class ExistingKeys(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The keys that kinds share; they say what these mean for them.

    Attributes:
        server: "existing": a server that people use.
        parameters: which settings are searched.
        memory: the memory that the server may come to use. None: three quarters of this machine's.
        confirmed_server: the server that the command line confirms; see `--allow-live`.
    """

    server: Literal["existing"]
    parameters: Literal["expert", "wide"] = "expert"
    memory: str | None = None
    confirmed_server: str | None = None


def check_port(port: int | None) -> None:
    """See that a port is one.

    Raises:
        StudyError: it is out of range.
    """
    if port is not None and not 1 <= port <= _PORT_MAX:
        raise StudyError(f"target.port = {port}: must be from 1 to {_PORT_MAX}")


def check_text(key: str, text: str | None) -> None:
    """See that a text of `[target]` is one line that is not empty.

    Raises:
        StudyError: it is not.
    """
    if text is not None and (not text or not text.isprintable()):
        raise StudyError(f"target.{key} = {text!r:.80}: must be a text of characters that are printed")
