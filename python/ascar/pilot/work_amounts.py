"""How much work each round does (Li's thesis, sections 4.2.1 and 4.2.3).

A session starts with trial rounds and doubles them until one is long enough to mean something. Where there
are unit readings, rounds then become as long as those that are still missing need. Where there are none, each
round is a fixed slice longer than the last (eq. 4.5), so that the first result comes early; then work amounts
follow the halving sequence of Fig. 4.3, which spreads any number of them evenly over the range.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from itertools import count, islice
from typing import TYPE_CHECKING

from ascar.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ascar.pilot.round import Round

__all__ = ["WorkAmounts", "halving_sequence", "slice_seconds"]

# Half of the time to the first result is left for rounds to grow in.
_GROWTH_SHARE = 0.5
_WORKING_RATIO = 1.5
# Smaller changes of the least work amount are no reason to begin the halving sequence again.
_LOW_CHANGE = 1.2
# Rounds of the halving sequence before its range doubles: four levels of Fig. 4.3.
_STAGE_ROUNDS = 15


def halving_sequence(low: float, high: float) -> Iterator[float]:
    """Midpoints of (low, high), then of its halves from left to right, and so on without end (Fig. 4.3)."""
    for level in count(1):
        parts = 2**level
        for odd in range(1, parts, 2):
            yield low + (high - low) * odd / parts


def slice_seconds(first_result_s: float, shortest_s: float, rounds: int) -> float:
    """By how much each round outlasts the one before, so that `rounds` take `first_result_s` (eq. 4.5).

    Args:
        first_result_s: seconds in which the first result is wanted, t in the equation.
        shortest_s: seconds of the first of them, s.
        rounds: n, at least 2.

    Returns:
        k = (2t - 2sn) / (n^2 - n); not above zero where so many rounds cannot fit.
    """
    assert rounds >= 2, "a slope needs two rounds"
    return (2 * first_result_s - 2 * shortest_s * rounds) / (rounds**2 - rounds)


@dataclass(slots=True)
class WorkAmounts:
    """The schedule of one session whose work can be adjusted.

    Attributes:
        low: least work amount allowed, above zero; raised by what trial rounds show.
        high: most work amount allowed.
        whole: work amounts are whole numbers.
        short_round_s: shorter rounds are set aside, and the next does twice as much.
        longest_round_s: no round is planned longer than this, however much work is allowed.
        first_result_s: seconds after which a first result is wanted (60 in the thesis).
        first_rounds: rounds in that time (50 in the thesis, for the central limit theorem); fewer where the
            shortest round does not leave room for so many.
    """

    low: float
    high: float
    whole: bool = False
    short_round_s: float = 1.0
    longest_round_s: float = 180.0
    first_result_s: float = 60.0
    first_rounds: int = 50
    _trial: float = field(default=0.0, repr=False)
    _before: Round | None = field(default=None, repr=False)
    _line: _Line | None = field(default=None, repr=False)
    _growing: list[float] = field(default_factory=list[float], repr=False)
    _halving: Iterator[float] | None = field(default=None, repr=False)
    _stage: int = field(default=1, repr=False)
    _widest: float = field(default=0.0, repr=False)

    def __post_init__(self) -> None:
        """Check the range.

        Raises:
            InputError: it is empty, does not start above zero, or has no whole number where one is needed.
        """
        if not 0 < self.low <= self.high < float("inf"):
            raise InputError(
                f"work amounts from {self.low:g} to {self.high:g}: must be 0 < least <= most, e.g. 1,1000"
            )
        if self.whole:
            if math.ceil(self.low) > math.floor(self.high):
                raise InputError(
                    f"work amounts from {self.low:g} to {self.high:g}: must have a whole number among them"
                )
            self.low, self.high = float(math.ceil(self.low)), float(math.floor(self.high))
        self._trial = self.low

    def next(self) -> float:
        """The work amount of the next round."""
        if self._line is None:
            return self._allowed(self._trial)
        if self._growing:
            return self._allowed(self._growing.pop(0))
        if self._halving is None:
            self._halving = islice(halving_sequence(self.low, self._top(self._line)), _STAGE_ROUNDS)
        amount = next(self._halving, None)
        if amount is None:
            self._stage, self._halving = self._stage + 1, None
            return self.next()
        return self._allowed(amount)

    def next_for(self, seconds: float) -> float:
        """The work amount of the next round where unit readings of so many more seconds are wanted.

        At most twice the longest so far: what is known does not tell what a much longer round would do.
        """
        if self._line is None:
            return self._allowed(self._trial)
        wanted = min(max(seconds * self._line.work_per_s, self.low), 2 * self._trial, self._most(self._line))
        self._trial = max(self._trial, wanted)
        return self._allowed(wanted)

    def learn(self, done: Round) -> bool:
        """Take note of a round; says whether it is to be used.

        Trial rounds are set aside until one is not short, and does not spend most of its time on what is no
        work: that is so once twice the work takes half as long again (eq. 4.4: t(2w) >= 1.5 t(w) means that w
        is at least alpha times the speed).
        """
        assert done.work_amount is not None, "a schedule of work amounts is for adjustable work"
        if self._line is not None:
            return done.seconds >= self.short_round_s or done.work_amount >= self.high
        before, self._before = self._before, done
        at_end = done.work_amount >= self.high
        long_enough = done.seconds >= self.short_round_s
        working = before is not None and done.seconds >= _WORKING_RATIO * before.seconds
        if not at_end and not (long_enough and working):
            self._trial = min(2 * done.work_amount, self.high)
            return False
        self._trial = done.work_amount
        self._line = _Line.through(before, done)
        if before is not None and long_enough and not working:
            # Not even the most work outweighs what is no work: rounds differ as far as the range lets them.
            self._line = self._line.back_to(before, self.short_round_s)
        self.low = self._line.work
        self._growing = list(self._grown(self._line))
        self._widest = max(self._growing, default=2 * done.work_amount)
        return True

    def avoid(self, work_amount: float) -> None:
        """Plan no round of less work than this (end of section 4.2.1): too little of it would be stable.

        Followed up to the middle of what is planned, and taken back when the next estimate is lower: one
        wrong estimate must not make one round of the rest of the session.
        """
        if self._line is None:
            return
        low = min(max(work_amount, self._line.work), (self._line.work + self._top(self._line)) / 2)
        if not self.low / _LOW_CHANGE <= low <= self.low * _LOW_CHANGE:
            self.low, self._halving = low, None

    def _most(self, line: _Line) -> float:
        """The most work that is planned for one round."""
        fitting = line.work + line.work_per_s * (self.longest_round_s - line.seconds)
        return max(self.low, line.work, min(self.high, fitting))

    def _top(self, line: _Line) -> float:
        """The end of the range of the halving sequence now.

        It doubles from stage to stage up to the most: the whole range at once would make the first of its
        rounds long ones, and the result late.
        """
        return min(self._most(line), self._widest * 2.0**self._stage)

    def _allowed(self, wanted: float) -> float:
        amount = min(max(wanted, self.low), self.high)
        return float(round(amount)) if self.whole else amount

    def _grown(self, line: _Line) -> Iterator[float]:
        """Rounds that outlast each other by eq. 4.5's slice, up to the range's end."""
        fitting = int(self.first_result_s * (1 - _GROWTH_SHARE) / line.seconds)
        rounds = max(2, min(self.first_rounds, fitting))
        slice_s = slice_seconds(self.first_result_s, line.seconds, rounds)
        if slice_s <= 0:
            slice_s = line.seconds / 2
        for step in range(1, rounds):
            amount = line.work + line.work_per_s * slice_s * step
            if amount > self._most(line):
                return
            yield amount


@dataclass(frozen=True, slots=True)
class _Line:
    """What trial rounds tell: eq. 4.4 through the last two.

    Attributes:
        work: of the last trial round.
        seconds: that it took.
        work_per_s: what each second more would do.
    """

    work: float
    seconds: float
    work_per_s: float

    @classmethod
    def through(cls, before: Round | None, done: Round) -> _Line:
        """The line through two rounds; through one and the origin where there are no two that differ."""
        assert done.work_amount is not None
        seconds = max(done.seconds, 1e-9)
        if before is not None and before.work_amount is not None and done.seconds > before.seconds:
            more, longer_s = done.work_amount - before.work_amount, done.seconds - before.seconds
            if more > 0:
                return cls(done.work_amount, seconds, more / longer_s)
        return cls(done.work_amount, seconds, done.work_amount / seconds)

    def back_to(self, before: Round, seconds_min: float) -> _Line:
        """The same line from the round before on, or from where rounds take so many seconds."""
        assert before.work_amount is not None
        seconds = min(max(before.seconds, seconds_min), self.seconds)
        less = max(before.work_amount, self.work - (self.seconds - seconds) * self.work_per_s)
        return replace(self, work=less, seconds=seconds)
