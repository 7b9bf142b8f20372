"""Contestants run in turns until they are told apart (Li's thesis, section 4.2.4, Fig. 4.4).

The thesis runs them in one fixed order. Here each block's order is random, and the next block's is its mirror
image: over the two a drift inside blocks favours nobody, and no habit of the machine can keep time with them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ascar.errors import InputError
from ascar.pilot.analysis import analyze
from ascar.pilot.contest import ComparisonTerms, Contest, Standing
from ascar.pilot.session import Limits

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ascar.pilot.round import Round, Runner

# The test allows any number of looks; of thousands of quick rounds each would cost more than a round.
_LOOK_GROWTH = 1.01


@dataclass(frozen=True, slots=True)
class ContestPlan:
    """How contestants are compared.

    Attributes:
        metric: the reading that is compared.
        terms: the terms of the comparison.
        limits: the limits of the session; `rounds_max` counts blocks.
        warm_up: first blocks that are run and not used.
        seed: the seed of the order inside blocks.
    """

    metric: str
    terms: ComparisonTerms = field(default_factory=ComparisonTerms)
    limits: Limits = field(default_factory=Limits)
    warm_up: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the plan.

        Raises:
            InputError: there is no such warm-up.
        """
        if self.warm_up < 0:
            raise InputError(f"warm_up = {self.warm_up!r}: must be 0 or more blocks")


@dataclass(frozen=True, slots=True)
class ContestSession:
    """What is known: at the end, or after a block.

    Attributes:
        contest: the contest so far.
        standing: the ranking.
        blocks: the readings by contestant, block by block; a contestant that rests is absent.
        reached: everything is decided.
        ended: why it ended, one line; empty while it goes on.
        seconds: the run time so far.
        left_s: seconds that it may still take; None while nothing tells.
    """

    contest: Contest
    standing: Standing
    blocks: tuple[Mapping[int, float], ...]
    reached: bool
    ended: str
    seconds: float
    left_s: float | None


OnBlock = Callable[[ContestSession], None]
"""Told after each block what is known so far."""


def orders(contestants: int, seed: int) -> Iterator[tuple[int, ...]]:
    """Random orders without end, each followed by its mirror image."""
    rng = np.random.default_rng(seed)
    while True:
        order = tuple(map(int, rng.permutation(contestants)))
        yield order
        yield order[::-1]


def round_value(done: Round, metric: str) -> float:
    """The one number of a round: the reading, or the mean of the stable phase of unit readings.

    Raises:
        InputError: the round has neither.
    """
    units = done.unit_readings.get(metric, ())
    if len(units):
        return analyze(units).mean
    if metric not in done.readings:
        raise InputError(f"a round has no reading of {metric!r}; it has {', '.join(done.readings) or 'none'}")
    return float(done.readings[metric])


def run_contest(
    runners: Sequence[Runner],
    plan: ContestPlan,
    on_block: OnBlock | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> ContestSession:
    """Run contestants in turns until all neighbours in the ranking are decided, or a limit is reached.

    One that is decided against both of its neighbours rests. A block that a limit cuts off is not used.

    Args:
        runners: the runners of the contestants, at least two; each executes one round.
        plan: the plan of the comparison.
        on_block: told after each block what is known so far.
        clock: seconds, monotonic.

    Raises:
        InputError: there is nothing to compare.
    """
    if len(runners) < 2:
        raise InputError(f"{len(runners)} to compare: give at least two")
    contest = Contest(len(runners), plan.terms)
    blocks: list[Mapping[int, float]] = []
    start_s, running = clock(), frozenset(range(len(runners)))
    standing, looked_at = contest.standing(), 0
    for number, order in enumerate(orders(len(runners), plan.seed)):
        block = _block(runners, [one for one in order if one in running], plan, start_s, clock)
        if block is not None and number >= plan.warm_up:
            contest.add(block)
            blocks.append(block)
        seconds = clock() - start_s
        over = _over(len(blocks), cut_off=block is None, seconds=seconds, limits=plan.limits)
        if over or len(blocks) >= _LOOK_GROWTH * looked_at:
            standing, looked_at = contest.standing(), len(blocks)
        reached = standing.decided and bool(blocks)
        ended = "everything is decided" if reached else over
        running = contest.undecided(standing) or running
        session = ContestSession(
            contest,
            standing,
            tuple(blocks),
            reached,
            ended,
            seconds,
            None if ended else _left_s(standing, seconds / (number + 1), plan.limits.session_s - seconds),
        )
        if on_block is not None:
            on_block(session)
        if ended:
            return session
    raise AssertionError("orders have no end")


def _block(
    runners: Sequence[Runner],
    order: Sequence[int],
    plan: ContestPlan,
    start_s: float,
    clock: Callable[[], float],
) -> Mapping[int, float] | None:
    """One round of each; None where the time was over."""
    readings: dict[int, float] = {}
    for contestant in order:
        done = runners[contestant](None, max(0.0, plan.limits.session_s - (clock() - start_s)))
        if done is None:
            return None
        readings[contestant] = round_value(done, plan.metric)
    return readings


def _over(blocks: int, *, cut_off: bool, seconds: float, limits: Limits) -> str:
    """The limit that was reached; empty while there is none."""
    if cut_off or seconds >= limits.session_s:
        return f"the limit of {limits.session_s:g} s was reached"
    if blocks >= limits.rounds_max:
        return f"the limit of {limits.rounds_max} rounds of each was reached"
    return ""


def _left_s(standing: Standing, block_s: float, limit_s: float) -> float | None:
    more = [pair.more for pair in standing.pairs if not pair.decided]
    known = [rounds for rounds in more if rounds is not None]
    if len(known) < len(more) or not known:
        return None
    return min(max(known) * block_s, max(0.0, limit_s))
