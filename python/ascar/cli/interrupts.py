"""^C, SIGTERM and a closed terminal all mean: stop, put everything back, keep what was measured."""

from __future__ import annotations

import signal
import sys
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from ascar.cli.output import say

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_ASKS_TO_GIVE_UP = 3
_REPEAT_S = 0.02


class Interrupted(Exception):  # named for what happened
    """The user asked to stop, and the message says how to go on."""


@contextmanager
def resumable(command: str) -> Generator[None]:
    """Tell whoever interrupts what is inside how to go on.

    Args:
        command: the command that goes on, without `ascar`.

    Raises:
        Interrupted: in place of KeyboardInterrupt, once everything inside has been left.
        StoppedEarly: something was proven until then, which is to be told.
    """
    try:
        yield
    except KeyboardInterrupt as interrupt:
        from ascar.results.outcome import StoppedEarly  # only here: commands start without it

        if isinstance(interrupt, StoppedEarly):
            raise
        raise Interrupted(
            f"interrupted; everything was put back, completed trials are kept; go on with `ascar {command}`"
        ) from None


@contextmanager
def interruptible() -> Generator[None]:
    """Turn the first of these signals into KeyboardInterrupt.

    The second only says that the clean-up is under way: interrupting that would leave it to the keeper and
    the journal. The third gives up waiting; the keeper then puts things back by itself. In the middle of an
    import nothing is raised: compiled modules clear whatever is raised while they are made, and the signal
    would be lost. It waits until the import is over.
    """
    asks = _Asks(sys.unraisablehook, _imports(sys._getframe()))  # noqa: SLF001 - `inspect` takes long to import
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    sys.unraisablehook = asks.lose
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:  # nohup, and jobs in the background, ignore on purpose
            signal.signal(number, asks.hear)
    try:
        yield
    finally:
        asks.repeat.cancel()
        for number, handler in before.items():
            signal.signal(number, handler)
        sys.unraisablehook = asks.hook


class _Asks:
    """Counts the signals, and has those sent again that Python could not raise.

    Args:
        hook: the hook for other exceptions that could not be raised.
        imports: the number of imports that go on while the command begins: of what it is called by.
    """

    def __init__(self, hook: Callable[[sys.UnraisableHookArgs], object], imports: int) -> None:
        self.hook = hook
        self._imports = imports
        self.repeat = threading.Timer(0.0, lambda: None)
        self._count = 0
        self._number = signal.SIGINT

    def hear(self, number: int, frame: FrameType | None) -> None:
        """A signal has come."""
        self._number = signal.Signals(number)
        if self._count == 0 and _imports(frame) > self._imports:
            self._send_again()
            return
        self._count += 1
        if self._count == 1 or self._count >= _ASKS_TO_GIVE_UP:
            raise KeyboardInterrupt
        with suppress(RuntimeError):  # it may have come in the middle of another line
            say("putting everything back; press ^C again to leave that to the keeper")

    def lose(self, lost: sys.UnraisableHookArgs) -> None:
        """An exception in a `__del__` or a weak reference's callback, where nobody can catch it."""
        if not issubclass(lost.exc_type, KeyboardInterrupt):
            self.hook(lost)
            return
        self._count -= 1
        self._send_again()

    def _send_again(self) -> None:
        """The same signal, a moment later."""
        main = threading.main_thread().ident
        assert main is not None
        self.repeat = threading.Timer(_REPEAT_S, signal.pthread_kill, (main, self._number))
        self.repeat.daemon = True
        self.repeat.start()


def _imports(frame: FrameType | None) -> int:
    """How many imports a frame is in the middle of."""
    count = 0
    while frame is not None:
        count += frame.f_code.co_filename == "<frozen importlib._bootstrap>"
        frame = frame.f_back
    return count
