"""A limit on code that anybody may have written: what hangs is interrupted."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator

_AGAIN_S = 1.0


class OverLimit(BaseException):
    """Not an `Exception`, so that a loop that swallows errors ends too."""


@contextmanager
def time_limit(limit_s: float) -> Generator[None]:
    """Interrupt what takes longer, by a signal, once a second until it ends.

    Code that never comes back to Python, such as a C function that retries after a signal, is not
    interrupted. In a thread other than the main one there is no limit: signals reach the main thread alone.

    Args:
        limit_s: the limit.

    Raises:
        OverLimit: it took longer.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    active = True

    def over(*_: object) -> None:
        if active:
            raise OverLimit

    before = signal.signal(signal.SIGALRM, over)
    left_s, interval_s = signal.setitimer(signal.ITIMER_REAL, limit_s, _AGAIN_S)
    try:
        yield
    finally:
        active = False
        signal.setitimer(signal.ITIMER_REAL, left_s, interval_s)
        signal.signal(signal.SIGALRM, before)
