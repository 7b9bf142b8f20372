"""Values of measuring: readings in time, and what may be said about their mean."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - msgspec reads the annotations
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from ascar import _core

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Count = Annotated[int, Meta(ge=0)]
MaybeNan = Annotated[float, Meta(extra_json_schema={"may_be_nan": True})]
"""A number that may be NaN, which is null in JSON."""


class Series:
    """Unit readings of one metric, in the order they were taken.

    Attributes:
        seconds: float64 (n,), when each reading's interval ended, since the load began.
        values: float64 (n,), the readings, in the unit that the metric's name ends with.
    """

    __slots__ = ("seconds", "values")

    def __init__(self, seconds: NDArray[np.float64], values: NDArray[np.float64]) -> None:
        assert seconds.shape == values.shape, "one instant a reading"
        self.seconds, self.values = seconds, values

    def __len__(self) -> int:
        return len(self.values)

    @classmethod
    def of(cls, seconds: list[float], values: list[float]) -> Series:
        """A series from two lists of equal length."""
        import numpy as np  # only here: what reads a study file does without

        return cls(np.asarray(seconds, np.float64), np.asarray(values, np.float64))


@dataclass(frozen=True, slots=True)
class Readings:
    """All that one run of a load told.

    Attributes:
        series: unit readings by metric name, for metrics that were read repeatedly.
        metrics: the value of each metric over the whole run (latency percentiles, totals, energy).
        load_s: the run time of the load.
        tail_s: what operations under way took to end after that; 0 where the program does not tell.
        ended: why it ended: "enough", "time", "program".
        notes: lines worth keeping (the program's last words).
    """

    series: Mapping[str, Series]
    metrics: Mapping[str, float]
    load_s: float
    ended: str = "time"
    notes: str = ""
    tail_s: float = 0.0


class Measurement(msgspec.Struct, frozen=True):
    """The mean of readings, with its interval.

    Attributes:
        mean: the mean over the stable phase.
        ci_low: lower end of the interval, None where no honest interval exists.
        ci_high: upper end, or None.
        confidence: the interval's, e.g. 0.95.
        n: readings in the stable phase.
        independent_samples: the effective sample size of the stable phase.
        autocorrelation: lag-1 autocorrelation of the stable phase.
        subsession_size: readings merged into one subsession (thesis of Li, section 4.2.2).
        stable_start: first reading of the stable phase.
        stable_end: the index one past the last reading of the stable phase.
        change_points: indexes at which the mean shifts.
        method: the method of the interval.
        reason: why there is no interval; empty where there is one.
    """

    in_document_too: ClassVar = ("ci_width_relative", "subsessions")

    mean: float
    ci_low: float | None
    ci_high: float | None
    confidence: float
    n: Count
    independent_samples: Count
    autocorrelation: MaybeNan
    subsession_size: Count
    stable_start: Count
    stable_end: Count
    change_points: tuple[Count, ...] = ()
    method: str = "single"
    reason: str = ""

    @classmethod
    def single(cls, value: float, confidence: float = 0.95) -> Measurement:
        """A number that was read once: it has no interval, and says so."""
        return cls(
            mean=value,
            ci_low=None,
            ci_high=None,
            confidence=confidence,
            n=1,
            independent_samples=1,
            autocorrelation=0.0,
            subsession_size=1,
            stable_start=0,
            stable_end=1,
            reason="one reading has no interval",
        )

    @property
    def subsessions(self) -> Count:
        """How many subsessions the stable phase divides into; what is left over at its end is in none."""
        return self.n // self.subsession_size

    @property
    def ci_width(self) -> float | None:
        """Width of the interval, in the metric's unit; None where there is none."""
        if self.ci_low is None or self.ci_high is None:
            return None
        return self.ci_high - self.ci_low

    @property
    def ci_width_relative(self) -> float | None:
        """Width of the interval over the absolute mean; None where there is none."""
        if self.ci_width is None or self.mean == 0:
            return None
        return self.ci_width / abs(self.mean)

    @property
    def standard_error(self) -> float | None:
        """Half the interval over its t quantile: the mean's standard error."""
        if self.ci_width is None or self.independent_samples < 2:
            return None
        quantile = _core.student_t_quantile(0.5 + self.confidence / 2, self.independent_samples - 1)
        return self.ci_width / 2 / quantile


class RequestedGoal(msgspec.Struct, frozen=True, kw_only=True):
    """How good a mean is wanted.

    Attributes:
        interval_width_relative: largest width of the interval over the mean.
        readings_min: fewest readings in the stable phase.
        confidence: the interval's.
    """

    interval_width_relative: float
    readings_min: Count
    confidence: float


class JudgedMeasurement(Measurement, frozen=True, kw_only=True):
    """A mean, judged by a goal.

    Attributes:
        verdict: whether the goal is reached; "too-wide" and "too-few-readings": more readings would help.
        verdict_line: why, in one line.
        goal: the required quality of the mean.
    """

    verdict: Literal["reached", "too-wide", "too-few-readings", "no-interval"]
    verdict_line: str
    goal: RequestedGoal
