"""A figure over runs that differ in their seed alone: its mean with an interval."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ascar import _core
from ascar.results.cluster import FIGURES, SeedMean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ascar.results.cluster import ClusterOutcome

CONFIDENCE = 0.95


def estimate(values: Sequence[float]) -> SeedMean:
    """The mean of one value a run, with its interval."""
    assert values, "at least one run"
    if len(values) == 1:
        return SeedMean(values[0], None, None, 1)
    mean, low, high = _core.mean_interval(np.array(values, np.float64), CONFIDENCE)
    return SeedMean(mean, low, high, len(values))


def spread_of(outcomes: Sequence[ClusterOutcome]) -> dict[str, SeedMean]:
    """Every one of `FIGURES` over runs of one scenario with different seeds."""
    return {name: estimate([one.figure(name) for one in outcomes]) for name in FIGURES}
