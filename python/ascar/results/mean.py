"""A mean with its interval, as results have it among their own keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta

if TYPE_CHECKING:
    from ascar.measurement import Measurement

Count = Annotated[int, Meta(ge=0)]


class Goal(msgspec.Struct, frozen=True, kw_only=True):
    """How good a mean is wanted.

    Attributes:
        interval_width_relative: largest width of the interval over the mean.
        readings_min: fewest readings in the stable phase.
        confidence: the interval's.
    """

    interval_width_relative: float
    readings_min: Count
    confidence: float


class Mean(msgspec.Struct, frozen=True, kw_only=True):
    """A mean with what is known about it.

    Attributes:
        n: readings in the stable phase.
        mean: over the stable phase.
        ci_low: lower end of the interval; null where no honest interval exists.
        ci_high: upper end of the interval, or null.
        ci_width_relative: width of the interval over the mean, or null.
        confidence: the interval's.
        independent_samples: how many independent samples the interval rests on.
        autocorrelation: lag 1, of the stable phase.
        subsession_size: readings merged into one subsession.
        subsessions: how many subsessions the stable phase divides into.
        stable_start: index of the first stable reading.
        stable_end: index past the last stable reading.
        change_points: indexes at which the level changes.
        method: how the interval was computed.
        reason: why there is no interval; empty where there is one.
    """

    n: Count
    mean: float
    ci_low: float | None
    ci_high: float | None
    ci_width_relative: float | None
    confidence: float
    independent_samples: float
    autocorrelation: float
    subsession_size: Count
    subsessions: Count
    stable_start: Count
    stable_end: Count
    change_points: tuple[Count, ...]
    method: str
    reason: str


class JudgedMean(Mean, frozen=True, kw_only=True):
    """A mean, judged by a goal.

    Attributes:
        verdict: whether the goal is reached; "too-wide" and "too-few-readings": more readings would help.
        verdict_line: why, in one line.
        goal: how good the mean is wanted.
    """

    verdict: Literal["reached", "too-wide", "too-few-readings", "no-interval"]
    verdict_line: str
    goal: Goal


def mean_keys(measurement: Measurement) -> dict[str, Any]:
    """A measurement by the keys of `Mean`."""
    return {name: getattr(measurement, name) for name in Mean.__struct_fields__}
