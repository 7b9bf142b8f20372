"""Points of a Pareto set."""

from __future__ import annotations

import msgspec

from ascar.results.measurement import Count
from ascar.space import Configuration


class ParetoPoint(msgspec.Struct, frozen=True):
    """A configuration in the space of the objectives.

    Attributes:
        configuration: the measured configuration.
        scores: means over the configuration's trials, in the order of the objectives.
        trials: the numbers of these trials.
        intervals: the 95% intervals of the scores: between trials if there are several, else from the one
            trial's readings; null if neither gives an interval.
        is_default: whether this is the default configuration.
    """

    configuration: Configuration
    scores: tuple[float, ...]
    trials: tuple[Count, ...]
    intervals: tuple[tuple[float, float] | None, ...] = ()
    is_default: bool = False
