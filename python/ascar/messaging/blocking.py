"""An event loop in a thread of its own, for code that waits for answers line by line."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import TimeoutError as FutureTimeout
from typing import TYPE_CHECKING, Any, Self, TypeVar

from ascar.errors import MessagingError
from ascar.messaging.tasks import end_others

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from types import TracebackType

Result = TypeVar("Result")
_STOP_S = 5.0


class Background:
    """Runs coroutines on a loop in a thread; use it in a `with` statement."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="messages", daemon=True)

    def __enter__(self) -> Self:
        """Start the thread."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Cancel what still runs, and end the thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_STOP_S)

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Begin a coroutine that goes on until the end."""
        asyncio.run_coroutine_threadsafe(work, self._loop)

    def call(self, work: Coroutine[Any, Any, Result], timeout_s: float) -> Result:
        """The result of a coroutine that runs on the loop.

        Raises:
            MessagingError: it takes longer than `timeout_s`; it is cancelled.
        """
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(timeout_s)
        except FutureTimeout:
            if future.done():
                raise
            raise MessagingError(f"no end within {timeout_s:g} s") from None
        finally:
            future.cancel()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.run_until_complete(end_others())
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()
