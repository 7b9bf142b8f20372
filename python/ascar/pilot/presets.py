"""When a measurement is good enough: the goals behind quick, normal and strict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ascar.measurement import Measurement

__all__ = ["PRESETS", "Goal"]


@dataclass(frozen=True, slots=True)
class Goal:
    """What a measurement must reach.

    Attributes:
        interval_width: total width of the mean's interval, over the mean.
        readings_min: the fewest readings in the stable phase.
        confidence: of the interval.
    """

    interval_width: float
    readings_min: int
    confidence: float = 0.95

    def met_by(self, measurement: Measurement) -> bool:
        """Whether a measurement reaches this goal; one without an interval never does."""
        width = measurement.ci_width_relative
        return width is not None and width <= self.interval_width and measurement.n >= self.readings_min


# Pilot's command-line presets: interval width and minimum of samples. Its third number, the limit on
# autocorrelation, is not copied: loosening it breaks the interval's promise instead of widening it.
PRESETS = {
    "quick": Goal(interval_width=0.20, readings_min=12),
    "normal": Goal(interval_width=0.10, readings_min=50),
    "strict": Goal(interval_width=0.10, readings_min=200),
}
