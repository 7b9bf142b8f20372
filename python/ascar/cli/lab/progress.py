"""How far a comparison has come: one line that is rewritten on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ascar.cli.output import say

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from ascar.lab import Standing

__all__ = ["line_of", "showing_runs"]

_TERMINAL_S, _ELSEWHERE_S = 0.2, 30.0


@contextmanager
def showing_runs(*, quiet: bool = False) -> Generator[Callable[[Standing], None] | None]:
    """A listener that shows progress on stderr while the context lasts; None when quiet."""
    if quiet:
        yield None
        return
    terminal = sys.stderr.isatty()
    every_s = _TERMINAL_S if terminal else _ELSEWHERE_S
    shown_s = time.monotonic() - (every_s if terminal else 0)

    def show(standing: Standing) -> None:
        nonlocal shown_s
        if time.monotonic() - shown_s < every_s:
            return
        shown_s = time.monotonic()
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
    """One line: share, runs, time left, what was finished last."""
    share = standing.done / max(1, standing.wanted)
    left = "" if standing.left_s is None else f", about {_duration(standing.left_s)} left"
    return f"{share:4.0%}  {standing.done} of {standing.wanted} runs{left}  ({standing.latest})"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
