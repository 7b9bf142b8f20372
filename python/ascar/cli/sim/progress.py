"""How far simulated runs have come; nothing is shown of what is over within two seconds."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ascar.cli.output import say
from ascar.cli.text import duration

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from ascar.simulation import Standing

__all__ = ["line_of", "showing"]

_FIRST_S, _TERMINAL_S, _ELSEWHERE_S = 2.0, 0.2, 30.0


@contextmanager
def showing(*, quiet: bool = False, what: str = "") -> Generator[Callable[[Standing], None] | None]:
    """A listener that shows progress on stderr while the context lasts; None when quiet."""
    if quiet:
        yield None
        return
    terminal = sys.stderr.isatty()
    every_s = _TERMINAL_S if terminal else _ELSEWHERE_S
    begun_s = time.monotonic()
    due_s = begun_s + (_FIRST_S if terminal else _ELSEWHERE_S)

    def show(standing: Standing) -> None:
        nonlocal due_s
        now_s = time.monotonic()
        if now_s < due_s:
            return
        due_s = now_s + every_s
        line = line_of(standing, now_s - begun_s, what)
        if terminal:
            sys.stderr.write(f"\r\033[K{line}")
            sys.stderr.flush()
        else:
            say(line)

    try:
        yield show
    finally:
        if terminal:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()


def line_of(standing: Standing, past_s: float, what: str = "") -> str:
    """One line: share, runs, time left, what it is about."""
    left = f", about {duration(past_s / standing.share - past_s)} left" if standing.share > 0 else ""
    of_what = f"  ({what})" if what else ""
    return f"{standing.share:4.0%}  {standing.done} of {standing.wanted} runs{left}{of_what}"
