"""The token of the page: only a request that carries the token of this server is answered.

Other users of the machine reach the port, but do not know the address that the command printed. The address
gives the token once; the browser keeps it as a cookie, which no script reads and no other site sends along.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING, Self
from urllib.parse import parse_qs, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_KEY = "token"
_REFUSAL = "refused: carries no token of this server; open the address that `ascar explore` printed"
# The browser must begin anew from here: what another site or a file began carries no strict cookie.
_ARRIVED = '<!doctype html><meta http-equiv="refresh" content="0; url=./"><title>ascar</title>'


@dataclass(frozen=True, slots=True)
class AccessToken:
    """What a request must carry.

    Attributes:
        text: the token, of characters that need no quoting in an address or a cookie.
    """

    text: str

    @classmethod
    def random(cls) -> Self:
        """A token of 256 bits that nobody can guess."""
        return cls(secrets.token_urlsafe(32))

    def in_address(self, url: str) -> str:
        """The address of a page of this server, with the token."""
        return f"{url}?{urlencode({_KEY: self.text})}"

    @property
    def cookie(self) -> str:
        """The name of the cookie: servers on other ports of this machine share the browser's cookies."""
        return f"ascar-{hashlib.sha256(self.text.encode()).hexdigest()[:12]}"

    @property
    def set_cookie(self) -> str:
        """The header that gives it to the browser, until that ends."""
        return f"{self.cookie}={self.text}; Path=/; HttpOnly; SameSite=Strict"

    def is_given(self, query: bytes) -> bool:
        """Whether the query of an address has it."""
        try:
            given = parse_qs(query.decode("ascii"), max_num_fields=20).get(_KEY, [])
        except ValueError:
            return False
        return any(self._equals(one) for one in given)

    def is_kept(self, cookies: str) -> bool:
        """Whether the browser has it."""
        try:
            kept = SimpleCookie(cookies).get(self.cookie)
        except CookieError:
            return False
        return kept is not None and self._equals(kept.value)

    def _equals(self, other: str) -> bool:
        return secrets.compare_digest(self.text.encode(), other.encode("utf-8", "backslashreplace"))


class TokenCheck:
    """Middleware: refuses every request that does not carry the token, also those for a WebSocket.

    Args:
        app: the application behind it.
        token: what a request must carry.
    """

    def __init__(self, app: ASGIApp, token: AccessToken) -> None:
        self._app = app
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or refuse it (ASGI)."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        is_given = self._token.is_given(scope["query_string"])
        if not is_given and not self._token.is_kept(Headers(scope=scope).get("cookie", "")):
            await _refuse(scope, receive, send)
            return
        if not is_given:
            await self._app(scope, receive, send)
            return

        async def with_cookie(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).append("Set-Cookie", self._token.set_cookie)
            await send(message)

        arrives = scope["type"] == "http" and (scope["method"], scope["path"]) == ("GET", "/")
        await (HTMLResponse(_ARRIVED) if arrives else self._app)(scope, receive, with_cookie)


async def _refuse(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008})  # before it is accepted: 403
    elif scope["path"].startswith("/api/"):
        await JSONResponse({"error": _REFUSAL}, 403)(scope, receive, send)
    else:
        await PlainTextResponse(f"{_REFUSAL}\n", 403)(scope, receive, send)
