"""Unit readings to a mean with an interval, made in crates/statistics (Li's thesis, 4.2.1 to 4.2.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from ascar import _core
from ascar.errors import InputError
from ascar.results.measurement import Measurement

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

Method = Literal["corrected", "faithful"]

# EDM's smallest segment (the published tool's default); a segment as long as the series finds nothing.
_SEGMENT_MIN = 30


def analyze(
    values: ArrayLike,
    confidence: float = 0.95,
    method: Method = "corrected",
    *,
    whole: bool = False,
    autocorrelation_limit: float = 0.1,
) -> Measurement:
    """The steady mean of a series of readings, with its interval.

    Change points separate warm-up and cool-down from the dominant segment, the stable phase; the interval
    allows for the autocorrelation that the readings have.

    Args:
        values: (n,) readings in the order they were taken, all finite.
        confidence: the confidence of the interval.
        method: "corrected", or "faithful" for the published subsession rule.
        whole: the readings are all from the stable phase: no change points are looked for.
        autocorrelation_limit: the greatest absolute autocorrelation of subsession means; the published
            presets have 0.8, 0.2 and 0.1. It decides the subsession size, and with "faithful" the interval
            too.

    Raises:
        InputError: no readings, readings that are not finite numbers, an impossible confidence.
    """
    try:
        readings = np.ascontiguousarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"readings must be numbers: {error}") from error
    if readings.ndim != 1 or readings.size == 0:
        raise InputError(f"readings have shape {readings.shape}: must be one row of at least one number")
    if readings.size == 1:
        if not np.isfinite(readings[0]):
            raise InputError(f"readings = {readings[0]}: must be finite numbers")
        if not 0 < confidence < 1:
            raise InputError(f"confidence = {confidence!r}: must be between 0 and 1, e.g. 0.95")
        return Measurement.single(float(readings[0]), confidence)
    try:
        found = _core.analyze(
            readings,
            confidence=confidence,
            autocorrelation_limit=autocorrelation_limit,
            method=method,
            min_segment=max(readings.size, _SEGMENT_MIN) if whole else _SEGMENT_MIN,
        )
    except ValueError as error:
        raise InputError(str(error)) from error
    return Measurement(
        mean=found.mean,
        ci_low=found.ci_low,
        ci_high=found.ci_high,
        confidence=found.confidence,
        n=found.n,
        independent_samples=int(found.effective_n),
        autocorrelation=found.autocorrelation,
        subsession_size=found.subsession_size or found.n,
        stable_start=found.stable_start,
        stable_end=found.stable_end,
        change_points=tuple(found.change_points),
        method=found.method,
        reason=found.reason or "",
    )
