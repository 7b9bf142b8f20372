"""What a contest brought, as a table for people and as a document."""

from __future__ import annotations

import math
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any, cast

from ascar.capes.environments.contest import ALGORITHMS
from ascar.capes.environments.game import GAMES, TICKS
from ascar.errors import InputError
from ascar.render import compact, estimate, percentage
from ascar.results.capes import CapesGameResult, GamePlayed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from ascar.capes.environments.contest import Algorithm, ContestRun, LearnerContest
    from ascar.capes.environments.game import GameKind
    from ascar.results.contest import LearnerRecord


def chosen(game: str, algorithm: str, option: str = "--algorithm") -> tuple[GameKind, Algorithm]:
    """Both names, where they are known.

    Args:
        game: the game's.
        algorithm: the learner's.
        option: the option that named the learner.

    Raises:
        InputError: one is not.
    """
    for name, value, allowed in (("--game", game, GAMES), (option, algorithm, ALGORITHMS)):
        if value not in allowed:
            raise InputError(f"{name} {value!r}: must be one of {', '.join(allowed)}")
    return cast("Any", (game, algorithm))


def share(text: str) -> float:
    """`0.1` or `10%`.

    Raises:
        InputError: it is neither, or below zero.
    """
    number = text.strip()
    try:
        found = float(number.removesuffix("%")) / (100 if number.endswith("%") else 1)
    except ValueError:
        found = math.nan
    if not 0 <= found < math.inf:
        raise InputError(f"--noise-sd = {text!r}: must be a share from 0 on, such as 0.1 or 10%")
    return found


def result_of(contest: LearnerContest, played: Sequence[ContestRun]) -> CapesGameResult:
    """The result of a learner's games."""
    ticks = sorted(one.ticks for one in played if one.ticks is not None)
    return CapesGameResult(
        noise=contest.noise,
        delay=contest.delay_ticks,
        algorithm=contest.algorithm,
        game=contest.game,
        runs=len(played),
        success_rate=len(ticks) / len(played),
        ticks_median=median(ticks) if ticks else None,
        ticks_max=ticks[-1] if ticks else None,
        ticks_limit=TICKS,
        played=tuple(GamePlayed(seed=one.seed, ticks=one.ticks, near_share=one.near_share) for one in played),
    )


def print_records(console: Console, records: Sequence[LearnerRecord], contest: LearnerContest) -> None:
    """How often and how soon each learner converged."""
    from rich.table import Table

    console.print(
        f"the {contest.game} game, {contest.runs} runs of each: noise {contest.noise:.4g}, delay "
        f"{contest.delay_ticks} ticks"
    )
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("", "converged", "ticks, median", "most"):
        table.add_column(heading)
    for one in records:
        rate = estimate(one.success_rate, one.success_low, one.success_high, partial(percentage, digits=0))
        table.add_row(one.name, rate, compact(one.ticks_median), compact(one.ticks_max))
    console.print(table)
    console.print()


def print_contest(console: Console, contest: LearnerContest, played: Sequence[ContestRun]) -> None:
    """A few lines."""
    found = result_of(contest, played)
    won = sum(one.ticks is not None for one in played)
    console.print(
        f"{contest.algorithm} at the {contest.game} game: noise {contest.noise:.4g}, delay "
        f"{contest.delay_ticks} ticks"
    )
    console.print(f"converged        {won} of {len(played)} runs ({percentage(found.success_rate, 0)})")
    if won:
        console.print(f"ticks, median    {found.ticks_median:g}   of the runs that converged")
        console.print(f"ticks, most      {found.ticks_max}")
    near = sum(one.near_share for one in played) / len(played)
    console.print(f"near the ideal   {percentage(near, 0)} of all ticks")
