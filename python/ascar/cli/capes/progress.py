"""How far learners have come; nothing is shown of what is over within two seconds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascar.cli.progress_line import AFTER_TWO_SECONDS, progress_line
from ascar.render import duration, percentage

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from ascar.capes.environments.contest import ContestProgress


def showing(*, quiet: bool = False) -> AbstractContextManager[Callable[[ContestProgress], None]]:
    """A listener that shows progress on stderr while the context lasts; nothing when quiet."""
    return progress_line(line_of, first_s=AFTER_TWO_SECONDS, quiet=quiet)


def line_of(standing: ContestProgress) -> str:
    """One line: share, runs, time left."""
    left = "" if standing.left_s is None else f", about {duration(standing.left_s)} left"
    return f"{percentage(standing.share, 0):>4}  {standing.done} of {standing.wanted} {standing.unit}{left}"
