"""When a measurement is good enough: goals of quick, normal and strict, and those that Pilot published."""

from __future__ import annotations

from dataclasses import dataclass, replace
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
        readings_min: the fewest readings in the stable phase; by the published rule, the fewest subsessions.
        confidence: the confidence of the interval.
        rounds_min: the fewest rounds of a session; between rounds systems differ more than inside one.
        autocorrelation_limit: the greatest autocorrelation of subsessions by the published rule, which stops
            at the first interval that is narrow enough; None: the corrected rule.
    """

    interval_width: float
    readings_min: int
    confidence: float = 0.95
    rounds_min: int = 1
    autocorrelation_limit: float | None = None

    def __post_init__(self) -> None:
        """Check the goal.

        Raises:
            InputError: a number is out of its range.
        """
        if not self.interval_width > 0:
            raise InputError(f"interval width = {self.interval_width!r}: must be above 0, e.g. 0.1 for 10%")
        for name, least in (("readings_min", self.readings_min), ("rounds_min", self.rounds_min)):
            if least < 1:
                raise InputError(f"{name} = {least!r}: must be at least 1")
        if not 0 < self.confidence < 1:
            raise InputError(f"confidence = {self.confidence!r}: must be between 0 and 1, e.g. 0.95")

    @classmethod
    def of(
        cls,
        preset: str,
        *,
        interval_width: float | None = None,
        confidence: float | None = None,
        method: str = "corrected",
    ) -> Goal:
        """A preset's goal, with what is not None in its place.

        Args:
            preset: the name of the preset.
            interval_width: the width of the interval over the mean.
            confidence: the confidence of the interval.
            method: "corrected", or "faithful" for the rule and the figures of the released Pilot.

        Raises:
            InputError: there is no such preset or method, or a number is out of its range.
        """
        if preset not in PRESETS:
            raise InputError(f"preset = {preset!r}: must be one of {', '.join(PRESETS)}")
        if method not in ("corrected", "faithful"):
            raise InputError(f"method = {method!r}: must be corrected or faithful")
        known = PRESETS[preset] if method == "corrected" else PUBLISHED[preset].goal
        return replace(
            known,
            interval_width=known.interval_width if interval_width is None else interval_width,
            confidence=known.confidence if confidence is None else confidence,
        )

    @property
    def values(self) -> GoalValues:
        """As `ascar._core` takes it."""
        return (
            *(self.interval_width, self.readings_min, self.confidence, self.rounds_min),
            self.autocorrelation_limit,
        )


@dataclass(frozen=True, slots=True)
class PublishedPreset:
    """A preset of the released Pilot.

    Attributes:
        goal: the goal, with its limit on autocorrelation.
        short_round_s: the length of the shortest round that counts.
    """

    goal: Goal
    short_round_s: float


PRESETS = {name: Goal(*values) for name, values in _core.pilot_presets()}
PUBLISHED = {
    name: PublishedPreset(Goal(*values), short_s) for name, values, short_s in _core.pilot_published()
}
