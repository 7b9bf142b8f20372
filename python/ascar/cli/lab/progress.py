"""How far a comparison has come: one line that is rewritten on a terminal, a line now and then elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascar.cli.progress_line import progress_line
from ascar.render import duration, percentage

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from ascar.lab import LabProgress


def showing_runs(*, quiet: bool = False) -> AbstractContextManager[Callable[[LabProgress], None]]:
    """A listener that shows progress on stderr while the context lasts; nothing when quiet."""
    return progress_line(line_of, first_s=0.0, quiet=quiet)


def line_of(standing: LabProgress) -> str:
    """One line: share, runs, time left, what was finished last."""
    share = standing.done / max(1, standing.wanted)
    left = "" if standing.left_s is None else f", about {duration(round(standing.left_s))} left"
    return f"{percentage(share, 0):>4}  {standing.done} of {standing.wanted} runs{left}  ({standing.latest})"
