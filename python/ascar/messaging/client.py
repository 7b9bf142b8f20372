"""The NATS client, held to what was asked for: no word without TLS, either way, where TLS was meant."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from nats.aio.client import Client
from nats.errors import Error

from ascar.messaging.settings import is_loopback


class Unencrypted(Error):
    """A server that was to be spoken to by TLS offers none, or has sent more than its greeting in clear."""


class GuardedClient(Client):
    """A client that says nothing, not even who it is, to a server that offers no TLS where it was asked for.

    By itself the client believes what the server's first line says, which whoever sits in between can change;
    and it goes where a server sends it. Bytes in clear behind that line are refused: they may be added there.
    This is asked before each greeting, reconnections included.

    Args:
        url: the requested URL.
    """

    def __init__(self, url: str) -> None:
        super().__init__()
        self._must_encrypt = urlsplit(url).scheme == "tls"

    def _connect_command(self) -> bytes:
        server: Any = self._current_server
        host = server.uri.hostname or ""
        offers_tls = bool(self._server_info.get("tls_required"))
        if (self._must_encrypt or not is_loopback(host)) and not offers_tls:
            raise Unencrypted(f"{host} offers no TLS")
        # The reader from before TLS: what it still has came in clear.
        transport: Any = self._transport
        if offers_tls and transport._bare_io_reader._buffer:  # noqa: SLF001 - there is no other way to see it
            raise Unencrypted(
                f"{host} sends bytes in clear behind its greeting, before TLS begins: somebody in between "
                "may have added them; check the way to the server"
            )
        return super()._connect_command()
