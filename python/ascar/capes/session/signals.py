"""^C, SIGTERM and a closed terminal end a session in good order."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["Stop"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_INTERRUPTED = 130


class Stop:
    """While it lasts the first signal asks for the end, which `wait` waits for; the third gives up waiting.

    Attributes:
        was_asked: whether one came.
    """

    def __init__(self) -> None:
        self._asked = asyncio.Event()
        self._count = 0
        self._before: dict[int, Any] = {}

    @property
    def was_asked(self) -> bool:
        """Whether a signal came."""
        return self._asked.is_set()

    def __enter__(self) -> Self:
        """Take the signals; those that are ignored stay so (nohup, jobs in the background)."""
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            before = signal.getsignal(number)
            if before is not signal.SIG_IGN:
                self._before[number] = before
                loop.add_signal_handler(number, self._ask)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give them back."""
        loop = asyncio.get_running_loop()
        for number, before in self._before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, before)

    async def wait(self) -> None:
        """Until a signal asks for the end."""
        await self._asked.wait()

    def _ask(self) -> None:
        self._count += 1
        self._asked.set()
        if self._count > 2:
            os._exit(_INTERRUPTED)  # the keepers put everything back when their pipes close
