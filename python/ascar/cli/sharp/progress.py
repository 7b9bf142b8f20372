"""How far a search for rules has come."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascar.cli.progress_line import progress_line
from ascar.render import duration, number

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from ascar.sharp import SearchProgress
    from ascar.sharp.testbed_search import RealProgress

_FIRST_S = 0.2


def showing(
    *, quiet: bool = False
) -> AbstractContextManager[Callable[[SearchProgress | RealProgress], None]]:
    """A listener that shows progress on stderr while the context lasts; one that shows nothing when quiet."""
    return progress_line(line_of, first_s=_FIRST_S, quiet=quiet)


def line_of(moment: SearchProgress | RealProgress) -> str:
    """One line: where the search is, its best, runs, time left."""
    from ascar.sharp.testbed_search import RealProgress

    left = "" if moment.left_s is None else f", at most about {duration(moment.left_s)} left"
    if isinstance(moment, RealProgress):
        failed = f", {moment.failed} failed" if moment.failed else ""
        return (
            f"run {moment.made + 1} of {moment.of} on the testbed{failed}: {moment.setting}; "
            f"{duration(moment.elapsed_s)}{left}"
        )
    of_round = f", {moment.done} of {moment.of} candidates" if moment.of else ""
    best = "none yet" if moment.best is None else f"{number(moment.best)} by {moment.rules} rules"
    return (
        f"epoch {moment.epoch}, round {moment.round}{of_round}; best {best}; "
        f"{moment.evaluations} runs in {duration(moment.elapsed_s)}{left}"
    )
