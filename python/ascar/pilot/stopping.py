"""When a session may stop: an interval that was looked at again and again until it was narrow enough.

Stopped at the first look that meets a goal, the interval of a correlated series covers far less often than
it promises: the look is the one at which the variance happened to be underestimated. Three things keep the
promise (`benchmarks/pilot_stopping.py`):

- looks are few: readings have grown by a tenth since the last one;
- at least 20 independent samples, for how much correlation there is shows late (Law and Carson 1979, "A
  sequential procedure for determining the length of a steady-state simulation", have such a minimum too);
- the wider of two intervals counts: that of the analysis, which holds for any correlation but whose variance
  is itself uncertain, and that of an AR(1), which is precise.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import stdtrit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ascar.measurement import Measurement

__all__ = ["INDEPENDENT_MIN", "LOOK_GROWTH", "cautious", "enough_independent"]

INDEPENDENT_MIN = 20
LOOK_GROWTH = 1.1

_CORRELATION_MAX = 0.99
_SAMPLES_MIN = 2.5


def enough_independent(measurement: Measurement) -> bool:
    """Whether a measurement rests on independent samples enough to be stopped by."""
    return measurement.independent_samples >= INDEPENDENT_MIN


def cautious(measurement: Measurement, stable: NDArray[np.float64]) -> Measurement:
    """The measurement with the wider of its own interval and that of an AR(1).

    Args:
        measurement: of these readings.
        stable: (n,) its stable phase.
    """
    if measurement.ci_low is None or measurement.ci_high is None or len(stable) < 3:
        return measurement
    half, independent = _first_order(stable, measurement.confidence)
    mean = measurement.mean
    return replace(
        measurement,
        ci_low=min(measurement.ci_low, mean - half),
        ci_high=max(measurement.ci_high, mean + half),
        independent_samples=min(measurement.independent_samples, int(independent)),
        method=f"{measurement.method}, for stopping",
    )


def _first_order(values: NDArray[np.float64], confidence: float) -> tuple[float, float]:
    """Half the interval of the mean of an AR(1), and the independent samples that it is worth.

    The lag-1 coefficient is corrected for its bias, -(1 + 4 rho)/n (Kendall 1954, "Note on bias in the
    estimation of autocorrelation"), and not taken below 0.
    """
    n = len(values)
    deviations = values - values.mean()
    total = float(deviations @ deviations)
    if total <= 0:
        return 0.0, float(n)
    found = float(deviations[1:] @ deviations[:-1]) / total
    rho = min(max(found + (1 + 4 * found) / n, 0.0), _CORRELATION_MAX)
    independent = max(n * (1 - rho) / (1 + rho), _SAMPLES_MIN)
    quantile = float(stdtrit(independent - 1, 0.5 + confidence / 2))
    return quantile * float(np.sqrt(total / (n - 1) / independent)), independent
