"""How far simulated runs have come; nothing is shown of what is over within two seconds."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ascar.cli.progress_line import AFTER_TWO_SECONDS, progress_line
from ascar.render import duration, percentage

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from ascar.simulation import BatchProgress


def showing(
    *, quiet: bool = False, what: str = ""
) -> AbstractContextManager[Callable[[BatchProgress], None]]:
    """A listener that shows progress on stderr while the context lasts; nothing when quiet."""
    begun_s = time.monotonic()

    def words(standing: BatchProgress) -> str:
        return line_of(standing, time.monotonic() - begun_s, what)

    return progress_line(words, first_s=AFTER_TWO_SECONDS, quiet=quiet)


def line_of(standing: BatchProgress, past_s: float, what: str = "") -> str:
    """One line: share, runs, time left, what it is about."""
    left = f", about {duration(past_s / standing.share - past_s)} left" if standing.share > 0 else ""
    of_what = f"  ({what})" if what else ""
    return f"{percentage(standing.share, 0):>4}  {standing.done} of {standing.wanted} runs{left}{of_what}"
