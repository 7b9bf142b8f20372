"""What a session's rounds say about its indicators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, cast

import msgspec

from ascar.results.measurement import Measurement

if TYPE_CHECKING:
    from collections.abc import Sequence

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
        kinds: what is known of each kind of work units; empty where they are of one kind.
    """

    indicator: Indicator
    measurement: Measurement | None
    basis: Basis
    readings: int
    removed: int
    rounds_unstable: int
    reached: bool
    kinds: tuple[UnitKind, ...] = ()


@dataclass(frozen=True, slots=True)
class UnitKind:
    """What is known of one kind of work units.

    Attributes:
        name: the name of the kind.
        share: the kind's share of all work.
        measurement: the mean of the kind's stable units; None where none is stable.
    """

    name: str
    share: float
    measurement: Measurement | None


def finding_of(indicator: Indicator, values: FindingValues, names: Sequence[str] = ()) -> Finding:
    """A finding from its values in `ascar._core`; `names` are those of the kinds of units, by number."""
    found, basis, readings, removed, unstable, reached, kinds = values
    measurement = None if found is None else measurement_of(found)
    for number, name in enumerate(names):
        if measurement is not None and f"units of kind {number}:" in measurement.reason:
            reason = measurement.reason.replace(f"of kind {number}:", f"of kind {name[:40]!r}:")
            measurement = msgspec.structs.replace(measurement, reason=reason)
            break
    named = tuple(
        UnitKind(names[kind], share, None if one is None else measurement_of(one))
        for kind, share, one in kinds
        if kind < len(names) and names[kind]
    )
    return Finding(indicator, measurement, cast("Basis", basis), readings, removed, unstable, reached, named)


def measurement_of(values: MeasurementValues) -> Measurement:
    """A measurement from its values in `ascar._core`."""
    mean, limits, confidence, counts, autocorrelation, size, stable, changes, method, reason = values
    return Measurement(
        mean, *limits, confidence, *counts, autocorrelation, size, *stable, tuple(changes), method, reason
    )
