"""Variation at a glance (Cao 6.6.1): each configuration's, each group's, and what it goes with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from ascar import _core
from ascar.analysis.spectra import ROWS_PER_RANGE, factor_of
from ascar.analysis.variation import range_coverage, relative_standard_deviation
from ascar.errors import InputError
from ascar.significance import holm, mid_ranks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from ascar.analysis.variation import Estimate
    from ascar.analysis.variation_runs import Runs

RSD_LARGE, RANGE_LARGE = 0.05, 0.09
"""Section 6.1: over 18% of Cao's configurations were beyond both."""

_VALUES_MAX = 12
_GROUPS_MAX = 32
_ONE = ("all",)


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """How each configuration's runs differ, float64 (k,) each.

    Attributes:
        mean: the mean of each configuration's runs.
        low: the least.
        high: the greatest.
        rsd: relative standard deviation, eq. 6.2.
        range: relative range, eq. 6.3.
    """

    mean: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    rsd: NDArray[np.float64]
    range: NDArray[np.float64]

    @property
    def order(self) -> NDArray[np.intp]:
        """Configurations, the most varying first."""
        return np.argsort(-self.range, kind="stable")


def spread_of(runs: Runs) -> Spread:
    """Of all configurations at once."""
    starts, counts = runs.bounds[:-1], runs.counts
    mean = np.add.reduceat(runs.scores, starts) / counts
    low, high = np.minimum.reduceat(runs.scores, starts), np.maximum.reduceat(runs.scores, starts)
    apart = (runs.scores - np.repeat(mean, counts)) ** 2
    deviation = np.sqrt(np.add.reduceat(apart, starts) / (counts - 1))
    deviation[low == high] = 0.0  # not what the rounding of the mean leaves
    size = np.abs(mean)
    return Spread(mean, low, high, deviation / size, (high - low) / size)


def deviation_of(runs: Runs, place: int) -> Estimate:
    """The relative standard deviation of one configuration, with its interval."""
    return relative_standard_deviation(runs.scores[runs.of(place)])


@dataclass(frozen=True, slots=True)
class Group:
    """Configurations that have one value of a parameter.

    Attributes:
        name: the value; "all" where there is one group.
        configurations: the number of configurations in the group.
        runs: least and greatest number of runs of one.
        mean: least and greatest mean.
        rsd: median, 90% quantile and greatest relative standard deviation.
        range: the same of the relative range.
        large: share of configurations beyond `RSD_LARGE` and `RANGE_LARGE`.
        coverage: the share of all runs that the range of so few runs covers (`range_coverage`).
    """

    name: str
    configurations: int
    runs: tuple[int, int]
    mean: tuple[float, float]
    rsd: tuple[float, float, float]
    range: tuple[float, float, float]
    large: float
    coverage: float


def grouped(runs: Runs, by: str | None) -> tuple[tuple[str, ...], NDArray[np.intp]]:
    """Names of groups, and the group of each configuration (k,).

    Numbers of many values are grouped by range; what does not apply is a group of its own.

    Args:
        runs: the runs of the configurations.
        by: a parameter; None: one group.

    Raises:
        InputError: it is not a parameter, or has too many values.
    """
    if by is None:
        return _ONE, np.zeros(len(runs), np.intp)
    if by not in runs.names:
        raise InputError(f"--by = {by!r}: is not a parameter; parameters are {', '.join(runs.names[:40])}")
    factor = factor_of(runs.values[by], max(2, min(8, len(runs) // ROWS_PER_RANGE)), _VALUES_MAX)
    if len(factor.labels) > _GROUPS_MAX:
        raise InputError(
            f"--by = {by!r}: has {len(factor.labels)} values; at most {_GROUPS_MAX} can be compared"
        )
    if (factor.codes < 0).any():
        return (*factor.labels, "n/a"), np.where(factor.codes < 0, len(factor.labels), factor.codes)
    return factor.labels, factor.codes


def groups_of(names: Sequence[str], of: NDArray[np.intp], runs: Runs, spread: Spread) -> list[Group]:
    """The groups that have configurations, in the order of their names."""
    found: list[Group] = []
    for place, name in enumerate(names):
        mine = of == place
        if not mine.any():
            continue
        rsd, wide, mean, counts = spread.rsd[mine], spread.range[mine], spread.mean[mine], runs.counts[mine]
        found.append(
            Group(
                name,
                int(mine.sum()),
                (int(counts.min()), int(counts.max())),
                (float(mean.min()), float(mean.max())),
                _quantiles(rsd),
                _quantiles(wide),
                float(np.mean((rsd > RSD_LARGE) & (wide > RANGE_LARGE))),
                range_coverage(int(counts.min())),
            )
        )
    return found


def _quantiles(values: NDArray[np.float64]) -> tuple[float, float, float]:
    median, most, greatest = np.quantile(values, [0.5, 0.9, 1.0])
    return float(median), float(most), float(greatest)


@dataclass(frozen=True, slots=True)
class ParameterEffect:
    """How a parameter goes with the relative standard deviation, by Kruskal and Wallis (1952).

    Attributes:
        parameter: the parameter's name.
        statistic: H, corrected for ties.
        groups: the number of groups compared.
        p_value: the p-value from the limit distribution.
        p_adjusted: the p-value adjusted for all parameters (Holm 1979).
    """

    parameter: str
    statistic: float
    groups: int
    p_value: float
    p_adjusted: float


def linked(runs: Runs, spread: Spread) -> list[ParameterEffect]:
    """Parameters by how surely configurations of different values differ in variation, the surest first.

    A value counts where two configurations have it. What does not apply is not a value.
    """
    found: list[tuple[str, float, int, float]] = []
    for name in runs.varying:
        if runs.values[name].dtype == pl.String and runs.values[name].n_unique() > _GROUPS_MAX:
            continue
        names, of = _groups_or_one(runs, name)
        sizes = np.bincount(of, minlength=len(names))
        large = [place for place in range(len(names)) if sizes[place] > 1 and names[place] != "n/a"]
        kept = np.isin(of, large)
        if len(large) < 2:
            continue
        statistic = _kruskal(spread.rsd[kept], of[kept])
        if statistic is not None:
            p = _core.chi_squared_above(max(statistic, 0.0), len(large) - 1)
            found.append((name, statistic, len(large), p))
    found.sort(key=lambda one: one[3])
    adjusted = holm([one[3] for one in found])
    return [ParameterEffect(*one, p) for one, p in zip(found, adjusted, strict=True)]


def _groups_or_one(runs: Runs, name: str) -> tuple[tuple[str, ...], NDArray[np.intp]]:
    """As `grouped`; one group where the parameter cannot be compared by."""
    try:
        return grouped(runs, name)
    except InputError:
        return _ONE, np.zeros(len(runs), np.intp)


def _kruskal(values: NDArray[np.float64], of: NDArray[np.intp]) -> float | None:
    n = len(values)
    ranks = mid_ranks(values)
    _, sizes = np.unique(values, return_counts=True)
    ties = 1 - float((sizes.astype(float) ** 3 - sizes).sum()) / (float(n) ** 3 - n)
    if ties <= 0:
        return None
    sums, counts = np.bincount(of, ranks), np.bincount(of)
    used = counts > 0
    return float((12 / (n * (n + 1)) * (sums[used] ** 2 / counts[used]).sum() - 3 * (n + 1)) / ties)
