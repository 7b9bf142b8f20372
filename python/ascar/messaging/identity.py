"""Who we are to a message server: a user, a token, or a file of the server's operator."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any, Final

from ascar import _core
from ascar.errors import InputError
from ascar.messaging.subjects import token

if TYPE_CHECKING:
    from ascar.messaging.settings import Settings

ANYONE: Final = "anyone"
"""Who we are in subjects, at a server that asks for no user."""


def caller(settings: Settings) -> str:
    """Our name in subjects: the user, or the name in the token of a .creds file.

    A server's permissions leave each user the subjects with its own name.

    Raises:
        InputError: the name cannot stand in a subject; a .creds file cannot be read, others can, or it is
            none.
    """
    if settings.credentials is not None:
        return token("credentials: the name of the user", _User(settings.credentials).name())
    return token("user", ANYONE if settings.user is None else settings.user)


def identity(settings: Settings) -> dict[str, Any]:
    """Arguments of the client's connect.

    Raises:
        InputError: a .creds file cannot be read, others can, or it is none.
    """
    if settings.credentials is not None:
        user = _User(settings.credentials)
        return {"signature_cb": user.signature, "user_jwt_cb": user.token}
    if settings.token is not None:
        return {"token": settings.token}
    if settings.user is not None:
        return {"user": settings.user, "password": settings.password}
    return {}


class _User:
    """Of a .creds file, which is read at each connection: a token ends, and another takes its place.

    Raises:
        InputError: the file cannot be read, others can, or it is none.
    """

    def __init__(self, path: str) -> None:
        self._path, self._token = path, ""
        self.signature("-")  # what is wrong with the file is told before anybody is asked

    def signature(self, nonce: str) -> bytes:
        """Of the nonce that a server greets with."""
        try:
            self._token, signature = _core.sign_in(self._path, nonce)
        except ValueError as error:
            raise InputError(str(error)) from None
        return signature.encode()

    def name(self) -> str:
        """The one that the server's operator gave the user."""
        payload = self._token.split(".")[1]
        try:
            claims: Any = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
            return str(claims["name"])
        except (ValueError, LookupError, TypeError, RecursionError):
            raise InputError(
                f"credentials = {self._path!r}: its token has no name; ask for the file again"
            ) from None

    def token(self) -> bytearray:
        """Asked for after the signature."""
        return bytearray(self._token.encode())
