"""What a session's rounds say about its indicators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, cast

from ascar.results.measurement import Measurement

if TYPE_CHECKING:
    from ascar._core import FindingValues, MeasurementValues
    from ascar.pilot.indicator import Indicator


Basis = Literal["unit readings", "rounds", "readings"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What the rounds say about one indicator.

    Attributes:
        indicator: the indicator.
        measurement: the indicator's mean with an interval; None before the first reading.
        basis: "unit readings"; "rounds", where unit readings agree inside rounds but not between them; or
            "readings", one a round.
        readings: the number of readings taken.
        removed: the number of readings left out as warm-up and cool-down.
        rounds_unstable: rounds without a stable phase, left out whole.
        reached: the indicator's goal is reached, and may be stopped at; without a goal, always.
    """

    indicator: Indicator
    measurement: Measurement | None
    basis: Basis
    readings: int
    removed: int
    rounds_unstable: int
    reached: bool


def finding_of(indicator: Indicator, values: FindingValues) -> Finding:
    """A finding from its values in `ascar._core`."""
    found, basis, readings, removed, unstable, reached = values
    measurement = None if found is None else measurement_of(found)
    return Finding(indicator, measurement, cast("Basis", basis), readings, removed, unstable, reached)


def measurement_of(values: MeasurementValues) -> Measurement:
    """A measurement from its values in `ascar._core`."""
    mean, limits, confidence, counts, autocorrelation, size, stable, changes, method, reason = values
    return Measurement(
        mean, *limits, confidence, *counts, autocorrelation, size, *stable, tuple(changes), method, reason
    )
