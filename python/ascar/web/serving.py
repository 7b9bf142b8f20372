"""Listening: first a socket, so that its address is known; then the server, until it is interrupted."""

from __future__ import annotations

import errno
import socket
from typing import TYPE_CHECKING

import uvicorn

from ascar.errors import InputError, Refused

if TYPE_CHECKING:
    from starlette.applications import Starlette

_GOODBYE_S = 5


def bound(host: str, port: int) -> socket.socket:
    """A socket that listens.

    Args:
        host: an address of this machine, or a name of one.
        port: 0: any that is free.

    Raises:
        InputError: no such address.
        Refused: the port is taken, or needs a privilege.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise InputError(
            f"--host = {host!r}: {error.strerror or error}; give an address of this machine"
        ) from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(128)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRNOTAVAIL:
            raise InputError(f"--host = {host!r}: is not an address of this machine") from error
        raise Refused(
            f"--port = {port}: {error.strerror}; give another, or 0 for any that is free"
        ) from error
    return listener


class Server(uvicorn.Server):
    """Serves one application.

    Args:
        app: an application made by `ascar.web.application`; its event streams end when the server does.
    """

    def __init__(self, app: Starlette) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                log_level="warning",
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=_GOODBYE_S,
                lifespan="off",
                ws="none",
            )
        )
        self._app = app

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End, and let event streams end first."""
        self._app.state.ending = True
        await super().shutdown(sockets)


def serve(app: Starlette, listener: socket.socket) -> None:
    """Serve until SIGINT or SIGTERM; the signal is raised again once the server has ended."""
    with listener:
        Server(app).run(sockets=[listener])
