"""Reasons to doubt rules that are kept: throughput that has moved, or pairs with and without them."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from statistics import fmean, stdev
from typing import TYPE_CHECKING

from ascar.pilot.turns import PAIRS_MIN, Gain
from ascar.render import number

if TYPE_CHECKING:
    from ascar.objective import Direction

LOOKS_MIN, LOOKS_MAX = 6, 24
PAIRS_MAX = 12
LEVEL = 0.001
"""Probability that the pairs of one window, of equal means, are called worse at any look."""
_DEVIATIONS = 4.5
_MOVE_LEAST = 0.08  # of the mean: less than this is no reason to do without rules for a while


@dataclass(slots=True)
class Looks:
    """Throughput under kept rules, look by look; a jump away from the latest ones is a reason to doubt.

    Attributes:
        values: the latest looks, in MB/s.
        still: the latest looks in a row without any throughput.
    """

    values: deque[float] = field(default_factory=lambda: deque[float](maxlen=LOOKS_MAX))
    still: int = 0

    def doubt(self, mb_per_s: float) -> str:
        """Take in a look; why it is a reason to doubt, or nothing.

        The last value before a jump may be of a time in which the load had changed already, and is not
        what the next one is compared with. A look without any throughput tells nothing: the clients pause, or
        the rules let nothing pass.
        """
        self.still = self.still + 1 if mb_per_s <= 0 else 0
        if self.still:
            return ""
        known = list(self.values)[:-1]
        self.values.append(mb_per_s)
        if len(known) < LOOKS_MIN:
            return ""
        mean = fmean(known)
        if abs(mb_per_s - mean) <= max(_MOVE_LEAST * mean, _DEVIATIONS * stdev(known)):
            return ""
        return f"the throughput is {number(mb_per_s)} MB/s, and was {number(mean)} under these rules"


@dataclass(slots=True)
class Checks:
    """The latest pairs of intervals with the rules and without; rules are doubted that they speak against.

    Attributes:
        direction: the direction of the objective.
        without: scores of the intervals without the rules.
        under: scores of the intervals under them.
    """

    direction: Direction
    without: deque[float] = field(default_factory=lambda: deque[float](maxlen=PAIRS_MAX))
    under: deque[float] = field(default_factory=lambda: deque[float](maxlen=PAIRS_MAX))

    def doubt(self, without: float, under: float) -> str:
        """Take in a pair; why the pairs are a reason to doubt, or nothing."""
        self.without.append(without)
        self.under.append(under)
        if len(self.under) < PAIRS_MIN:
            return ""
        gain = Gain.of(self.without, self.under, self.direction, LEVEL)
        if gain.decision != "worse":
            return ""
        return f"the gain is {gain.words} in the last {len(self.under)} pairs"
