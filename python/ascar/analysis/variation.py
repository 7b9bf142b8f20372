"""Measures of performance variation (Cao's thesis, chapter 6).

Runs of one configuration are compared by their relative standard deviation and their relative range, over
time by the throughput of windows, and latencies by the Kolmogorov-Smirnov distance of their distributions.
A number has an interval where an exact one exists under a stated assumption, and none elsewhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from ascar import _core
from ascar.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

_T = TypeVar("_T")

_LITTLE = 1e-3
_MANY = 1_000
_PRECISION = 1e-10

STRONG_CORRELATION = 0.7
"""From here on a correlation is called strong (Fig. 6.11)."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with what is known about it.

    Attributes:
        value: the estimate.
        low: lower end of its interval; None where no honest interval exists.
        high: upper end, or None.
        confidence: the interval's.
        reason: why there is no interval; empty where there is one.
    """

    value: float
    low: float | None
    high: float | None
    confidence: float
    reason: str = ""


def relative_standard_deviation(values: ArrayLike, confidence: float = 0.95) -> Estimate:
    """Eq. 6.2: the sample standard deviation over the mean, also called coefficient of variation.

    The interval is exact for independent normal values: sqrt(n) / RSD is noncentral t with n - 1 degrees of
    freedom and noncentrality sqrt(n) over the true RSD (Johnson and Welch 1940, "Applications of the
    non-central t-distribution"). Throughputs of whole runs are nearly normal; single readings and latencies
    are not, and readings of one run are not independent.

    Args:
        values: (n,) one number a run, n >= 2; their mean is not 0.
        confidence: the confidence of the interval.

    Raises:
        InputError: too few values, values that are not finite numbers, a mean of 0.
    """
    _check_confidence(confidence)
    runs = _numbers("values", values, 2)
    value = _asked(lambda: _core.relative_standard_deviation(runs))
    if value == 0:
        return Estimate(0.0, None, None, confidence, "the values do not vary")
    tail = (1 - confidence) / 2
    low, high = (_deviation_with(value, len(runs), share) for share in (tail, 1 - tail))
    if low is None or high is None:
        return Estimate(value, None, None, confidence, "the mean is not told from 0; more runs")
    return Estimate(value, low, high, confidence)


def relative_range(values: ArrayLike) -> float:
    """Eq. 6.3: largest minus smallest value over the mean; the chapter's main measure, as outliers count.

    It has no interval: the range grows with the number of runs, so compare it only between sets of equally
    many. `range_coverage` says what a range of n runs promises about the next one.

    Args:
        values: (n,) one number a run.

    Raises:
        InputError: no values, values that are not finite numbers, a mean of 0.
    """
    runs = _numbers("values", values, 1)
    return _asked(lambda: _core.relative_range(runs))


def range_coverage(runs: int, confidence: float = 0.95) -> float:
    """The least share of all runs that lies between the smallest and the largest of some, with confidence.

    Whatever the distribution (Wilks 1941, "Determination of sample sizes for setting tolerance limits"): the
    p for which 1 - n p^(n-1) + (n-1) p^n is the confidence. For the chapter's 10 runs it is 61%.

    Args:
        runs: the number of runs, n >= 2.
        confidence: the confidence of the statement.

    Raises:
        InputError: fewer than 2 runs, or an impossible confidence.
    """
    _check_confidence(confidence)
    if runs < 2:
        raise InputError(f"runs = {runs}: must be at least 2")
    # The coverage of the range is beta with n - 1 and 2.
    return _core.beta_quantile(1 - confidence, runs - 1, 2)


def throughput_windows(rates: ArrayLike, window: int) -> NDArray[np.float64]:
    """Throughput-N (section 6.2): the mean rate of each full window, over time as in Fig. 6.7.

    Args:
        rates: (n,) rates over equal times, e.g. operations per second every 10 s (Throughput-10).
        window: readings a window: N over the seconds between readings; what is left over is in none.

    Returns:
        (n // window,) means.

    Raises:
        InputError: no window, or one that is longer than the run.
    """
    readings = _numbers("rates", rates, 1)
    if not 1 <= window <= len(readings):
        raise InputError(f"window = {window}: must be 1 to the number of readings, {len(readings)}")
    return _asked(lambda: _core.throughput_windows(readings, window))


def throughput_ranges(runs: Sequence[ArrayLike], window: int) -> NDArray[np.float64]:
    """The relative range over runs of each window's throughput (section 6.6.3.1, Fig. 6.7 and 6.8).

    Args:
        runs: the rates of at least two runs over equal times; the end of a longer run is not used.
        window: readings a window.

    Returns:
        One relative range a window; their distribution over all configurations is Fig. 6.8.

    Raises:
        InputError: fewer than 2 runs, a window longer than the shortest, or a window of mean 0.
    """
    if len(runs) < 2:
        raise InputError(f"{len(runs)} runs: at least 2 are needed for a range over runs")
    windows = [throughput_windows(run, window) for run in runs]
    count = min(len(one) for one in windows)
    together = np.stack([one[:count] for one in windows])
    return np.array([relative_range(together[:, place]) for place in range(count)])


def throughput_normalized(rates: ArrayLike) -> NDArray[np.float64]:
    """Instantaneous throughput over the run's largest (section 6.6.3.1, Fig. 6.9).

    Raises:
        InputError: no rates, or none above 0.
    """
    readings = _numbers("rates", rates, 1)
    most = float(readings.max())
    if most <= 0:
        raise InputError(f"rates: the largest is {most:g}: must be above 0 to be divided by")
    return readings / most


def latency_distance(a: ArrayLike, b: ArrayLike, confidence: float = 0.95) -> Estimate:
    """Kolmogorov-Smirnov distance of two latency distributions (section 6.6.3.2): between 0 and 1.

    The interval holds for independent latencies of any distribution: each empirical distribution is nowhere
    further from its own true one than the bound of Dvoretzky, Kiefer and Wolfowitz with Massart's constant
    (1990).

    Args:
        a: (n,) latencies, in any unit.
        b: (m,) latencies, in the same.
        confidence: the confidence of the interval.

    Raises:
        InputError: no latencies, latencies that are not finite numbers, an impossible confidence.
    """
    return latency_range([a, b], confidence)


def latency_range(samples: Sequence[ArrayLike], confidence: float = 0.95) -> Estimate:
    """The range of a set of latency distributions: the largest distance of any two (section 6.6.3.2).

    Args:
        samples: latencies of at least 2 runs, in one unit.
        confidence: the confidence of the interval, which holds for the distances of all samples together.

    Raises:
        InputError: as for `latency_distance`, or fewer than 2 samples.
    """
    _check_confidence(confidence)
    if len(samples) < 2:
        raise InputError(f"{len(samples)} samples of latencies: at least 2 are needed for a distance")
    latencies = [_numbers(f"samples[{place}]", sample, 1) for place, sample in enumerate(samples)]
    value = _asked(lambda: _core.distribution_range(latencies))
    error = math.log(2 * len(latencies) / (1 - confidence)) / 2
    errors = [math.sqrt(error / len(sample)) for sample in latencies]
    low, high = 0.0, 0.0
    for place, first in enumerate(latencies):
        for second, other in zip(latencies[place + 1 :], errors[place + 1 :], strict=True):
            distance = _core.kolmogorov_smirnov(first, second)
            low = max(low, distance - errors[place] - other)
            high = max(high, distance + errors[place] + other)
    return Estimate(value, low, min(high, 1.0), confidence)


def latency_throughput_correlations(
    throughput: ArrayLike, latency: Mapping[str, ArrayLike], confidence: float = 0.95
) -> dict[str, Estimate]:
    """How each operation's latency variation goes with the throughput's (section 6.6.3.2, Fig. 6.11).

    Pearson's correlation over configurations. The interval is Fisher's (1921), exact in the limit for jointly
    normal values and rough for skewed ones; a correlation from few configurations has a wide one, and even a
    strong correlation is no cause.

    Args:
        throughput: (n,) relative range of the throughput, one a configuration.
        latency: (n,) `latency_range` of the same configurations, by operation.
        confidence: the confidence of each interval.

    Returns:
        By operation, the most strongly correlated first; operations whose range does not vary are left out.

    Raises:
        InputError: fewer than 2 configurations, or not as many for an operation.
    """
    _check_confidence(confidence)
    ranges = _numbers("throughput", throughput, 2)
    n = len(ranges)
    found: dict[str, Estimate] = {}
    for operation, values in latency.items():
        own = _numbers(f"latency[{operation!r}]", values, 2)
        if len(own) != n:
            raise InputError(
                f"latency[{operation!r}] has {len(own)} configurations: must be {n}, as throughput"
            )
        value = _asked(lambda own=own: _core.pearson(own, ranges))
        if value is None:
            continue
        if n < 4 or abs(value) >= 1:
            reason = f"{n} configurations: at least 4 are needed" if n < 4 else "the points are on a line"
            found[operation] = Estimate(value, None, None, confidence, reason)
            continue
        half = _core.normal_quantile(0.5 + confidence / 2) / math.sqrt(n - 3)
        center = math.atanh(value)
        found[operation] = Estimate(value, math.tanh(center - half), math.tanh(center + half), confidence)
    return dict(sorted(found.items(), key=lambda item: -item[1].value))


def _deviation_with(found: float, n: int, share: float) -> float | None:
    """The true RSD of which sqrt(n) / RSD of n runs is below what was found with this probability.

    None where none is large enough. Where the noncentral t distribution cannot be computed its limits are
    right: for little variation the mean is known, and the deviation is chi-squared; for many runs the
    deviation is nearly normal.
    """
    freedom, t = n - 1, math.sqrt(n) / found
    if found < _LITTLE:
        # A small t is a large deviation.
        return found * math.sqrt(freedom / _core.chi_squared_quantile_above(share, freedom))
    if n > _MANY:
        apart = _core.normal_quantile(share) * math.sqrt(1 + t * t / 2 / freedom)
        noncentrality = t * (1 - 0.25 / freedom) - apart
        return math.sqrt(n) / noncentrality if noncentrality > 0 else None
    low, high = 0.0, max(2 * t, 1.0)
    if _core.noncentral_t_below(t, freedom, low) <= share:
        return None
    while _core.noncentral_t_below(t, freedom, high) > share:
        high *= 2
    while high - low > _PRECISION * high:
        middle = (low + high) / 2
        is_below = _core.noncentral_t_below(t, freedom, middle) > share
        low, high = (middle, high) if is_below else (low, middle)
    return math.sqrt(n) / high


def _numbers(name: str, values: ArrayLike, least: int) -> NDArray[np.float64]:
    """One row of finite numbers.

    Raises:
        InputError: it is none, or shorter than `least`.
    """
    try:
        row = np.ascontiguousarray(values, np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be numbers: {error}") from error
    if row.ndim != 1 or len(row) < least:
        raise InputError(f"{name} has shape {row.shape}: must be one row of at least {least}")
    if not np.isfinite(row).all():
        place = int(np.flatnonzero(~np.isfinite(row))[0])
        raise InputError(f"{name}[{place}] = {row[place]}: must be a finite number")
    return row


def _check_confidence(confidence: float) -> None:
    if not 0 < confidence < 1:
        raise InputError(f"confidence = {confidence}: must be above 0 and below 1, e.g. 0.95")


def _asked(question: Callable[[], _T]) -> _T:
    """What the core answers; what it refuses is bad input."""
    try:
        return question()
    except ValueError as error:
        raise InputError(str(error)) from error
