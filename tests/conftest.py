"""Of all tests: signals mean what they mean at a terminal."""

from __future__ import annotations

import signal


def pytest_configure() -> None:
    """Undo what `nohup` and a shell's `&` do: programs that tests interrupt would inherit deafness to it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGHUP, signal.SIGQUIT):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
