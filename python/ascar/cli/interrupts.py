"""^C, SIGTERM and a closed terminal all mean: stop, put everything back, keep what was measured."""

from __future__ import annotations

import _thread
import signal
import sys
import threading
import time
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
    would be lost. It waits until the import is over, or the third comes.
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
        asks.end()
        for number, handler in before.items():
            signal.signal(number, handler)
        sys.unraisablehook = asks.hook


class _Asks:
    """Counts the signals, and has the first sent again while Python could not raise it.

    Args:
        hook: the hook for other exceptions that could not be raised.
        imports: the number of imports that go on while the command begins: of what it is called by.
    """

    def __init__(self, hook: Callable[[sys.UnraisableHookArgs], object], imports: int) -> None:
        self.hook = hook
        self._imports = imports
        self._count = 0
        self._number: int = signal.SIGINT
        self._is_raised = False
        # The next that is heard was sent again; none matters any more.
        self._is_again = self._is_over = False
        # One for each that is to be sent again, until its sender has ended. One that has sent but not ended
        # must not keep the signal from being sent once more. A list, which threads change in one step.
        self._senders: list[int] = []

    def hear(self, number: int, frame: FrameType | None) -> None:
        """A signal has come."""
        is_again, self._is_again = self._is_again, False
        if is_again and (self._is_raised or self._is_over):
            return
        self._number = number
        self._count += not is_again
        gives_up = self._count >= _ASKS_TO_GIVE_UP and not is_again
        if gives_up or not (self._is_raised or _imports(frame) > self._imports):
            self._is_raised = True
            raise KeyboardInterrupt
        if self._is_raised:
            with suppress(RuntimeError):  # it may have come in the middle of another line
                say("putting everything back; press ^C again to leave that to the keeper")
        else:
            self._send_again()

    def lose(self, lost: sys.UnraisableHookArgs) -> None:
        """An exception in a `__del__` or a weak reference's callback, where nobody can catch it."""
        if not issubclass(lost.exc_type, KeyboardInterrupt):
            self.hook(lost)
            return
        self._is_raised = False
        self._send_again()

    def end(self) -> None:
        """See that no signal comes later that has come already."""
        self._is_over = True
        while self._senders:
            time.sleep(_REPEAT_S / 4)

    def _send_again(self) -> None:
        self._senders.append(self._number)
        # Not by `threading`, which takes locks: the handler may have interrupted whoever holds them.
        try:
            _thread.start_new_thread(self._send, ())
        except RuntimeError:  # there is no thread to be had
            self._senders.pop()
            self._is_raised = True
            raise KeyboardInterrupt from None

    def _send(self) -> None:
        main = threading.main_thread().ident
        assert main is not None
        time.sleep(_REPEAT_S)
        self._is_again = True
        signal.pthread_kill(main, self._number)
        self._senders.pop()


def _imports(frame: FrameType | None) -> int:
    """How many imports a frame is in the middle of."""
    count = 0
    while frame is not None:
        count += frame.f_code.co_filename == "<frozen importlib._bootstrap>"
        frame = frame.f_back
    return count
