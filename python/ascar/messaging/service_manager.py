"""What a daemon tells the service manager: that it is ready, that its event loop turns, that it ends.

Source: sd_notify(3). A daemon that nobody supervises tells nothing. A message that cannot be sent is lost:
the service manager never holds up a daemon, and its own limit (`WatchdogSec=`) decides what silence means.
"""

from __future__ import annotations

import asyncio
import os
import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ascar.messaging.tasks import end_tasks

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping

Result = TypeVar("Result")
_SHARE_OF_LIMIT: Final = 3
"""Of the watchdog's limit: a message that is late by as much again still comes in time."""


class ServiceManager:
    """The service manager that started this process, where there is one.

    Args:
        environment: the variables that name it: `NOTIFY_SOCKET`, a path or, after `@`, a name of the kernel's
            own; `WATCHDOG_USEC`, the watchdog's limit, where it is for this process (`WATCHDOG_PID`).
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        address = environment.get("NOTIFY_SOCKET", "")
        self._address = f"\0{address[1:]}" if address.startswith("@") else address
        limit_us = environment.get("WATCHDOG_USEC", "")
        is_ours = environment.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        has_limit = is_ours and limit_us.isascii() and limit_us.isdigit() and int(limit_us) > 0
        self._every_s = int(limit_us) / 1e6 / _SHARE_OF_LIMIT if has_limit else None

    def status(self, text: str) -> None:
        """Tell what the daemon does now, for `systemctl status`; only the first line is sent."""
        self._tell(f"STATUS={text.partition(chr(10))[0]}")

    async def supervised(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Do the daemon's work; tell when it begins, that the loop turns meanwhile, and when it has ended."""
        telling = asyncio.create_task(self._beat())
        try:
            return await work
        finally:
            await end_tasks((telling,))
            self._tell("STOPPING=1")

    async def _beat(self) -> None:
        self._tell("READY=1")
        while self._every_s is not None:
            await asyncio.sleep(self._every_s)
            self._tell("WATCHDOG=1")

    def _tell(self, text: str) -> None:
        if not self._address:
            return
        # Looked up for each message: the manager may make it anew.
        with (
            suppress(OSError),
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as one,
        ):
            one.sendto(text.encode(errors="replace"), self._address)
