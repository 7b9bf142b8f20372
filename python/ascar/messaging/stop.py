"""^C, SIGTERM and a closed terminal end what runs on an event loop in good order.

Never by an exception wherever a signal finds the interpreter, as `asyncio.run` does under a handler that
raises: between the moment when the loop takes a callback from its queue and the one when it is run, the
callback is lost, and what waits for it waits for ever.
"""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import closing
from typing import TYPE_CHECKING, Any, Self, TypeVar

from ascar.messaging.tasks import end_others

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from types import TracebackType

Result = TypeVar("Result")
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_INTERRUPTED = 130


class _Stop:
    """While it lasts the first signal asks for the end; the third gives up waiting.

    Args:
        loop: the main thread's event loop, which hears the signals.

    Attributes:
        asked: set by the first signal.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.asked = asyncio.Event()
        self._loop = loop
        self._count = 0
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        """Take the signals; those that are ignored stay so (nohup, jobs in the background)."""
        for number in _SIGNALS:
            before = signal.getsignal(number)
            if before is not signal.SIG_IGN:
                self._before[number] = before
                self._loop.add_signal_handler(number, self._ask)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give them back."""
        for number, before in self._before.items():
            self._loop.remove_signal_handler(number)
            signal.signal(number, before)

    def _ask(self) -> None:
        self._count += 1
        self.asked.set()
        if self._count > 2:
            os._exit(_INTERRUPTED)  # the keepers put everything back when their pipes close


def run_until_asked(work: Callable[[asyncio.Event], Coroutine[Any, Any, Result]]) -> Result:
    """Run what ends by itself when the event is set, as a signal does.

    Args:
        work: given the event.
    """

    async def whole(asked: asyncio.Event) -> Result:
        try:
            return await work(asked)
        finally:
            # `Runner` cancels each once, which one that waits by `wait_for` may swallow, and waits for ever.
            await end_others()

    with asyncio.Runner() as runner, _Stop(runner.get_loop()) as stop:
        return runner.run(whole(stop.asked))


def run_interruptible(work: Coroutine[Any, Any, Result]) -> Result:
    """Run what a signal cancels where it waits.

    Raises:
        KeyboardInterrupt: it was cancelled by a signal, and has cleaned up.
    """

    async def watched(asked: asyncio.Event) -> asyncio.Task[Result]:
        task = asyncio.ensure_future(work)
        waiting = asyncio.create_task(asked.wait())
        try:
            await asyncio.wait((task, waiting), return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
            task.cancel()  # no more than once, so that it cleans up; without effect where it has ended
            await asyncio.wait((task, waiting))
        return task

    with closing(work):  # a signal before it has begun leaves it unbegun
        ended = run_until_asked(watched)
    if ended.cancelled():
        raise KeyboardInterrupt
    return ended.result()
