"""Rounds to findings: unit readings where there are any, else one reading a round; and the WPS speed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ascar import _core
from ascar.measurement import Measurement
from ascar.pilot.analysis import analyze
from ascar.pilot.indicator import Indicator, Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from ascar.pilot.presets import Goal
    from ascar.pilot.round import Round

__all__ = ["Finding", "Speed", "find", "speed_of"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What the rounds say about one indicator.

    Attributes:
        indicator: which.
        measurement: its mean with an interval; None before the first reading.
        basis: "unit readings" or "readings".
        removed: unit readings left out as warm-up and cool-down.
        series: (n,) everything that was read, in order.
    """

    indicator: Indicator
    measurement: Measurement | None
    basis: str
    removed: int
    series: NDArray[np.float64]

    @property
    def reached(self) -> bool:
        """Whether the indicator's goal is reached; without a goal, always."""
        goal = self.indicator.goal
        return goal is None or (self.measurement is not None and goal.met_by(self.measurement))


@dataclass(frozen=True, slots=True)
class Speed:
    """Work per second by regression over rounds of different work amounts (WPS, eq. 4.4).

    Attributes:
        work_per_s: speed of the stable phase.
        ci_low: lower end of its interval; None with too few rounds.
        ci_high: upper end, or None.
        alpha_s: seconds that set-up, warm-up and cool-down add to a round.
        rounds: rounds that the line rests on.
        confidence: of the interval.
    """

    work_per_s: float
    ci_low: float | None
    ci_high: float | None
    alpha_s: float
    rounds: int
    confidence: float

    def meets(self, goal: Goal) -> bool:
        """Whether the interval is tight enough."""
        if self.ci_low is None or self.ci_high is None or self.work_per_s <= 0:
            return False
        return (self.ci_high - self.ci_low) / self.work_per_s <= goal.interval_width

    def seconds_for(self, work_amount: float) -> float:
        """Predicted duration of a round (eq. 4.4)."""
        return self.alpha_s + work_amount / self.work_per_s


def find(indicator: Indicator, rounds: Sequence[Round]) -> Finding:
    """What rounds say about an indicator; unit readings win over readings where there are both."""
    confidence = indicator.goal.confidence if indicator.goal else 0.95
    series = [
        np.asarray(done.unit_readings[indicator.name], np.float64)
        for done in rounds
        if len(done.unit_readings.get(indicator.name, ())) > 0
    ]
    if series:
        everything = np.concatenate(series)
        stable = np.concatenate([_stable(values) for values in series]) if len(series) > 1 else everything
        measurement = _measure(indicator, stable, confidence, whole=len(series) > 1)
        removed = everything.size - (measurement.n if measurement else 0)
        return Finding(indicator, measurement, "unit readings", removed, everything)
    readings = np.array([done.readings[indicator.name] for done in rounds if indicator.name in done.readings])
    measurement = _measure(indicator, readings, confidence, whole=True) if readings.size else None
    return Finding(indicator, measurement, "readings", 0, readings)


def _stable(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The stable phase of one round: each round warms up and cools down on its own (section 4.2.1)."""
    if values.size < 2:
        return values
    found = _core.analyze(np.ascontiguousarray(values))
    return values[found.stable_start : found.stable_end]


def _measure(
    indicator: Indicator, values: NDArray[np.float64], confidence: float, whole: bool
) -> Measurement | None:
    """The mean of a kind of readings with its interval.

    Args:
        indicator: its kind says which mean.
        values: (n,) readings.
        confidence: of the interval.
        whole: the values are all stable: no phases are looked for.
    """
    if values.size == 0:
        return None
    if indicator.kind is Kind.BINARY:
        mean, low, high = _core.proportion_interval(int(values.sum()), values.size, confidence)
        n = values.size
        return Measurement(mean, low, high, confidence, n, n, 0.0, 1, 0, n, method="Wilson")
    if indicator.kind is Kind.RATIO:
        # The harmonic mean of speeds is the reciprocal of the mean of times: analyse those, turn the ends.
        inverse = analyze(1.0 / values, confidence, whole=whole)
        return _inverted(inverse)
    return analyze(values, confidence, whole=whole)


def _inverted(times: Measurement) -> Measurement:
    """The mean speed from the mean time: the interval's ends change places, where both are above zero."""
    bounded = times.ci_low is not None and times.ci_high is not None and times.ci_low > 0
    return Measurement(
        mean=1.0 / times.mean,
        ci_low=1.0 / times.ci_high if bounded and times.ci_high else None,
        ci_high=1.0 / times.ci_low if bounded and times.ci_low else None,
        confidence=times.confidence,
        n=times.n,
        independent_samples=times.independent_samples,
        autocorrelation=times.autocorrelation,
        subsession_size=times.subsession_size,
        stable_start=times.stable_start,
        stable_end=times.stable_end,
        change_points=times.change_points,
        method=f"harmonic, {times.method}",
        reason=times.reason,
    )


def speed_of(rounds: Sequence[Round], confidence: float = 0.95) -> Speed | None:
    """The WPS speed of rounds of different work amounts; None where they make no line yet."""
    pairs = [(done.work_amount, done.seconds) for done in rounds if done.work_amount is not None]
    if len({amount for amount, _ in pairs}) < 2:
        return None
    amounts, seconds = (np.array(column, np.float64) for column in zip(*pairs, strict=True))
    found = _core.wps(amounts, seconds, confidence)
    if found is None or not found.work_per_s > 0:
        return None
    return Speed(found.work_per_s, found.ci_low, found.ci_high, found.alpha_s, len(pairs), confidence)
