"""Whether a program can serve: it lives, its address takes connections, its health command succeeds."""

from __future__ import annotations

import socket
import time
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from ascar.errors import StageFailed
from ascar.systems.program.commands import run_command

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ascar.systems.program.commands import CommandPlace

_LOOK_S = 0.01
_LOOK_MAX_S = 0.25
_SETTLED_S = 0.3
_CONNECT_S = 1.0


class Living(Protocol):
    """A program or a service that may have ended."""

    def check_alive(self) -> None:
        """Raise StageFailed if it has."""
        ...


def accepts(address: str) -> bool:
    """Whether somebody accepts connections at an address."""
    with suppress(OSError, ValueError):
        if address.startswith("/"):
            with socket.socket(socket.AF_UNIX) as local:
                local.settimeout(_CONNECT_S)
                local.connect(address)
                return True
        host, _, port = address.rpartition(":")
        with socket.create_connection((host.strip("[]") or "127.0.0.1", int(port)), _CONNECT_S):
            return True
    return False


def await_ready(
    living: Living | None, listen: str, health: Sequence[str], place: CommandPlace, limit_s: float
) -> None:
    """Wait until a program can serve.

    Args:
        living: the program or the service; None: ascar does not start it.
        listen: an address that takes connections then; empty: none.
        health: a command that succeeds then; empty: none.
        place: where the command runs.
        limit_s: seconds to wait.

    Raises:
        StageFailed: it has ended, or cannot serve in time.
    """
    begun_s = time.monotonic()
    pause_s, why = _LOOK_S, "does not answer"
    while True:
        if living is not None:
            living.check_alive()
        left_s = limit_s - (time.monotonic() - begun_s)
        if left_s <= 0:
            raise StageFailed(
                "health", f"target.health_s: the program is not ready after {limit_s:g} s: {why}"
            )
        if listen and not accepts(listen):
            why = f"nothing accepts connections at {listen}"
        elif health:
            ended = run_command("health", health, replace(place, limit_s=min(place.limit_s, left_s + 1.0)))
            if ended.status == 0:
                break
            said = (ended.error.strip() or ended.output.strip()).splitlines()
            why = f"health exits with {ended.status}{': ' + said[-1][:200] if said else ''}"
        elif listen or living is None or time.monotonic() - begun_s >= _SETTLED_S:
            break
        time.sleep(pause_s)
        pause_s = min(_LOOK_MAX_S, 1.5 * pause_s)
    if living is not None:
        living.check_alive()
