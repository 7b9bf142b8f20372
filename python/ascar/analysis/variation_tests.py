"""Tests on runs of many configurations at once: a configuration is a block, its level does not matter.

All of them take blocks of runs as `Runs` has them: values (n,), and bounds (k + 1,) of the blocks. That the
runs of a block could have come in any other order is what each of them tests.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from ascar.significance import signed_rank_sum, two_sided

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

_RUNS_MAX = 2_000  # of one block, where pairs are counted
_PERMUTATIONS = 1_999
_DRAWS = 9_999


@dataclass(frozen=True, slots=True)
class HypothesisTest:
    """What a test says.

    Attributes:
        name: the statistic's symbol, as it is written before the value.
        statistic: the statistic's value.
        p_value: the probability of a statistic at least as extreme when there is no effect.
        sample: the data behind the test, e.g. "402 runs".
    """

    name: str
    statistic: float
    p_value: float
    sample: str


def standardized(values: NDArray[np.float64], bounds: NDArray[np.intp]) -> NDArray[np.float64]:
    """Values less their block's mean, over its standard deviation; 0 where a block does not vary."""
    starts, counts = bounds[:-1], np.diff(bounds)
    apart = values - np.repeat(np.add.reduceat(values, starts) / counts, counts)
    deviation = np.sqrt(np.add.reduceat(apart**2, starts) / counts)
    # Rounding alone is no variation.
    size = np.maximum.reduceat(np.abs(values), starts)
    flat = deviation <= 1e-12 * size
    return np.where(np.repeat(flat, counts), 0.0, apart / np.repeat(np.where(flat, 1.0, deviation), counts))


def seasonal_kendall(values: NDArray[np.float64], bounds: NDArray[np.intp]) -> HypothesisTest | None:
    """Whether runs of a block rise or fall with their order (Hirsch, Slack and Smith 1982); two-sided.

    Kendall's S is summed over the blocks, as is its variance, corrected for ties; the sum is compared with
    the normal distribution, with a correction for continuity. None where no block has two different values.
    """
    score, variance, runs = 0.0, 0.0, 0
    for size, blocks in _by_size(values, bounds):
        pairs = np.zeros(len(blocks))
        for lag in range(1, size):
            pairs += np.sign(blocks[:, lag:] - blocks[:, :-lag]).sum(1)
        score += float(pairs.sum())
        variance += len(blocks) * size * (size - 1) * (2 * size + 5) / 18 - _tied(blocks)
        runs += blocks.size
    if variance <= 0:
        return None
    z = math.copysign(max(abs(score) - 1, 0.0), score) / math.sqrt(variance)
    return HypothesisTest("Kendall's S over configurations, Z", z, two_sided(z), f"{runs} runs")


def first_rank(values: NDArray[np.float64], bounds: NDArray[np.intp]) -> HypothesisTest | None:
    """Whether the first run of a block is higher or lower than its others; two-sided.

    The rank of the first in its block, summed over blocks, against the ranks' mean and variance. None where
    no block varies.
    """
    score, variance, count = 0.0, 0.0, 0
    for size, blocks in _by_size(values, bounds):
        first = blocks[:, :1]
        rank = (blocks < first).sum(1) + ((blocks == first).sum(1) + 1) / 2
        score += float((rank - (size + 1) / 2).sum())
        ties = _equal(blocks).astype(float)
        variance += (len(blocks) * (size**2 - 1) - float((ties**2 - 1).sum()) / size) / 12
        count += len(blocks)
    if variance <= 0:
        return None
    z = math.copysign(max(abs(score) - 0.5, 0.0), score) / math.sqrt(variance)
    return HypothesisTest("rank of the first run, Z", z, two_sided(z), f"{count} configurations")


def signed_rank(differences: NDArray[np.float64], sample: str = "runs") -> HypothesisTest | None:
    """Whether differences are above or below 0 (Wilcoxon 1945); two-sided, zeros left out, ties corrected."""
    left = differences[np.isfinite(differences) & (differences != 0)]
    if not len(left):
        return None
    score, deviation = signed_rank_sum(left)
    z = math.copysign(max(abs(score) - 1, 0.0), score) / deviation
    return HypothesisTest("signed ranks, Z", z, two_sided(z), f"{len(left)} {sample}")


def permuted(
    statistic: Callable[[NDArray[np.float64]], float],
    values: NDArray[np.float64],
    bounds: NDArray[np.intp],
    rng: np.random.Generator,
) -> float:
    """The p-value of a statistic, large ones being extreme, by exchanging values within blocks.

    Exact in level for whatever the values' distribution is (Phipson and Smyth 2010).
    """
    found = statistic(values)
    owner = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    beyond = 0
    for _ in range(_PERMUTATIONS):
        order = np.lexsort((rng.random(len(values)), owner))
        beyond += statistic(values[order]) >= found - 1e-12
    return (beyond + 1) / (_PERMUTATIONS + 1)


def two_levels(block: NDArray[np.float64]) -> tuple[float, float, tuple[float, float]]:
    """How far two levels explain the runs of one configuration, each at least a quarter of them.

    Returns:
        The greatest share of the variance between two sides of a split, the p-value of such a share where
        runs are spread evenly (of the distributions with one mode that which looks most like two), and the
        levels.
    """
    ordered = np.sort(block)
    share, at = _split(ordered[None, :])
    p = (float((_even_shares(len(block)) >= share[0] - 1e-12).sum()) + 1) / (_DRAWS + 1)
    return float(share[0]), p, (float(ordered[: at[0]].mean()), float(ordered[at[0] :].mean()))


def _split(ordered: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Of sorted rows the best split: the share of variance between its sides, and where it is."""
    n = ordered.shape[1]
    sums = np.cumsum(ordered - ordered.mean(1, keepdims=True), 1)
    whole = n * ordered.var(1)
    low, high = max(2, math.ceil(n / 4)), n - max(2, math.ceil(n / 4))
    sizes = np.arange(low, high + 1, dtype=np.intp)
    between = sums[:, sizes - 1] ** 2 * n / (sizes * (n - sizes))
    best = between.argmax(1)
    found = np.take_along_axis(between, best[:, None], 1)[:, 0]
    return np.divide(found, whole, out=np.zeros_like(found), where=whole > 0), sizes[best]


@cache
def _even_shares(n: int) -> NDArray[np.float64]:
    drawn = np.random.default_rng(n).random((_DRAWS, n))
    return _split(np.sort(drawn, 1))[0]


def _by_size(values: NDArray[np.float64], bounds: NDArray[np.intp]) -> list[tuple[int, NDArray[np.float64]]]:
    """Blocks of equal sizes as matrices; of very large ones every so many runs."""
    counts = np.diff(bounds)
    found: list[tuple[int, NDArray[np.float64]]] = []
    for size in np.unique(counts[counts > 1]):
        size = int(size)  # noqa: PLW2901
        steps = np.unique(np.linspace(0, size - 1, min(size, _RUNS_MAX)).astype(np.intp))
        rows = bounds[:-1][counts == size, None] + steps
        found.append((len(steps), values[rows]))
    return found


def _tied(blocks: NDArray[np.float64]) -> float:
    """What ties take from the variance of Kendall's S."""
    ties = _equal(blocks).astype(float)
    return float(((ties - 1) * (2 * ties + 5)).sum()) / 18


def _equal(blocks: NDArray[np.float64]) -> NDArray[np.intp]:
    """How many of its block each run is equal to, itself among them."""
    if not (np.diff(np.sort(blocks, 1), axis=1) == 0).any():
        return np.ones(blocks.shape, np.intp)
    equal = np.ones(blocks.shape, np.intp)
    for lag in range(1, blocks.shape[1]):
        same = blocks[:, lag:] == blocks[:, :-lag]
        equal[:, lag:] += same
        equal[:, :-lag] += same
    return equal
