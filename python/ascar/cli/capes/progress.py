"""How far learners have come; nothing is shown of what is over within two seconds."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ascar.cli.output import say
from ascar.cli.text import duration

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from ascar.capes.contest import Standing

__all__ = ["line_of", "showing"]

_FIRST_S, _TERMINAL_S, _ELSEWHERE_S = 2.0, 0.2, 30.0


@contextmanager
def showing(*, quiet: bool = False) -> Generator[Callable[[Standing], None] | None]:
    """A listener that shows progress on stderr while the context lasts; None when quiet."""
    if quiet:
        yield None
        return
    terminal = sys.stderr.isatty()
    every_s = _TERMINAL_S if terminal else _ELSEWHERE_S
    due_s = time.monotonic() + (_FIRST_S if terminal else _ELSEWHERE_S)

    def show(standing: Standing) -> None:
        nonlocal due_s
        if time.monotonic() < due_s:
            return
        due_s = time.monotonic() + every_s
        if terminal:
            sys.stderr.write(f"\r\033[K{line_of(standing)}")
            sys.stderr.flush()
        else:
            say(line_of(standing))

    try:
        yield show
    finally:
        if terminal:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()


def line_of(standing: Standing) -> str:
    """One line: share, runs, time left."""
    left = "" if standing.left_s is None else f", about {duration(standing.left_s)} left"
    return f"{standing.share:4.0%}  {standing.done} of {standing.wanted} {standing.unit}{left}"
