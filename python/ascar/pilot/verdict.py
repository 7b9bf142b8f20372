"""What a measurement amounts to, in a word for programs and a line for people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from ascar.pilot.presets import Goal
    from ascar.results.measurement import Measurement

Word = Literal["reached", "too-wide", "too-few-readings", "no-interval"]


@dataclass(frozen=True, slots=True)
class GoalVerdict:
    """Whether a measurement reaches its goal.

    Attributes:
        word: "reached"; "too-wide" or "too-few-readings", which more readings would cure; or "no-interval",
            where no honest interval exists.
        line: why, one line.
    """

    word: Word
    line: str


def verdict_on(measurement: Measurement, goal: Goal) -> GoalVerdict:
    """Judge a measurement by a goal."""
    width = measurement.ci_width_relative
    if measurement.ci_low is None:
        return GoalVerdict("no-interval", measurement.reason)
    if width is None:
        return GoalVerdict("too-wide", "the mean is 0, so no width is relative to it")
    told = f"the interval is {width:.2%} of the mean wide, the goal is {goal.interval_width:.2%}"
    if width > goal.interval_width:
        return GoalVerdict("too-wide", told)
    if goal.autocorrelation_limit is not None and measurement.subsessions < goal.readings_min:
        few = f"{measurement.subsessions} subsessions; the published goal asks for {goal.readings_min}"
        return GoalVerdict("too-few-readings", few)
    if measurement.n < goal.readings_min:
        few = f"{measurement.n} readings in the stable phase; the goal asks for {goal.readings_min}"
        return GoalVerdict("too-few-readings", few)
    return GoalVerdict("reached", told)
