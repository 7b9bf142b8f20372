"""One line of progress on stderr: rewritten on a terminal, said now and then elsewhere."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from ascar.cli.output import say
from ascar.render import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

AFTER_TWO_SECONDS = 2.0
"""`first_s` of what is not worth a word when it is over sooner."""
_TERMINAL_S, _ELSEWHERE_S = 0.2, 30.0
_Standing = TypeVar("_Standing")


@contextmanager
def progress_line(
    words: Callable[[_Standing], str], *, first_s: float, quiet: bool = False
) -> Generator[Callable[[_Standing], None]]:
    """A listener that shows how work stands while the context lasts; the line is wiped at its end.

    Args:
        words: the line for a standing; asked for only when it is shown.
        first_s: the time until the first line on a terminal; elsewhere it equals the time between lines.
        quiet: nothing is shown.
    """
    terminal = sys.stderr.isatty()
    every_s = _TERMINAL_S if terminal else _ELSEWHERE_S
    due_s = time.monotonic() + (first_s if terminal else _ELSEWHERE_S)

    def show(standing: _Standing) -> None:
        nonlocal due_s
        now_s = time.monotonic()
        if quiet or now_s < due_s:
            return
        due_s = now_s + every_s
        if terminal:
            sys.stderr.write(f"\r\033[K{visible(words(standing))}")
            sys.stderr.flush()
        else:
            say(words(standing))

    try:
        yield show
    finally:
        if terminal and not quiet:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()
