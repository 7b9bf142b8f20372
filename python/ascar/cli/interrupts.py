"""^C, SIGTERM and a closed terminal all mean: stop, put everything back, keep what was measured."""

from __future__ import annotations

import _thread
import signal
import sys
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NoReturn

from ascar.cli.output import say

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_AGAIN = signal.SIGURG  # ignored by default: one that comes late ends nothing
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
    before = {number: signal.getsignal(number) for number in (*_SIGNALS, _AGAIN)}
    sys.unraisablehook = asks.lose
    try:
        signal.signal(_AGAIN, asks.hear_again)
        for number in _SIGNALS:
            if before[number] is not signal.SIG_IGN:  # nohup, and jobs in the background, ignore on purpose
                signal.signal(number, asks.hear)
        yield
    finally:
        asks.end()
        for number, handler in before.items():
            if handler is not None:  # one that was not set by Python stays replaced
                signal.signal(number, handler)
        sys.unraisablehook = asks.hook


class _Asks:
    """Counts the signals, and reminds of the first until it is raised, where Python could not raise it.

    Args:
        hook: the hook for other exceptions that could not be raised.
        imports: the number of imports that go on while the command begins: of what it is called by.
    """

    def __init__(self, hook: Callable[[sys.UnraisableHookArgs], object], imports: int) -> None:
        self.hook = hook
        self._imports = imports
        self._count = 0
        self._is_raised = self._is_over = False
        self._reminders: list[None] = []  # one for each that runs; a list, which threads change in one step

    def hear(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - all mean the same
        """A signal has come."""
        self._count += 1
        if self._count >= _ASKS_TO_GIVE_UP or not (self._is_raised or self._is_importing(frame)):
            self._raise()
        if self._is_raised:
            with suppress(RuntimeError):  # it may have come in the middle of another line
                say("putting everything back; press ^C again to leave that to the keeper")
        else:
            self._remind()

    def hear_again(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        """A reminder has come."""
        is_ours = bool(self._reminders)  # and not of somebody else who sends SIGURG
        if is_ours and not (self._is_raised or self._is_over or self._is_importing(frame)):
            self._raise()

    def lose(self, lost: sys.UnraisableHookArgs) -> None:
        """An exception in a `__del__` or a weak reference's callback, where nobody can catch it."""
        if not issubclass(lost.exc_type, KeyboardInterrupt):
            self.hook(lost)
            return
        self._is_raised = False
        self._remind()

    def end(self) -> None:
        """See that no reminder comes later."""
        self._is_over = True
        while self._reminders:
            time.sleep(_REPEAT_S / 4)

    def _raise(self) -> NoReturn:
        self._is_raised = True
        raise KeyboardInterrupt

    def _is_importing(self, frame: FrameType | None) -> bool:
        return _imports(frame) > self._imports

    def _remind(self) -> None:
        self._reminders.append(None)
        # Not by `threading`, which takes locks: the handler may have interrupted whoever holds them.
        try:
            _thread.start_new_thread(self._send, ())
        except RuntimeError:  # there is no thread to be had
            self._reminders.pop()
            self._raise()

    def _send(self) -> None:
        """Remind until it is raised: a signal just before the main thread begins to wait does not wake it."""
        main = threading.main_thread().ident
        assert main is not None
        while not (self._is_raised or self._is_over):
            time.sleep(_REPEAT_S)
            signal.pthread_kill(main, _AGAIN)
        self._reminders.pop()


def _imports(frame: FrameType | None) -> int:
    """How many imports a frame is in the middle of."""
    count = 0
    while frame is not None:
        count += frame.f_code.co_filename == "<frozen importlib._bootstrap>"
        frame = frame.f_back
    return count
