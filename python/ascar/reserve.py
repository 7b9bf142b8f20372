"""How much of the budget the search keeps back for the last comparison, by what it would recommend."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from ascar.results.trial import Trial


SEARCH_SHARE = 0.7
"""The search has at least this share of the time that is left, where pairs of short loads can decide.

A better candidate is shown with fewer pairs. Studies of 444 and 490 s in virtual time, with loads of 5 to
20 s, brought 1.4 and 8.3% with a share of 0.4, 2.7 and 7.1% with 0.55, 3.9 and 11.6% with 0.7.
"""
SEARCH_SHARE_MIN = 0.4
"""The same where they cannot, however noisy the comparison is."""


@dataclass(frozen=True, slots=True)
class RecommendedTrial:
    """What the search recommends.

    Attributes:
        trial: the latest usable trial of the recommended configuration.
        expected_score: the score that the optimizer expects of it: the luckiest of many trials scores more
            than its configuration does.
    """

    trial: Trial
    expected_score: float


@dataclass(frozen=True, slots=True)
class Reserve:
    """Seconds of the budget that the search keeps back for the verification.

    Attributes:
        most_s: the most that is kept back, whatever is found.
        needed_s: what the verification of what the search recommends will take, at most `most_s`.
    """

    most_s: float
    needed_s: Callable[[RecommendedTrial | None], float]
