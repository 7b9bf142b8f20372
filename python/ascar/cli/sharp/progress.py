"""How far a search for rules has come."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ascar.cli.output import say
from ascar.cli.text import duration, number

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from ascar.sharp import Moment

__all__ = ["line_of", "showing"]

_TERMINAL_S, _ELSEWHERE_S = 0.2, 30.0


@contextmanager
def showing(*, quiet: bool = False) -> Generator[Callable[[Moment], None]]:
    """A listener that shows progress on stderr while the context lasts; one that shows nothing when quiet."""
    terminal = sys.stderr.isatty()
    every_s = _TERMINAL_S if terminal else _ELSEWHERE_S
    due_s = time.monotonic() + every_s

    def show(moment: Moment) -> None:
        nonlocal due_s
        now_s = time.monotonic()
        if quiet or now_s < due_s:
            return
        due_s = now_s + every_s
        if terminal:
            sys.stderr.write(f"\r\033[K{line_of(moment)}")
            sys.stderr.flush()
        else:
            say(line_of(moment))

    try:
        yield show
    finally:
        if terminal and not quiet:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()


def line_of(moment: Moment) -> str:
    """One line: where the search is, its best, runs, time left."""
    of_round = f", {moment.done} of {moment.of} candidates" if moment.of else ""
    best = "none yet" if moment.best is None else f"{number(moment.best)} by {moment.rules} rules"
    left = "" if moment.left_s is None else f", at most about {duration(moment.left_s)} left"
    return (
        f"epoch {moment.epoch}, round {moment.round}{of_round}; best {best}; "
        f"{moment.evaluations} runs in {duration(moment.elapsed_s)}{left}"
    )
