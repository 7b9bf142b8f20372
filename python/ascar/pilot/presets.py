"""When a measurement is good enough: the goals behind quick, normal and strict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ascar import _core
from ascar.errors import InputError

if TYPE_CHECKING:
    from ascar._core import GoalValues


@dataclass(frozen=True, slots=True)
class Goal:
    """What a measurement must reach.

    Attributes:
        interval_width: total width of the mean's interval, over the mean.
        readings_min: the fewest readings in the stable phase.
        confidence: the confidence of the interval.
        rounds_min: the fewest rounds of a session; between rounds systems differ more than inside one.
    """

    interval_width: float
    readings_min: int
    confidence: float = 0.95
    rounds_min: int = 1

    def __post_init__(self) -> None:
        """Check the goal.

        Raises:
            InputError: a number is out of its range.
        """
        if not self.interval_width > 0:
            raise InputError(f"interval width = {self.interval_width!r}: must be above 0, e.g. 0.1 for 10%")
        if self.readings_min < 1:
            raise InputError(f"readings_min = {self.readings_min!r}: must be at least 1")
        if not 0 < self.confidence < 1:
            raise InputError(f"confidence = {self.confidence!r}: must be between 0 and 1, e.g. 0.95")

    @classmethod
    def of(cls, preset: str, *, interval_width: float | None = None, confidence: float | None = None) -> Goal:
        """A preset's goal, with what is not None in its place.

        Raises:
            InputError: there is no such preset, or a number is out of its range.
        """
        known = PRESETS.get(preset)
        if known is None:
            raise InputError(f"preset = {preset!r}: must be one of {', '.join(PRESETS)}")
        return cls(
            interval_width=known.interval_width if interval_width is None else interval_width,
            readings_min=known.readings_min,
            confidence=known.confidence if confidence is None else confidence,
            rounds_min=known.rounds_min,
        )

    @property
    def values(self) -> GoalValues:
        """As `ascar._core` takes it."""
        return self.interval_width, self.readings_min, self.confidence, self.rounds_min


PRESETS = {name: Goal(*values) for name, values in _core.pilot_presets()}
