"""What a running loop shows: a live view on a terminal, a line a trial elsewhere; always on stderr."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from ascar.cli.output import notes
from ascar.progress import StudyProgress, line_of

if TYPE_CHECKING:
    from collections.abc import Generator

    from ascar.events import Event, Listener
    from ascar.objective import Objective

__all__ = ["showing"]


@contextmanager
def showing(objective: Objective, *, quiet: bool = False) -> Generator[Listener]:
    """A listener that shows what a loop reports while the context lasts.

    Args:
        objective: gives the score's direction and unit.
        quiet: show nothing.
    """
    progress = StudyProgress(objective)
    console = notes()
    if quiet:
        yield progress.take
    elif console.is_terminal:
        from ascar.cli.progress.live import LiveProgress

        with LiveProgress(progress, console) as live:
            yield live.take
    else:

        def show(event: Event) -> None:
            progress.take(event)
            line = line_of(progress, event)
            if line:
                from ascar.cli.output import say

                say(line)

        yield show
