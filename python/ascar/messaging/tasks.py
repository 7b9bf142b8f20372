"""How tasks are ended that wait for messages."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

_AGAIN_S = 0.2


async def end_tasks(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel tasks and wait until they have ended, whatever they end by.

    As often as it takes: in Python 3.11 `wait_for`, in which the NATS client waits, swallows a cancellation
    that comes with the answer.
    """
    left = set(tasks)
    while left:
        for task in left:
            task.cancel()
        ended, left = await asyncio.wait(left, timeout=_AGAIN_S)
        for task in ended:
            if not task.cancelled():
                task.exception()  # known, so that nobody warns of it


async def end_others() -> None:
    """End all other tasks of the loop: those of a client that could not close in time go on otherwise."""
    own = asyncio.current_task()
    await end_tasks(one for one in asyncio.all_tasks() if one is not own)
