"""Records of learners: how often and how soon each converges, and how they compare."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from ascar.capes.environments.contest import ContestProgress, play
from ascar.pilot.rivals import against_each, check_contest
from ascar.results.contest import LearnerRecord
from ascar.significance import share

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ascar.capes.environments.contest import LearnerContest
    from ascar.results.contest import ContestEntry


def record_of(name: str, ticks: Sequence[int | None], confidence: float = 0.95) -> LearnerRecord:
    """How often and how soon a learner converged.

    Args:
        name: the learner's.
        ticks: the number of ticks of each run until convergence; None without convergence.
        confidence: the confidence of the share's interval.
    """
    won = sorted(one for one in ticks if one is not None)
    rate, low, high = share(len(won), len(ticks), confidence)
    return LearnerRecord(
        name=name,
        success_rate=rate,
        success_low=low,
        success_high=high,
        ticks_median=median(won) if won else None,
        ticks_max=won[-1] if won else None,
    )


def play_each(
    contests: Sequence[LearnerContest],
    confidence: float,
    listener: Callable[[ContestProgress], None] | None = None,
) -> tuple[tuple[LearnerRecord, ...], tuple[ContestEntry, ...]]:
    """Let learners play the same games.

    Args:
        contests: alike but for the learner.
        confidence: the confidence of each interval, and of all gains' intervals together.
        listener: told now and then how far all of them are.

    Returns:
        How often and how soon each converged; and the learners by the share of ticks near the ideal.

    Raises:
        EnvironmentLacks: the classic learner's libraries are not installed.
        InputError: noise, delay, runs or confidence are out of range, or there are too few learners.
    """
    check_contest(contests[0].runs if contests else 0, confidence, len(contests))
    records: list[LearnerRecord] = []
    near: dict[str, list[float]] = {}
    for at, contest in enumerate(contests):

        def tell(moment: ContestProgress, at: int = at) -> None:
            if listener is not None:
                share, done = (at + moment.share) / len(contests), at * moment.wanted + moment.done
                listener(ContestProgress(share, done, len(contests) * moment.wanted, None, moment.unit))

        played = play(contest, tell)
        records.append(record_of(contest.algorithm, [one.ticks for one in played], confidence))
        near[contest.algorithm] = [one.near_share for one in played]
    return tuple(records), against_each(near, "maximize", confidence)
