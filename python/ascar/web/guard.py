"""What keeps other pages and other machines out, around everything that is served.

A page from elsewhere may make its own name point at this machine (DNS rebinding): its requests then carry
that name, so a request is only answered when its Host is an address, or a name of this machine. It may also
send requests blindly: those that carry a body must come from this page. Other users of this machine are kept
out by the token (`ascar.web.token`).
"""

from __future__ import annotations

import ipaddress
import socket
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
"""What every answer carries."""


class RequestGuard:
    """Middleware: refuses what is not meant for this server, and adds `HEADERS` to every answer.

    Args:
        app: the guarded application.
        host: the address that is listened on.
    """

    def __init__(self, app: ASGIApp, host: str) -> None:
        self._app = app
        self._local = _is_loopback(host)
        self._names = {"localhost"}
        if not self._local:
            self._names |= {host.lower(), socket.gethostname().lower(), socket.getfqdn().lower()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or refuse it (ASGI)."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        refusal = self._refusal(scope["method"], Headers(scope=scope))
        if refusal is not None:
            await PlainTextResponse(f"{refusal}\n", 403)(scope, receive, guarded)
            return
        await self._app(scope, receive, guarded)

    def _refusal(self, method: str, headers: Headers) -> str | None:
        """Why a request is not answered; None: it is."""
        host = headers.get("host", "")
        if not self._is_ours(host):
            return "refused: this server does not answer to that name; use the address that it printed"
        if method in ("GET", "HEAD"):
            return None
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != host:
            return "refused: the request comes from another page"
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return "refused: the request comes from another page"
        return None

    def _is_ours(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname
        except ValueError:
            return False
        if name is None:
            return False
        if name.lower() in self._names:
            return True
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return False
        return address.is_loopback or not self._local


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
