"""Candidates of a round: the hottest rule's action, varied geometrically (Li, algorithm 1, table 3.2)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from ascar.rules import Action

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ascar.rules import RuleSet

_ONCE_X100 = 100  # what "do not multiply" multiplies by


@dataclass(frozen=True, slots=True)
class Steps:
    """How one variable of an action is varied.

    The changes are granularity, granularity * k, granularity * k^2 ...; k is the `count`-th root of
    (upper - lower) / granularity (section 3.1.6).

    Attributes:
        lower: least value tried.
        upper: greatest value tried.
        granularity: smallest change.
        count: steps from the smallest change to one across the whole range.
    """

    lower: float
    upper: float
    granularity: float
    count: int

    @property
    def factor(self) -> float:
        """k: from one change to the next."""
        return ((self.upper - self.lower) / self.granularity) ** (1 / self.count)

    def around(self, start: int) -> list[int]:
        """Whole values near `start`, the nearest first, below before above; `start` is not one of them."""
        farthest = max(self.upper - start, start - self.lower)
        found: list[int] = []
        change = self.granularity
        while change <= farthest:
            tried = (start - change, start + change)
            found += [int(value) for value in tried if self.lower <= value <= self.upper]
            change *= self.factor
        return found


# Table 3.2; a window of 20 requests for each of its 256ths is what limits b in the original's whole numbers.
M100 = Steps(30, 200, 5, 4)
B100 = Steps(-30 * 20 * 100 / 256, 30 * 20 * 100 / 256, 30, 4)
TAU_US = Steps(0, 70_000, 500, 6)


def varied(action: Action) -> Iterator[Action]:
    """Actions around one: all combinations of a changed m, a changed b and a changed tau, tau fastest."""
    m100 = action.m100 if action.m100 >= 0 else _ONCE_X100
    changed = product(M100.around(m100), B100.around(action.b100), TAU_US.around(action.tau_us))
    return (Action(*values) for values in changed)


def candidates(rule_set: RuleSet, at: int | None = None) -> Iterator[RuleSet]:
    """The rule sets of a round of the published search: one rule with each of the varied actions.

    Args:
        rule_set: the rules.
        at: number of the rule; the hottest by default.
    """
    at = rule_set.hottest() if at is None else at
    return (rule_set.with_action(at, action) for action in varied(rule_set.rules[at].action))
