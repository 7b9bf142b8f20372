"""Synthetic sessions whose steady mean is known, for the benchmarks of Pilot.

Every kind has a steady standard deviation of about 10 around a steady mean of about 100 before what
disturbs it. The effective sample size is the model's own, not an estimate: how many independent readings of
the same variance would leave the mean of the steady readings as uncertain.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.signal import lfilter

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Noise = Callable[[np.random.Generator, int], NDArray[np.float64]]

LEVEL, DEVIATION = 100.0, 10.0
SHORTEST, LONGEST = 500, 6000


@dataclass(frozen=True, slots=True)
class Synthetic:
    """A session.

    Attributes:
        values: (n,) its readings.
        mean: of the steady phase, true.
        independent: how many independent readings the steady phase is worth, true.
        deviation: standard deviation of the readings in the steady phase, without spikes, true.
        changes: indexes where the level changes at once.
    """

    values: NDArray[np.float64]
    mean: float
    independent: float
    deviation: float = DEVIATION
    changes: tuple[int, ...] = ()


def length(rng: np.random.Generator) -> int:
    """How many readings a session has: evenly spread on a logarithmic scale."""
    return round(math.exp(rng.uniform(math.log(SHORTEST), math.log(LONGEST))))


def autoregressive(rng: np.random.Generator, n: int, rho: float) -> NDArray[np.float64]:
    """Stationary AR(1) with variance 1."""
    innovations = rng.standard_normal(n) * math.sqrt(1 - rho * rho)
    innovations[0] = rng.standard_normal()
    return np.asarray(lfilter([1.0], [1.0, -rho], innovations), np.float64)


def worth(n: int, rho: float) -> float:
    """Independent readings that n readings of an AR(1) are worth, for long series."""
    return n * (1 - rho) / (1 + rho)


def stationary(rng: np.random.Generator, rho: float) -> Synthetic:
    """AR(1); independent where rho = 0."""
    n = length(rng)
    return Synthetic(LEVEL + DEVIATION * autoregressive(rng, n, rho), LEVEL, worth(n, rho))


def lognormal(rng: np.random.Generator, sigma: float = 0.5) -> Synthetic:
    """Independent log-normal readings."""
    n = length(rng)
    true = LEVEL * math.exp(sigma * sigma / 2)
    deviation = true * math.sqrt(math.expm1(sigma * sigma))
    return Synthetic(LEVEL * rng.lognormal(0, sigma, n), true, n, deviation)


def pareto(rng: np.random.Generator, alpha: float = 3.0) -> Synthetic:
    """Independent Pareto readings of at least the level: with alpha = 3 of infinite skewness."""
    n = length(rng)
    true = LEVEL * alpha / (alpha - 1)
    deviation = true / math.sqrt(alpha * (alpha - 2))
    return Synthetic(LEVEL * (1 + rng.pareto(alpha, n)), true, n, deviation)


def ramp(rng: np.random.Generator, rho: float, *, exponential: bool = False) -> Synthetic:
    """A warm-up: it rises (or falls) to the steady level, in a straight line or ever more slowly."""
    n = length(rng)
    warm = int(n * rng.uniform(0.05, 0.3))
    height = DEVIATION * rng.uniform(2, 10) * rng.choice((-1, 1))
    at = np.arange(n)
    # An exponential is down to 1% of its height at the end of the warm-up.
    lean = np.exp(-math.log(100) * at / warm) if exponential else np.clip(1 - at / warm, 0, None)
    values = LEVEL + DEVIATION * autoregressive(rng, n, rho) + height * lean
    return Synthetic(values, LEVEL, worth(n - warm, rho))


def steps(rng: np.random.Generator, rho: float) -> Synthetic:
    """A cache fills: one to three levels of their own, then the steady one for most of the time."""
    n = length(rng)
    count = int(rng.integers(1, 4))
    total = int(n * rng.uniform(0.1, 0.4))
    cuts = np.sort(rng.uniform(0.2, 0.8, count - 1)) * total
    ends = [*(int(cut) for cut in cuts), total]
    values = LEVEL + DEVIATION * autoregressive(rng, n, rho)
    start = 0
    for step, end in enumerate(ends):
        values[start:end] += DEVIATION * rng.uniform(3, 8) * (count - step)
        start = end
    return Synthetic(values, LEVEL, worth(n - total, rho), changes=tuple(ends))


def spikes(rng: np.random.Generator, rho: float) -> Synthetic:
    """Every so often some readings are far off, as by a journal's commit: part of the steady mean."""
    n = length(rng)
    period, width = int(rng.integers(20, 101)), int(rng.integers(1, 4))
    height = DEVIATION * rng.uniform(5, 20)
    at = np.arange(n) + int(rng.integers(period))
    values = LEVEL + DEVIATION * autoregressive(rng, n, rho) + height * (at % period < width)
    return Synthetic(values, LEVEL + height * width / period, worth(n, rho))


KINDS: dict[str, Callable[[np.random.Generator], Synthetic]] = {
    "independent": lambda rng: stationary(rng, 0.0),
    "AR(1) 0.3": lambda rng: stationary(rng, 0.3),
    "AR(1) 0.6": lambda rng: stationary(rng, 0.6),
    "AR(1) 0.9": lambda rng: stationary(rng, 0.9),
    "warm-up ramp": lambda rng: ramp(rng, 0.0),
    "warm-up ramp, AR(1) 0.3": lambda rng: ramp(rng, 0.3),
    "exponential warm-up": lambda rng: ramp(rng, 0.0, exponential=True),
    "exponential warm-up, AR(1) 0.3": lambda rng: ramp(rng, 0.3, exponential=True),
    "cache-fill steps": lambda rng: steps(rng, 0.0),
    "cache-fill steps, AR(1) 0.3": lambda rng: steps(rng, 0.3),
    "periodic spikes": lambda rng: spikes(rng, 0.0),
    "periodic spikes, AR(1) 0.3": lambda rng: spikes(rng, 0.3),
    "log-normal 0.5": lognormal,
    "Pareto 3": pareto,
}
