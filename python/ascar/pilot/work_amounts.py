"""How much work each round does (Li's thesis, sections 4.2.1 and 4.2.3).

A session starts with short rounds and doubles them until one is long enough to mean something. From there
each round is a fixed slice longer than the last (eq. 4.5), so that the first result comes early; then work
amounts follow the halving sequence of Fig. 4.3, which spreads any number of them evenly over the range.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING

from ascar.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ascar.pilot.round import Round

__all__ = ["WorkAmounts", "halving_sequence", "slice_seconds"]


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
        low: least work amount allowed, above zero.
        high: most work amount allowed.
        short_round_s: shorter rounds are set aside and doubled.
        first_result_s: seconds after which a first result is wanted (60 in the thesis).
        first_rounds: rounds in that time (50 in the thesis, for the central limit theorem); fewer where the
            shortest round does not leave room for so many.
    """

    low: float
    high: float
    short_round_s: float = 1.0
    first_result_s: float = 60.0
    first_rounds: int = 50
    _growing: list[float] = field(default_factory=list[float], repr=False)
    _halving: Iterator[float] | None = field(default=None, repr=False)
    _trial: float = field(default=0.0, repr=False)
    _learned: bool = field(default=False, repr=False)

    def __post_init__(self) -> None:
        """Check the range.

        Raises:
            InputError: it is empty, or does not start above zero.
        """
        if not 0 < self.low <= self.high:
            raise InputError(
                f"work amounts from {self.low:g} to {self.high:g}: must be 0 < least <= most, e.g. 1 to 1000"
            )
        self._trial = self.low

    def next(self) -> float:
        """The work amount of the next round."""
        if not self._learned:
            return self._trial
        if self._growing:
            return self._growing.pop(0)
        if self._halving is None:
            self._halving = halving_sequence(self.low, self.high)
        return next(self._halving)

    def learn(self, done: Round) -> bool:
        """Take note of a round; says whether it is long enough to be used."""
        assert done.work_amount is not None, "a schedule of work amounts is for adjustable work"
        if done.seconds < self.short_round_s and done.work_amount < self.high:
            if not self._learned:
                self._trial = min(2 * done.work_amount, self.high)
            return False
        if not self._learned:
            self._learned = True
            self.low = done.work_amount
            self._grow(done)
        return True

    def raise_low(self, work_amount: float) -> None:
        """Leave out work amounts that the non-stable phases would dominate (end of section 4.2.1)."""
        if work_amount > self.low:
            self.low = min(work_amount, self.high)
            self._growing = [amount for amount in self._growing if amount >= self.low]
            self._halving = None

    def _grow(self, done: Round) -> None:
        """Plan rounds that outlast each other by eq. 4.5's slice, up to the range's end."""
        assert done.work_amount is not None
        seconds = max(done.seconds, 1e-9)
        # Rounds of equal length need sn seconds; so many that half the time is left to grow in.
        rounds = max(2, min(self.first_rounds, int(self.first_result_s / seconds / 2)))
        slice_s = slice_seconds(self.first_result_s, seconds, rounds)
        if slice_s <= 0:
            slice_s = seconds / 2
        speed = done.work_amount / seconds
        amounts = (done.work_amount + speed * slice_s * step for step in range(1, rounds))
        self._growing = [amount for amount in amounts if amount <= self.high]
