"""^C, SIGTERM and a closed terminal all mean: stop, put everything back, keep what was measured."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ascar.cli.output import say

if TYPE_CHECKING:
    from collections.abc import Generator
    from types import FrameType

__all__ = ["Interrupted", "interruptible", "resumable"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_ASKS_TO_GIVE_UP = 3


class Interrupted(Exception):  # named for what happened
    """The user asked to stop, and the message says how to go on."""


@contextmanager
def resumable(command: str) -> Generator[None]:
    """Tell whoever interrupts what is inside how to go on.

    Raises:
        Interrupted: in place of KeyboardInterrupt, once everything inside has been left.
    """
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(
            "interrupted; everything was put back, completed trials are kept; "
            f"go on with `ascar {command} --resume`"
        ) from None


@contextmanager
def interruptible() -> Generator[None]:
    """Turn the first of these signals into KeyboardInterrupt.

    The second only says that the clean-up is under way: interrupting that would leave it to the keeper and
    the journal. The third gives up waiting; the keeper then puts things back by itself.
    """
    asked = 0

    def ask(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        nonlocal asked
        asked += 1
        if asked == 1 or asked >= _ASKS_TO_GIVE_UP:
            raise KeyboardInterrupt
        say("putting everything back; once more to leave that to the keeper")

    before = {number: signal.getsignal(number) for number in _SIGNALS}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:  # nohup, and jobs in the background, ignore on purpose
            signal.signal(number, ask)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
