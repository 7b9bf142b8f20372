"""What a user sets of the modern learner."""

from __future__ import annotations

import msgspec


class ModernOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[modern]` in a learner's file.

    Attributes:
        budget: share of a minute's performance under the initial setting that exploration may lose.
        worth: a change must promise at least this share more.
        first_ticks: ticks measured at the initial setting before anything else is tried.
        settle_ticks_max: the longest delay after which a change may show.
        visit_ticks_min: ticks measured at a setting, once it has settled, before the next choice.
        visit_ticks_max: the same where ticks are noisy.
        stay_ticks_max: ticks between two choices, where the learner has decided to stay several times.
    """

    budget: float = 0.05
    worth: float = 0.01
    first_ticks: int = 16
    settle_ticks_max: int = 12
    visit_ticks_min: int = 3
    visit_ticks_max: int = 10
    stay_ticks_max: int = 24
