"""A figure over runs that differ in their seed alone: its mean with an interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ascar import _core
from ascar.simulation.outcome import FIGURES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ascar.simulation.outcome import ClusterOutcome

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class SeedMean:
    """A mean over independent runs.

    Attributes:
        mean: the mean over the runs.
        ci_low: lower end of Student's interval, confidence `CONFIDENCE`; None with one run.
        ci_high: upper end, or None.
        runs: the number of runs.
    """

    mean: float
    ci_low: float | None
    ci_high: float | None
    runs: int


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
